// Tweens, and what all motions have in common, frame by frame. Springs, and what the device
// computes of motions, are in spring.test.mjs and device-motion.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, frames, near } from "./animation-frames.mjs";
import { manual, module, settled } from "./face.mjs";

const { stepperOf } = await module("animation/motion");
const { callsOf } = await module("session/session");

test("a tween goes from one value to another, and leaves nothing", async () => {
  const { gpu } = await manual();
  const seen = [];
  const onUpdate = (x) => seen.push(x);
  const options = { duration: 0.1, easing: "linear", onUpdate };
  const tween = gpu.tween(2, 4, options);
  assert.equal(tween.value, 2);
  for (const ms of [0, 25, 25, 25, 50]) frame(ms);
  [2, 2.5, 3, 3.5, 4].forEach((want, i) => near(seen[i], want));
  assert.equal(seen.length, 5);
  assert.equal(await tween.finished, true);
  assert.equal(frames.size, 0);
  assert.equal(stepperOf(callsOf(gpu)).size, 0);
});

test("arrays, delays and easings", async () => {
  const { gpu } = await manual();
  const to = new Float32Array([10, -10]);
  const options = { duration: 1, delay: 0.5, easing: "steps(2)" };
  const tween = gpu.tween([0, 0], to, options);
  to.fill(99); // The value was copied.
  const seen = [];
  for (const ms of [0, 400, 200, 500, 400]) {
    frame(ms);
    seen.push([...tween.value]);
  }
  assert.deepEqual(seen, [
    [0, 0],
    [0, 0],
    [0, 0],
    [5, -5],
    [10, -10],
  ]);
  assert.equal(await tween.finished, true);
});

test("nothing moves before its delay is over", async () => {
  const { gpu } = await manual();
  const cases = [
    [{ duration: 0, delay: 1 }, [0, 0, 0, 1]],
    [{ duration: 1, delay: 1, easing: "step-start" }, [0, 0, 0, 1, 1]],
    [
      { duration: 1, delay: 1, easing: "steps(2, jump-both)" },
      [0, 0, 0, 1 / 3, 1],
    ],
  ];
  const heard = cases.map(([options]) => {
    const values = [];
    gpu.tween(0, 1, { ...options, onUpdate: (x) => values.push(x) });
    return values;
  });
  for (const ms of [0, 500, 400, 200, 1000]) frame(ms);
  cases.forEach(([, expected], i) => {
    assert.equal(heard[i].length, expected.length);
    expected.forEach((want, k) => near(heard[i][k], want));
  });
});

test("all motions of a session share one frame; those that end leave the others", async () => {
  const { gpu } = await manual();
  const motions = Array.from({ length: 1000 }, (_, i) =>
    i % 2
      ? gpu.tween(0, i, { duration: 0.1 + i / 1000 })
      : gpu.spring(-1, i, { precision: 0.01 }),
  );
  assert.equal(frames.size, 1);
  const control = new AbortController();
  const given = gpu.tween(0, 1, { signal: control.signal });
  frame();
  motions[1].cancel();
  control.abort();
  assert.deepEqual(await Promise.all([motions[1].finished, given.finished]), [
    false,
    false,
  ]);
  assert.equal(stepperOf(callsOf(gpu)).size, 999);
  for (let i = 0; i < 300; i += 1) frame(16);
  const ends = await Promise.all(motions.map(({ finished }) => finished));
  assert.equal(ends.filter(Boolean).length, 999);
  motions.forEach(({ value }, i) => {
    if (i !== 1) assert.equal(value, i);
  });
  assert.equal(frames.size, 0);
});

test("less motion on request: the end, with the first frame", async () => {
  const { gpu } = await manual();
  globalThis.matchMedia = (query) => ({
    matches: query === "(prefers-reduced-motion: reduce)",
  });
  const short = { reducedMotion: "jump" };
  const tween = gpu.tween(0, 1, { duration: 9, delay: 9, ...short });
  const spring = gpu.spring(0, 1, short);
  const usual = gpu.tween(0, 1, { duration: 9 });
  frame();
  assert.deepEqual([tween.value, spring.value, usual.value], [1, 1, 0]);
  assert.deepEqual(await Promise.all([tween.finished, spring.finished]), [
    true,
    true,
  ]);
  usual.cancel();
});

test("the end of a session ends its motions", async () => {
  const { gpu } = await manual();
  const tween = gpu.tween(0, 1);
  await gpu.dispose();
  assert.equal(await tween.finished, false);
  assert.equal(frames.size, 0);
  assert.throws(() => gpu.tween(0, 1), { code: "disposed" });
});

/** What `work` throws where nobody catches it. */
async function uncaught(work) {
  const thrown = [];
  const listeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => thrown.push(error.message));
  try {
    await work();
    await settled();
    return thrown;
  } finally {
    process.removeAllListeners("uncaughtException");
    for (const listener of listeners) process.on("uncaughtException", listener);
  }
}

test("motions that cannot be laid end, and are told once", async () => {
  const { gpu, core } = await manual();
  const ends = [];
  const value = new Float32Array(2);
  const bad = {
    ...{ from: value, to: value, velocity: undefined, value, engine: "gpu" },
    at() {
      throw new Error("no moment");
    },
    updated() {},
    ended: (isFinished) => ends.push(isFinished),
  };
  const thrown = await uncaught(async () => {
    stepperOf(callsOf(gpu)).add(bad);
    frame();
    await settled();
    frame(16);
  });
  assert.deepEqual([thrown, ends], [["no moment"], [false]]);
  const good = gpu.tween(value, [1, 1], { engine: "gpu", duration: 0.01 });
  for (const ms of [0, 20]) {
    frame(ms);
    gpu.flush();
    core.answer();
    await settled();
  }
  assert.equal(await good.finished, true);
});

test("what a listener throws ends its own motion alone", async () => {
  const { gpu } = await manual();
  const thrown = await uncaught(async () => {
    const onUpdate = () => {
      throw new Error("mine");
    };
    const bad = gpu.tween(0, 1, { onUpdate });
    const good = gpu.tween(0, 1, { duration: 0.01 });
    frame();
    frame(20);
    assert.equal(await bad.finished, false);
    assert.equal(await good.finished, true);
  });
  assert.deepEqual(thrown, ["mine"]);
});

test("wrong motions throw in a sentence", async () => {
  const { gpu } = await manual();
  const cases = [
    [
      () => gpu.tween("0", 1),
      "tween: from must be a number, a Float32Array or an array of numbers, got string",
    ],
    [
      () => gpu.tween(NaN, 1),
      "tween: from must be a number, a Float32Array or an array of numbers, got NaN",
    ],
    [
      () => gpu.tween([0, NaN], [1, 1]),
      "tween: from must be a number, a Float32Array or an array of numbers, got NaN",
    ],
    [
      () => gpu.spring(0, 1, { velocity: [NaN] }),
      "spring: velocity must be a number, a Float32Array or an array of numbers, got NaN",
    ],
    [
      () => gpu.tween([0, 1], [1]),
      "tween: to has 1 numbers, but from has 2; give both as many",
    ],
    [
      () => gpu.tween(0, 1, { duration: -1 }),
      "tween: duration must be a number from 0, got -1",
    ],
    [
      () => gpu.tween(0, 1, { speed: 1, label: "x" }),
      "tween (label 'x'): there is no option 'speed'; the options are duration, delay, easing, onUpdate, signal, reducedMotion, engine, label",
    ],
    [
      () => gpu.tween(0, 1, { onUpdate: 1 }),
      "tween: onUpdate must be a function, got number",
    ],
    [
      () => gpu.tween(0, 1, { reducedMotion: true }),
      "tween: reducedMotion must be 'ignore' or 'jump', got boolean",
    ],
    [
      () => gpu.spring(0, 1, { stiffness: 0 }),
      "spring: stiffness must be a number above 0, got 0",
    ],
    [
      () => gpu.spring(0, 1, { mass: "1" }),
      "spring: mass must be a number above 0, got string",
    ],
    [
      () => gpu.spring(0, 1, { engine: "tpu" }),
      "spring: engine must be 'cpu' or 'gpu', got 'tpu'",
    ],
    [
      () => gpu.spring(0, 1, { signal: {} }),
      "spring: signal must be an AbortSignal, got Object",
    ],
  ];
  for (const [make, message] of cases) {
    assert.throws(make, { code: "invalid-input", message });
  }
  assert.equal(frames.size, 0);
});
