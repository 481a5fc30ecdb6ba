// The development warning about calls that are awaited one after another.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, module, settled } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const { LONELY_BATCHES } = await module("clock/lonely-warning");

/** Batches of the given sizes, one a task, and the warnings they caused. */
async function warningsOf(context, sizes, options) {
  const warn = context.mock.method(console, "warn", () => {});
  const gpu = await face.open(options);
  fake.core.answersAtOnce = true;
  fake.core.dueAt = (now) => (fake.core.queued.length > 0 ? now : NaN);
  for (const size of sizes) {
    const promises = Array.from({ length: size }, () => theCallSite(gpu));
    if (options?.flush === "manual") gpu.flush();
    await Promise.all(promises);
  }
  await gpu.dispose();
  return warn.mock.calls.map(({ arguments: [message] }) => message);
}

function theCallSite(gpu) {
  return gpu.lerp(f32(1), f32(1), 0);
}

const ones = (count) => new Array(count).fill(1);
const CASES = [
  ["frame, an await in a loop: once", ones(3 * LONELY_BATCHES), undefined, 1],
  [
    "eager, an await in a loop: once",
    ones(LONELY_BATCHES + 1),
    { flush: "eager" },
    1,
  ],
  ["not before that many batches", ones(LONELY_BATCHES), undefined, 0],
  [
    "not when calls share a batch now and then",
    [...ones(30), 2, ...ones(30), 2, ...ones(30)],
    undefined,
    0,
  ],
  [
    "not when the caller flushes",
    ones(3 * LONELY_BATCHES),
    { flush: "manual" },
    0,
  ],
];

for (const [name, sizes, options, expected] of CASES) {
  test(name, async (context) => {
    const warnings = await warningsOf(context, sizes, options);
    assert.equal(warnings.length, expected);
    if (expected === 0) return;
    assert.match(warnings[0], /Promise\.all/);
    const [site] = warnings[0].split("made here:\n")[1].split("\n");
    assert.match(site, /theCallSite .*warning\.test\.mjs/);
  });
}

test("not in production", async (context) => {
  process.env.NODE_ENV = "production";
  context.after(() => delete process.env.NODE_ENV);
  assert.deepEqual(await warningsOf(context, ones(3 * LONELY_BATCHES)), []);
  await settled();
});
