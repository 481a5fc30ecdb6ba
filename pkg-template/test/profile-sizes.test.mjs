// Profiles of several sizes: what each is given, which is best, and what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, module } from "./face.mjs";

await module("kernels/index");
const { profileSizes } = await module("kernels/profile-sizes");
const one = new Float32Array([1]);

test("each size is profiled as it would be alone", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  core.gpuMs = 7;
  const given = [];
  const run = (size) => {
    given.push(size);
    return Promise.all(
      Array.from({ length: size }, () => gpu.lerp(one, one, 0.5)),
    );
  };
  const told = await gpu.profileSizes(run, [4, 1], { iterations: 2 });
  assert.deepEqual(given, [4, 4, 4, 1, 1, 1]);
  assert.deepEqual(
    told.sizes.map(({ size, profile }) => [
      size,
      profile.iterations,
      profile.calls,
    ]),
    [
      [4, 2, 4],
      [1, 2, 1],
    ],
  );
  for (const { size, perSecond, profile } of told.sizes) {
    assert.equal(perSecond, (size / profile.runMs.p50) * 1000);
  }
  assert.equal(told.table.split("\n").length, 3);
  assert.equal(core.measuring, false);
});

const spread = (x) => ({ mean: x, min: x, max: x, sd: 0.25, p50: x, p95: x });

/** A profile of which only what a table has is known. */
const took = (ms, gpuMs = null) => ({
  ...{ runMs: spread(ms), gpuMs: gpuMs && spread(gpuMs), batches: 1 },
  ...{ upBytesPerSecond: 1234567.8, downBytesPerSecond: null },
  ...{ kernelBytesPerSecond: 25e9, flopsPerSecond: 1.5e12 },
});

/** What is told of sizes that take so many milliseconds. */
const told = (times) => {
  const next = Object.values(times)[Symbol.iterator]();
  const profile = async () => took(next.next().value, 0.5);
  const sizes = Object.keys(times).map(Number);
  return profileSizes(profile, () => {}, sizes);
};

const BEST = [
  [{ 1: 1, 10: 2, 100: 10, 1000: 99 }, 100],
  [{ 1: 1, 10: 2, 100: 10, 1000: 90 }, 1000],
  [{ 1: 1, 2: 2, 4: 4 }, 1],
  [{ 8: 1 }, 8],
  [{ 1: 0, 2: 0 }, null],
  [{ 1: 0, 2: 1 }, 2],
];
for (const [times, expected] of BEST) {
  test(`of ${JSON.stringify(times)} the best is ${expected}`, async () => {
    assert.equal((await told(times)).best, expected);
  });
}

test("the table has a line for each size", async () => {
  const { table } = await told({ 1: 0.123456, 1000: 20 });
  assert.deepEqual(table.split("\n"), [
    "size      ms    sd  batches  kernels ms  per second   GB/s up  GB/s down  GB/s kernels  GFLOP/s",
    "   1  0.1235  0.25        1         0.5        8100  0.001235          -            25     1500",
    "1000      20  0.25        1         0.5       50000  0.001235          -            25     1500",
  ]);
});

test("what fn throws arrives, and later sizes do not run", async () => {
  const { gpu, core } = await manual();
  const given = [];
  const run = (size) => {
    given.push(size);
    throw new Error("run");
  };
  await assert.rejects(gpu.profileSizes(run, [1, 2]), /run/);
  assert.deepEqual(given, [1]);
  assert.equal(core.measuring, false);
});

const WRONG = [
  [[], "sizes must be an array of whole numbers from 1, got []"],
  [[1, 0], "sizes must be an array of whole numbers from 1, got [1, 0]"],
  [[1.5], "sizes must be an array of whole numbers from 1, got [1.5]"],
  [7, "sizes must be an array of whole numbers from 1, got number"],
  [undefined, "sizes must be an array of whole numbers from 1, got undefined"],
];
for (const [sizes, message] of WRONG) {
  test(`refused: sizes ${JSON.stringify(sizes)}`, async () => {
    const { gpu } = await manual();
    await assert.rejects(
      gpu.profileSizes(() => {}, sizes),
      {
        code: "invalid-input",
        message: `profileSizes: ${message}`,
      },
    );
  });
}

test("refused: what a profile of one size refuses", async () => {
  const { gpu } = await manual();
  for (const [fn, options, message] of [
    [3, {}, /fn must be a function, got number/],
    [() => {}, { iterations: 0 }, /whole number from 1/],
    [() => {}, { runs: 1 }, /there is no option 'runs'/],
    [() => {}, 3, /options must be an object/],
  ]) {
    const error = { code: "invalid-input", message };
    await assert.rejects(gpu.profileSizes(fn, [1], options), error);
  }
  await gpu.dispose();
  const call = gpu.profileSizes(() => {}, [1]);
  await assert.rejects(call, { code: "disposed" });
});
