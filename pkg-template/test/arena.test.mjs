// How much room operands take, beyond what a signed word counts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";

const { Arena } = await module("memory/arena");
const { aligned } = await module("memory/arrays");
const { ArrayOperands } = await module("calls/array-operands");
const { BEZIER } = await module("calls/methods");

test("words are rounded up to quads, however many", () => {
  for (const [words, quads] of [
    [0, 0],
    [1, 4],
    [4, 4],
    [2 ** 31 - 1, 2 ** 31],
    [2 ** 31 + 1, 2 ** 31 + 4],
    [2 ** 32 + 5, 2 ** 32 + 8],
  ]) {
    assert.equal(aligned(words), quads);
  }
});

test("bytes beyond 2 GiB are asked for as they are, and refused by the core", () => {
  const asked = [];
  const refusal = { code: "limit-exceeded", message: "too large" };
  const core = {
    header: () => 0,
    reserve(words) {
      asked.push(words);
      return -1;
    },
    failure: () => refusal,
  };
  const arena = new Arena(core, new WebAssembly.Memory({ initial: 1 }));
  // An array as the arena sees it: a real one would take more memory than tests have.
  const bytes = (length) => ({ BYTES_PER_ELEMENT: 1, length });
  const structures = { id: () => 0 };
  const write = (length) => () => {
    const [a, b, ...rest] = BEZIER.operands.map(() => bytes(length));
    const operands = new ArrayOperands(structures, BEZIER, a, b, 0.5, rest);
    return operands.write(arena, undefined);
  };
  for (const length of [2 ** 31 + 4, 2 ** 32]) {
    assert.throws(write(length), (error) => error === refusal);
  }
  assert.deepEqual(asked, [4 * (2 ** 29 + 4), 4 * 2 ** 30]);
});
