// What fails a run of the demo, by figures as the page leaves them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsOf } from "../../tools/demo-verdict.mjs";

const creature = (way, over = {}) => ({
  way,
  ...{ submissions: 0, readbacks: 0, error: 1e-6 },
  batches: way === "framebatch" ? 1 : undefined,
  ...over,
});

const slerp = (way, over = {}) => ({
  way,
  ...{ submissions: 1, readbacks: 1, error: 1e-7 },
  ...over,
});

/** A run in which nothing is wrong, but for what is given. */
const run = ({ creatures = {}, slerps = {}, apart = 1e-6 }) => ({
  apart,
  rows: ["framebatch", "awaited", "tfjs", "loop"]
    .filter((way) => creatures[way] !== null)
    .map((way) => creature(way, creatures[way])),
  slerps: ["framebatch", "per-call", "loop"]
    .filter((way) => slerps[way] !== null)
    .map((way) => slerp(way, slerps[way])),
});

const CASES = [
  ["a good run", {}, []],
  [
    "a wrong answer",
    { creatures: { tfjs: { error: 0.01 } } },
    [/creatures, tfjs: an answer is wrong by 0.01/],
  ],
  [
    "not a number, as JSON has it",
    { creatures: { loop: { error: null } }, slerps: { loop: { error: null } } },
    [/creatures, loop: an answer/, /slerps, loop: an answer/],
  ],
  [
    "a way that did not run",
    { creatures: { awaited: null }, slerps: { "per-call": null } },
    [/creatures, awaited: it did not/, /slerps, per-call: it did not/],
  ],
  ["ways that differ", { apart: 0.5 }, [/two ways are 0.5 apart/]],
  ["a difference that is none", { apart: null }, [/two ways are null apart/]],
  [
    "two batches of a frame",
    { creatures: { framebatch: { batches: 2 } } },
    [/more than one batch/],
  ],
  [
    "two submissions of a batch",
    { creatures: { framebatch: { submissions: 2 } } },
    [/more than one batch/],
  ],
  [
    "two read-backs of the slerps",
    { slerps: { framebatch: { readbacks: 2 } } },
    [/more than one submission or read-back/],
  ],
];

test("without WebGPU only the loop has slerps", () => {
  const alone = run({ slerps: { framebatch: null, "per-call": null } });
  assert.deepEqual(problemsOf(alone, "absent"), []);
  assert.equal(problemsOf(alone, "expected").length, 2);
});

for (const [name, over, expected] of CASES) {
  test(name, () => {
    const problems = problemsOf(run(over));
    assert.equal(problems.length, expected.length, problems.join("\n"));
    expected.forEach((text, i) => assert.match(problems[i], text));
  });
}
