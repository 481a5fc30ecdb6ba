// When calls of high and of low priority go: in tasks of their own, whatever the policy.
// What goes first and in which slices is the core's business.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual, module, settled, stateOf } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { PriorityClock } = await module("clock/priority-clock");
const f32 = (...values) => new Float32Array(values);

/** A clock over so much low work, of which a turn sends one piece. */
function rig({ low = 0, freeFrom = (now) => now } = {}) {
  const world = fakeEnvironment();
  const log = [];
  const state = { low };
  const clock = new PriorityClock(world.environment, {
    turn(goes) {
      if (goes && state.low > 0) state.low -= 1;
      log.push(`${world.time}: ${goes ? "low" : "high"}`);
      return state.low > 0;
    },
    freeFrom: (now) => freeFrom(now),
  });
  return { world, clock, log, state };
}

/** Runs a script against a clock and compares its turns with the expected ones. */
function check(name, options, script, expected) {
  test(name, () => {
    const it = rig(options);
    script(it);
    assert.deepEqual(it.log, expected);
  });
}

check(
  "high goes at the end of its task, once for all of it",
  {},
  ({ world, clock }) => {
    clock.called("high");
    clock.called("high");
    world.task();
    world.task();
    world.pass(100);
  },
  ["0: high"],
);

check(
  "low goes at the end of its task, and on with each answer while some waits",
  { low: 3 },
  ({ world, clock }) => {
    clock.called("low");
    world.task();
    world.task();
    for (let i = 0; i < 5; i += 1) {
      world.pass(10);
      clock.settled();
      world.task();
    }
  },
  ["0: low", "10: low", "20: low"],
);

check(
  "low waits until the main thread is free, and high does not",
  { low: 2, freeFrom: (now) => Math.max(now, 16) },
  ({ world, clock }) => {
    clock.called("low");
    world.task();
    world.pass(5);
    clock.called("high");
    world.task();
    world.pass(20);
    clock.settled();
    world.task();
  },
  ["0: high", "5: high", "16: low", "25: low"],
);

check(
  "answers are nobody's business while no low work waits",
  {},
  ({ world, clock }) => {
    clock.called("high");
    world.task();
    clock.settled();
    clock.flushed();
    world.task();
  },
  ["0: high"],
);

check(
  "a flush may ask for low work, once there was any",
  {},
  ({ world, clock, state }) => {
    clock.called("low");
    world.task();
    state.low = 1;
    clock.flushed();
    world.task();
  },
  ["0: low", "0: low"],
);

check(
  "a clock that is disposed of takes no turns",
  { low: 2, freeFrom: () => 16 },
  ({ world, clock }) => {
    clock.called("low");
    world.task();
    clock.dispose();
    world.pass(100);
    world.task();
  },
  ["0: high"],
);

for (const flush of ["auto", "eager", "manual", () => {}]) {
  test(`high waits for no policy: ${flush}`, async () => {
    const { gpu, core } = await manual({ flush });
    const high = gpu.lerp(f32(1), f32(3), 0.5, { priority: "high" });
    const normal = gpu.lerp(f32(1), f32(1), 0);
    assert.equal(core.flights.length, 0, "not before the end of the task");
    await settled();
    assert.deepEqual(
      [core.flights.length, core.queued.length],
      [1, 1],
      "and alone",
    );
    core.answer();
    assert.deepEqual([...(await high)], [2]);
    gpu.flush();
    core.answer();
    await normal;
    await gpu.dispose();
  });
}

test("low work goes slice by slice, each with the answer to the one before", async () => {
  const { gpu, core } = await manual();
  core.slice = 2;
  const calls = [1, 2, 3, 4, 5].map((value) =>
    gpu.lerp(f32(value), f32(value), 0, { priority: "low" }),
  );
  for (const left of [3, 1, 0]) {
    // A slice that took long, on busy cores, is followed by a rest.
    for (let turn = 0; turn < 1000 && core.flights.length === 0; turn += 1)
      await new Promise((done) => setTimeout(done, 1));
    assert.deepEqual([core.flights.length, core.low.length], [1, left]);
    core.answer();
  }
  const results = await Promise.all(calls);
  assert.deepEqual(
    results.map(([value]) => value),
    [1, 2, 3, 4, 5],
  );
  const { turns } = core.counts;
  gpu.lerp(f32(1), f32(1), 0);
  gpu.flush();
  core.answer();
  await settled();
  assert.equal(core.counts.turns, turns + 1, "a flush asks once more");
});

test("low work that waits for a flush goes with it", async () => {
  const { gpu, core } = await manual();
  core.lowNeedsFlush = true;
  const call = gpu.lerp(f32(1), f32(1), 0, { priority: "low" });
  await settled();
  assert.equal(core.flights.length, 0);
  gpu.flush();
  await settled();
  core.answer();
  assert.deepEqual([...(await call)], [1]);
});

test("a scheduler of the caller's is asked for calls of low priority too", async () => {
  const flushes = [];
  const { gpu, core } = await manual({ flush: (flush) => flushes.push(flush) });
  core.lowNeedsFlush = true;
  const calls = [1, 2].map((value) =>
    gpu.lerp(f32(value), f32(value), 0, { priority: "low" }),
  );
  await settled();
  assert.deepEqual([flushes.length, core.flights.length], [1, 0]);
  flushes[0]();
  await settled();
  core.answer();
  assert.equal((await Promise.all(calls)).length, 2);
});

for (const flush of ["manual", () => {}]) {
  test(`a stream of low priority waits for no flush by hand: ${flush}`, async () => {
    const { gpu, core } = await manual({ flush });
    core.lowNeedsFlush = true;
    const seen = [];
    const work = (chunk) => gpu.lerp(f32(chunk), f32(chunk), 0);
    const streamed = (async () => {
      const options = { priority: "low" };
      for await (const [value] of gpu.stream([1, 2], work, options))
        seen.push(value);
    })();
    for (let i = 0; i < 8; i += 1) {
      await settled();
      while (core.flights.length > 0) core.answer();
    }
    await streamed;
    assert.deepEqual(seen, [1, 2]);
  });
}

test("calls that are made while a session opens keep their priorities", async () => {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const opening = face.shared({ flush: "manual" });
  const calls = ["low", "normal", "high"].map((priority) =>
    opening.lerp(f32(1), f32(1), 0, { priority }),
  );
  open();
  await opening.ready;
  fake.opening = Promise.resolve();
  const { core } = fake;
  await settled();
  const sent = core.flights.map(([{ priority }]) => priority);
  assert.deepEqual([sent, core.queued.length], [[1, 2], 1]);
  opening.flush();
  for (let i = 0; i < 3; i += 1) core.answer();
  await Promise.all(calls);
  await opening.dispose();
});

test("a stream's calls have its priority, unless they say their own", async () => {
  const { gpu, core } = await manual();
  const seen = [];
  const work = async (chunk) => {
    const own = gpu.lerp(f32(chunk), f32(chunk), 0, { priority: "high" });
    const result = await gpu.lerp(f32(chunk), f32(chunk), 0);
    void gpu.lerp(f32(0), f32(0), 0);
    await own;
    return result[0];
  };
  const streamed = (async () => {
    for await (const value of gpu.stream([1, 2], work, { priority: "low" }))
      seen.push(value);
  })();
  for (let i = 0; i < 8; i += 1) {
    await settled();
    for (const { priority } of core.flights.flat()) seen.push(`p${priority}`);
    while (core.flights.length > 0) core.answer();
  }
  await streamed;
  const text = seen.map(String);
  assert.deepEqual(text.filter((one) => one.startsWith("p")).slice(0, 4), [
    "p1",
    "p1",
    "p2",
    "p2",
  ]);
  assert.deepEqual(
    seen.filter((one) => typeof one === "number"),
    [1, 2],
  );
  const after = gpu.lerp(f32(1), f32(1), 0);
  assert.ok(core.queued.length > 0, "calls outside of the function are normal");
  assert.throws(() => gpu.stream([1], work, { priority: "urgent" }), {
    code: "invalid-input",
    message: /^stream: priority must be 'high', 'normal' or 'low'/,
  });
  gpu.flush();
  while (core.flights.length > 0) core.answer();
  await after;
});

test("what throws while low work is sent ends the session", async () => {
  const { gpu, core } = await manual();
  core.failures.turn = new Error("a trap");
  const call = gpu.lerp(f32(1), f32(1), 0, { priority: "low" });
  const { reason } = await stateOf(call);
  assert.equal(reason.code, "fatal");
});
