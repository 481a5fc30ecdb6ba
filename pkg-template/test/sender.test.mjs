// When a session sends what it holds, and what producers hear of room in the queue.
// Frames and timers are in clock.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, manual, settled, stateOf } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);

test("the queue is full: the call rejects, and others are untouched", async () => {
  const { gpu, core } = await manual();
  const good = gpu.lerp(f32(1), f32(1), 0);
  core.failures.submit = { code: "queue-full", message: "the queue is full" };
  const bad = gpu.lerp(f32(2), f32(2), 0);
  await assert.rejects(bad, {
    code: "queue-full",
    message: "lerp: the queue is full",
  });
  await assert.rejects(bad, face.FramebatchError);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await good)], [1]);
});

test("the clock hears of answers: an eager session sends what was collected", async () => {
  const { gpu, core } = await manual({ flush: "eager" });
  const now = (at) => (core.queued.length > 0 ? at : NaN);
  core.dueAt = now;
  const first = gpu.lerp(f32(1), f32(1), 0);
  await settled();
  core.dueAt = NaN; // busy
  const second = gpu.lerp(f32(2), f32(2), 0);
  await settled();
  assert.equal(core.queued.length, 1);
  core.dueAt = now;
  core.answer();
  await settled();
  core.answer();
  assert.deepEqual([(await first)[0], (await second)[0]], [1, 2]);
});

for (const event of ["restored", "fallback", "returned"]) {
  test(`an eager session sends what waited for calls that were given up: ${event}`, async () => {
    const { gpu, core } = await manual({ flush: "eager" });
    const given = new AbortController();
    const { signal } = given;
    core.dueAt = (at) => (core.flights.length === 0 ? at : NaN);
    const first = gpu.lerp(f32(1), f32(1), 0, { signal });
    await settled();
    assert.equal(core.flights.length, 1);
    given.abort("enough");
    await assert.rejects(first, (reason) => reason === "enough");
    const second = gpu.lerp(f32(2), f32(2), 0); // The second batch waits for the first.
    await settled();
    assert.equal(core.counts.flushes, 1);
    // The first goes back to the queue, where nobody wants it.
    core.flights = [];
    core.tell("lost", "the device was lost");
    core.tell(event, "nobody is answered");
    await settled();
    assert.equal(core.counts.flushes, 2);
    core.answer();
    assert.deepEqual([...(await second)], [2]);
  });
}

test("only gpu.flush passes the limit of batches on their way", async () => {
  const asked = [];
  for (const flush of ["manual", "eager", (run) => asked.push(run)]) {
    const { gpu, core } = await manual({ flush });
    core.dueAt = (at) => at;
    gpu.lerp(f32(1), f32(1), 0);
    asked.pop()?.();
    await settled();
    gpu.lerp(f32(1), f32(1), 0, { flush: "now" });
    assert.equal(core.counts.atOnce, 0);
    assert.ok(core.counts.flushes > 0);
    const before = core.counts.flushes;
    gpu.flush();
    const { flushes, atOnce } = core.counts;
    assert.deepEqual([flushes, atOnce], [before + 1, 1]);
  }
});

test("a scheduler hears only of calls that wait", async () => {
  let asked = 0;
  const { gpu, core } = await manual({ flush: () => (asked += 1) });
  core.failures.submit = { code: "queue-full", message: "full" };
  await assert.rejects(gpu.lerp(f32(1), f32(1), 0), { code: "queue-full" });
  core.answersAtOnce = true;
  core.full = 1;
  assert.deepEqual([...(await gpu.lerp(f32(1), f32(1), 0))], [1]);
  assert.equal(asked, 0);
  core.full = Infinity;
  gpu.lerp(f32(1), f32(1), 0);
  assert.equal(asked, 1);
});

test("ready and desiredSize follow the queue", async () => {
  const { gpu, core } = await manual();
  core.room = 2;
  assert.equal(gpu.desiredSize, 2);
  await gpu.ready;
  gpu.lerp(f32(1), f32(1), 0);
  gpu.lerp(f32(1), f32(1), 0);
  assert.equal(gpu.desiredSize, 0);
  const { ready } = gpu;
  assert.equal(await stateOf(ready), "pending");
  gpu.flush();
  await ready;
  core.answer();
});

test("a batch that the core sends by itself is polled for like any other", async () => {
  const { gpu, core } = await manual();
  const call = gpu.lerp(f32(1), f32(1), 0);
  // The call's kernel is not compiled: nothing is on its way when `flush` returns.
  const { flush } = core;
  core.flush = () => {};
  gpu.flush();
  flush.call(core);
  const nudges = () => core.counts.nudges;
  const at = core.header();
  await new Promise((run) => setTimeout(run, 30));
  assert.equal(nudges(), 0);
  const count = (flights) => core.view().fill(flights, at + 2, at + 4);
  count(1); // The GPU has it.
  core.tell("sent", "");
  for (let i = 0; i < 200 && nudges() === 0; i++)
    await new Promise((run) => setTimeout(run, 5));
  assert.ok(nudges() > 0, "the first batches are helped after 10 ms");
  count(0);
  core.answer();
  assert.deepEqual([...(await call)], [1]);
});

test("a batch that the GPU has nothing of is not polled for", async () => {
  const { gpu, core } = await manual();
  const call = gpu.lerp(f32(1), f32(1), 0);
  const at = core.header() + 2;
  const { flush } = core;
  core.flush = () => {
    flush.call(core);
    core.view()[at] = 1; // On its way, to the CPU.
  };
  gpu.flush();
  await new Promise((run) => setTimeout(run, 50));
  assert.equal(core.counts.nudges, 0);
  core.view()[at] = 0;
  core.answer();
  assert.deepEqual([...(await call)], [1]);
});
