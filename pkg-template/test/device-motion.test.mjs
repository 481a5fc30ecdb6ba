// Motions that the device computes: one call a frame, whose answers may come late.

import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, frames } from "./animation-frames.mjs";
import { manual, settled } from "./face.mjs";

test("an answer of the device leaves alone what ended before it", async () => {
  const { gpu, core } = await manual();
  const linear = { duration: 1, easing: "linear", engine: "gpu" };
  const [ended, other] = [gpu.tween(0, 100, linear), gpu.tween(0, 100, linear)];
  const step = async (ms, between = () => {}) => {
    frame(ms);
    gpu.flush();
    between();
    core.answer();
    await settled();
  };
  await step(0);
  await step(500, () => ended.cancel());
  assert.deepEqual([ended.value, other.value], [0, 50]);
  other.cancel();
  assert.equal(core.tensors.size, 0);
});

test("an answer of the device is older than what was stepped here since", async () => {
  const { gpu, core } = await manual();
  core.device = { engine: "gpu", software: false };
  const linear = { duration: 1, easing: "linear" };
  const many = new Float32Array(40_000);
  const heard = [];
  const onUpdate = (x) => heard.push(x[0]);
  const a = gpu.tween(many, many.slice().fill(100), linear);
  const b = gpu.tween(many, many.slice().fill(100), { ...linear, onUpdate });
  frame();
  frame(500);
  gpu.flush();
  assert.equal(core.flights.length, 1);
  a.cancel(); // The other is few floats now.
  frame(250);
  frame(250);
  assert.equal(b.value[0], 100);
  assert.equal(await b.finished, true);
  const told = heard.length;
  core.answer();
  await settled();
  assert.deepEqual([b.value[0], heard.length], [100, told]);
});

test("weights of many motions leave the device with their step", async () => {
  const { gpu, core } = await manual();
  const linear = { duration: 9, easing: "linear", engine: "gpu" };
  const tweens = Array.from({ length: 16_384 }, () => gpu.tween(0, 1, linear));
  const held = [];
  for (let i = 0; i < 5; i += 1) {
    frame(16);
    gpu.flush();
    core.answer();
    await settled();
    held.push(core.tensors.size);
  }
  assert.deepEqual(held, [2, 2, 2, 2, 2], "where they come from, and go to");
  for (const tween of tweens) tween.cancel();
  assert.equal(core.tensors.size, 0);
});

test("many floats are one call of the frame", async () => {
  const { gpu, core } = await manual();
  await gpu.ready;
  const wide = (length, x) => new Float32Array(length).fill(x);
  const seen = [];
  const far = { engine: "gpu", duration: 1, easing: "linear" };
  const tweens = [300, 300, 20].map((length, i) =>
    gpu.tween(wide(length, 0), wide(length, 10 * (i + 1)), {
      ...far,
      onUpdate: (value) => seen.push([i, value.length, value[0], value.at(-1)]),
    }),
  );
  const spring = gpu.spring(wide(20, 1), wide(20, 0), { engine: "gpu" });
  const here = gpu.tween(0, 1, { duration: 1, easing: "linear" });
  frame();
  frame(250); // While the first is on its way, no other is sent.
  assert.equal(here.value, 0.25);
  assert.equal(core.queued.length, 1);
  const step = async (ms) => {
    frame(ms);
    gpu.flush();
    core.answer();
    await settled();
  };
  await step(0);
  seen.length = 0;
  await step(250);
  assert.deepEqual(seen, [
    [0, 300, 5, 5],
    [1, 300, 10, 10],
    [2, 20, 15, 15],
  ]);
  assert.ok(spring.value[3] > 0 && spring.value[3] < 0.1);
  const held = core.tensors.size;
  assert.ok(held > 0);
  spring.cancel();
  await step(1000);
  assert.deepEqual(await Promise.all(tweens.map(({ finished }) => finished)), [
    true,
    true,
    true,
  ]);
  assert.equal(core.tensors.size, 0);
  assert.equal(frames.size, 0);
});

test("a listener may end and begin other motions", async () => {
  const { gpu, core } = await manual();
  const linear = { duration: 1, easing: "linear" };
  const wide = (x) => new Float32Array(20).fill(x);
  const far = (to) =>
    gpu.tween(wide(0), wide(to), { ...linear, engine: "gpu" });
  const heard = [];
  let begun;
  const first = gpu.tween(0, 1, {
    ...linear,
    onUpdate: (x) => {
      if (x < 0.25 || begun !== undefined) return;
      far1.cancel();
      near.cancel();
      begun = far(8);
    },
  });
  const [far1, far2] = [far(1), far(2)];
  const near = gpu.tween(0, 1, { ...linear, onUpdate: (x) => heard.push(x) });
  const step = async (ms) => {
    frame(ms);
    gpu.flush();
    if (core.flights.length > 0) core.answer();
    await settled();
  };
  await step(0);
  await step(250);
  assert.deepEqual(heard, [0]);
  assert.deepEqual([far1.value[0], far2.value[0]], [0, 0.5]);
  await step(250);
  await step(250);
  assert.deepEqual([first.value, far2.value[0]], [0.75, 1.5]);
  // What is on the device is chosen anew, so that it is no longer left out.
  assert.equal(begun.value[0], 2);
  assert.equal(core.counts.submits, 4);
  const ends = [far1.finished, near.finished];
  assert.deepEqual(await Promise.all(ends), [false, false]);
  begun.cancel();
  await step(250);
  assert.equal(await far2.finished, true);
  assert.equal(core.tensors.size, 0);
  assert.equal(frames.size, 0);
});
