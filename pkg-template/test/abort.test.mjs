// A call's signal, in every state the call can be in.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { face, fake, manual, settled } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const listeners = (signal) => getEventListeners(signal, "abort").length;

test("already aborted: rejects with the reason, and nothing is submitted", async () => {
  const { gpu, core } = await manual();
  const reason = new Error("too late");
  const promise = gpu.lerp(f32(1), f32(1), 0, {
    signal: AbortSignal.abort(reason),
  });
  await assert.rejects(promise, (error) => error === reason);
  assert.equal(core.counts.submits, 0);
});

test("already aborted, with bad input: the bad input is what is said", async () => {
  const { gpu } = await manual();
  const promise = gpu.lerp(f32(1), f32(1, 2), 0, {
    signal: AbortSignal.abort(),
  });
  await assert.rejects(promise, { code: "invalid-input" });
});

for (const state of ["queued", "in flight"]) {
  test(`${state}: rejects with the reason, frees the ticket, leaves the neighbors`, async () => {
    const { gpu, core } = await manual();
    const controller = new AbortController();
    const before = gpu.lerp(f32(1), f32(1), 0);
    const promise = gpu.lerp(f32(2), f32(2), 0, { signal: controller.signal });
    const after = gpu.lerp(f32(3), f32(3), 0);
    if (state === "in flight") gpu.flush();
    assert.equal(listeners(controller.signal), 1);
    controller.abort("changed my mind");
    assert.equal(core.counts.aborts, 1);
    assert.equal(listeners(controller.signal), 0);
    await assert.rejects(promise, (error) => error === "changed my mind");
    if (state === "queued") gpu.flush();
    core.answer();
    assert.deepEqual([...(await before), ...(await after)], [1, 3]);
  });
}

test("no memory for a copy while the session opens: nothing of the call is left", async () => {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const gpu = face.shared({ flush: "manual" });
  const controller = new AbortController();
  const [a, b] = [f32(1), f32(1)];
  const { Float32Array } = globalThis;
  globalThis.Float32Array = class extends Float32Array {
    constructor() {
      throw new RangeError("no memory");
    }
  };
  const refused = gpu.lerp(a, b, 0, {
    signal: controller.signal,
    deadlineMs: 1,
    onMetrics: () => assert.fail("of a stranger's batch"),
  });
  globalThis.Float32Array = Float32Array;
  await assert.rejects(refused, { code: "out-of-memory" });
  assert.equal(listeners(controller.signal), 0);
  controller.abort();
  const other = gpu.lerp(a, b, 0);
  open();
  await gpu.ready;
  assert.equal(fake.core.measuring, false);
  gpu.flush();
  fake.core.answer();
  assert.deepEqual([...(await other)], [1]);
  await new Promise((run) => setTimeout(run, 5)); // Past its deadline.
  await gpu.dispose();
});

test("waiting for the session to open: never reaches the core", async () => {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const gpu = face.shared({ flush: "manual" });
  const controller = new AbortController();
  const promise = gpu.lerp(f32(1), f32(1), 0, { signal: controller.signal });
  const other = gpu.lerp(f32(2), f32(2), 0);
  controller.abort();
  await assert.rejects(promise, { name: "AbortError" });
  assert.equal(gpu.stats().pending, 1);
  open();
  await gpu.ready;
  assert.equal(fake.core.counts.submits, 1);
  gpu.flush();
  fake.core.answer();
  assert.deepEqual([...(await other)], [2]);
  await gpu.dispose();
  fake.opening = Promise.resolve();
});

test("answered: a late abort changes nothing, and no listener is left", async () => {
  const { gpu, core } = await manual();
  const controller = new AbortController();
  const { signal } = controller;
  const resolved = gpu.lerp(f32(1), f32(1), 0, { signal });
  gpu.flush();
  core.answer();
  const failed = gpu.lerp(f32(1), f32(1), 0, { signal });
  gpu.flush();
  core.answer({ failure: { code: "fatal", message: "broken" } });
  core.failures.submit = { code: "queue-full", message: "full" };
  const refused = gpu.lerp(f32(1), f32(1), 0, { signal });
  assert.equal(listeners(signal), 0);
  controller.abort();
  assert.equal(core.counts.aborts, 0);
  assert.deepEqual([...(await resolved)], [1]);
  await assert.rejects(failed, { code: "fatal" });
  await assert.rejects(refused, { code: "queue-full" });
});

test("one signal for many calls gives all of them up, and Node warns of no leak", async () => {
  const { gpu, core } = await manual();
  const controller = new AbortController();
  const { signal } = controller;
  const warnings = [];
  const warned = ({ name }) => warnings.push(name);
  process.on("warning", warned);
  const promises = Array.from({ length: 100 }, (_, i) =>
    gpu.lerp(f32(i), f32(i), 0, { signal }),
  );
  gpu.flush();
  controller.abort("all");
  const outcomes = await Promise.allSettled(promises);
  assert.ok(outcomes.every(({ reason }) => reason === "all"));
  core.answer();
  await settled();
  assert.equal(core.counts.aborts, 100);
  process.off("warning", warned);
  assert.deepEqual(warnings, []);
});

test("giving calls up makes room", async () => {
  const { gpu, core } = await manual();
  core.room = 1;
  const controller = new AbortController();
  const promise = gpu.lerp(f32(1), f32(1), 0, { signal: controller.signal });
  const { ready } = gpu;
  controller.abort();
  await assert.rejects(promise);
  await ready;
});

for (const state of ["queued", "in flight"]) {
  test(`${state}: a deadline rejects with timeout, and frees the ticket`, async () => {
    const { gpu, core } = await manual();
    const late = gpu.lerp(f32(1), f32(1), 0, { deadlineMs: 5, label: "map" });
    const neighbor = gpu.lerp(f32(2), f32(2), 0);
    if (state === "in flight") gpu.flush();
    await assert.rejects(late, {
      code: "timeout",
      message: "lerp (label 'map'): no answer within 5 ms",
    });
    assert.equal(core.counts.aborts, 1);
    if (state === "queued") gpu.flush();
    core.answer();
    assert.deepEqual(await neighbor, f32(2));
  });
}

test("answered in time: the deadline changes nothing", async () => {
  const { gpu, core } = await manual();
  const prompt = gpu.lerp(f32(1), f32(3), 0.5, { deadlineMs: 5 });
  gpu.flush();
  core.answer();
  assert.deepEqual(await prompt, f32(2));
  await new Promise((done) => setTimeout(done, 15));
  assert.equal(core.counts.aborts, 0);
});
