// Results as they are copied out of a batch: whole, and in fragments.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";

const { Results } = await module("memory/results");

/** Words that are NaN, signaling or not, and others: integers have any bits. */
const WORDS = Uint32Array.from(
  { length: 64 },
  (_, i) =>
    [0xffb3b4c0, 0x7f800001, 0x7fc00000, 0xffffffff, 3, 0x80000000][i % 6],
);

test("fragments are put together bit for bit, however short they are", () => {
  const results = new Results({ buffer: WORDS.buffer });
  for (const length of [1, 4, 15, 16, 17, 40]) {
    for (const make of [
      (words) => new Float32Array(words),
      (words) => new Uint8Array(words * 4),
    ]) {
      const to = make(length + 2);
      results.copy(to, 3, length, 1);
      assert.deepEqual(
        new Uint32Array(to.buffer).subarray(1, length + 1),
        WORDS.subarray(3, length + 3),
        `${to.constructor.name}, ${length} words`,
      );
    }
  }
});
