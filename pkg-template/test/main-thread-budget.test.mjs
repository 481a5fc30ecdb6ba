// What batches may take of the main thread, by what they took.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";

const { MainThreadBudget } = await module("clock/main-thread-budget");

// What was spent, each as device, milliseconds and moment; what is due; when it goes.
const CASES = [
  ["nothing was spent", [], 5, 5],
  ["a GPU's batches, within", [["Gpu", 5.9, 10]], 10, 10],
  ["a GPU's batches, beyond", [["Gpu", 6, 10]], 10, 20],
  ["many small ones", Array(12).fill(["Gpu", 0.5, 10]), 10, 25.5],
  ["one as long as the window, rests as long", [["Gpu", 16, 30]], 30, 46],
  ["a far longer one rests a window", [["Gpu", 90, 100]], 100, 116],
  ["what is due later than that", [["Gpu", 6, 10]], 31, 31],
  [
    "the window before",
    [
      ["Gpu", 6, 10],
      ["Gpu", 1, 25],
    ],
    25,
    25,
  ],
  ["what is never due", [["Gpu", 6, 10]], NaN, NaN],
  ["the CPU's batches, within", [["Cpu", 3.9, 10]], 10, 10],
  ["the CPU's batches, beyond", [["Cpu", 4, 10]], 10, 22],
  ["the CPU's batches without a page", [["Cpu", 40, 50]], 50, 50, false],
  ["a GPU's batches without a page", [["Gpu", 6, 50]], 50, 60, false],
];

for (const [name, spent, due, expected, hasPage = true] of CASES) {
  test(`the main thread's budget: ${name}`, () => {
    const budget = new MainThreadBudget(() => hasPage);
    for (const [device, took, now] of spent)
      budget[`spendOn${device}`](took, now);
    assert.equal(budget.after(due), expected);
  });
}
