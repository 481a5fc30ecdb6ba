// How a session polls for completed work: the mode that is chosen, and that polling ends
// with the batches.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { CompletionPoller } = await module("clock/completion-polling");

/** A poller, and a GPU under it. */
function polling() {
  const world = fakeEnvironment();
  const target = {
    nudges: 0,
    batches: 0,
    nudge: () => (target.nudges += 1),
    /** What was asked, and answers: a function each. */
    asked: [],
    echo: () => new Promise((...answer) => target.asked.push(answer)),
    owed: () => target.batches,
  };
  const poller = new CompletionPoller(world.environment, target);
  const settle = () => {
    target.batches -= 1;
    poller.returned();
  };
  const send = () => {
    target.batches += 1;
    poller.sent();
  };
  return { world, target, poller, send, settle };
}

/** A poller in this mode, which it does not leave. */
function decided(mode) {
  const all = polling();
  all.poller.mode = mode;
  all.poller.measuring = false;
  return all;
}

const cases = [
  ["questions do", { none: 3, echo: 0.4, loop: 0.1 }, "echo"],
  ["nothing helps, nor hurts", { none: 3, echo: 3.1, loop: 2.9 }, "echo"],
  ["questions seem to hurt a little", { none: 3, echo: 4, loop: 2.9 }, "echo"],
  ["questions hurt", { none: 3, echo: 5, loop: 2.9 }, "none"],
  ["only a loop does", { none: 100, echo: 99, loop: 1.4 }, "loop"],
  ["the work itself is slow", { none: 30, echo: 30, loop: 29 }, "echo"],
  ["slow work is kept waiting", { none: 30, echo: 50, loop: 29 }, "none"],
  [
    "the first batches are slow for other reasons",
    { none: 3, echo: 5, loop: 3 },
    "none",
    500,
  ],
];
for (const [name, times, expected, cold] of cases) {
  test(`chosen when ${name}: ${expected}`, () => {
    const { world, poller, send, settle } = polling();
    for (let batch = 0; poller.measuring; batch += 1) {
      assert.ok(batch < 30, "it never makes up its mind");
      send();
      world.time += batch < 2 && cold ? cold : times[poller.mode];
      settle();
    }
    assert.equal(poller.mode, expected);
  });
}

test("the CPU's batches are not polled for, and nothing is learned of them", () => {
  const { world, target, poller } = polling();
  for (let batch = 0; batch < 50; batch += 1) {
    poller.sent();
    world.pass(20);
    world.task();
    poller.returned();
  }
  assert.deepEqual([poller.measuring, poller.mode], [true, "none"]);
  assert.deepEqual([target.nudges, target.asked.length], [0, 0]);
});

test("what the CPU answers while the GPU is at work is not the GPU's time", () => {
  const times = { none: 3, echo: 0.4, loop: 2.9 };
  const { world, poller, send, settle } = polling();
  for (let batch = 0; poller.measuring; batch += 1) {
    assert.ok(batch < 30, "it never makes up its mind");
    send();
    const took = times[poller.mode];
    // The slower way would look like the faster one.
    poller.returned();
    world.time += took;
    settle();
  }
  assert.equal(poller.mode, "echo");
});

test("measuring: a batch that nobody polls for is nudged after ten milliseconds", () => {
  const { world, target, poller, send, settle } = polling();
  send();
  world.pass(9);
  world.task();
  assert.equal(target.nudges, 0);
  world.pass(2);
  world.task();
  assert.equal(target.nudges, 1);
  settle();
  world.task();
  world.task();
  assert.equal(target.nudges, 1, "it ends with the batch");
  assert.equal(poller.measuring, true);
});

test("measuring: batches that overlap teach nothing", () => {
  const { world, poller, send, settle } = polling();
  for (let i = 0; i < 60; i += 1) {
    send();
    send();
    world.time += 3;
    settle();
    settle();
  }
  assert.equal(poller.measuring, true);
});

test("none: nothing is ever submitted", () => {
  const { world, target, send } = decided("none");
  send();
  world.pass(2000);
  world.task();
  assert.equal(target.nudges, 0);
});

test("echo: a question behind each answer, for as long as a batch is on its way", async () => {
  const { target, send, settle } = decided("echo");
  send();
  send();
  assert.equal(target.asked.length, 1, "one at a time");
  for (const expected of [2, 3, 4]) {
    await answer(target);
    assert.equal(target.asked.length, expected);
  }
  settle();
  await answer(target);
  assert.equal(target.asked.length, 5, "one batch is still there");
  settle();
  await answer(target);
  assert.equal(target.asked.length, 5);
  send();
  assert.equal(target.asked.length, 6);
  assert.equal(target.nudges, 0);
});

test("echo: ends after 8 milliseconds", async () => {
  const { world, target, send } = decided("echo");
  send();
  for (let n = 1; n < 30; n += 1) await answer(target);
  assert.equal(target.asked.length, 30);
  world.pass(7);
  await answer(target);
  assert.equal(target.asked.length, 31);
  world.pass(1);
  await answer(target);
  assert.equal(target.asked.length, 31);
  send();
  assert.equal(target.asked.length, 32);
});

test("echo: ends where nobody answers", async () => {
  const { target, send } = decided("echo");
  send();
  target.asked.at(-1)[1](new Error("the device is lost"));
  await nothing();
  assert.equal(target.asked.length, 1);
  target.echo = () => undefined;
  send();
  await nothing();
  assert.equal(target.asked.length, 1);
});

/** Answers the last question. */
async function answer(target) {
  target.asked.at(-1)[0]();
  await nothing();
}

const nothing = () => new Promise((resolve) => setImmediate(resolve));

test("chosen by the usual time: one late batch and one early one change nothing", () => {
  const { world, poller, send, settle } = polling();
  const times = { none: [3, 0.3, 3, 9, 3], echo: [1, 1, 30, 1, 0.9] };
  for (let batch = 0; poller.measuring; batch += 1) {
    send();
    world.time += batch < 2 ? 1 : times[poller.mode][(batch - 2) % 5];
    settle();
  }
  assert.equal(poller.mode, "echo");
});

test("loop: the next nudge when the browser has taken one, then a pace, and never longer than a second", async () => {
  const { world, target, send } = decided("loop");
  send();
  world.task();
  for (let i = 1; i <= 10; i += 1) {
    assert.equal(target.nudges, i);
    world.task();
    assert.equal(target.nudges, i, "not before it was taken");
    await answer(target);
    world.task();
  }
  world.pass(20);
  world.task();
  const fast = target.nudges;
  world.pass(100);
  assert.equal(target.nudges - fast, 20, "one in five milliseconds");
  world.pass(2000);
  const last = target.nudges;
  world.pass(2000);
  world.task();
  assert.equal(target.nudges, last);
});

test("loop: a nudge that is never taken delays the next by five milliseconds", async () => {
  const { world, target, send } = decided("loop");
  send();
  world.task();
  world.pass(5);
  assert.equal(target.nudges, 2);
  target.asked[0][0](); // Too late: another nudge is on its way.
  await nothing();
  world.task();
  assert.equal(target.nudges, 2);
  target.asked[1][1](new Error("the device is lost"));
  await nothing();
  world.task();
  assert.equal(target.nudges, 3);
});

test("loop: ends with the batch, and starts again with the next", async () => {
  const { world, target, send, settle } = decided("loop");
  send();
  world.task();
  settle();
  await answer(target);
  world.task();
  world.pass(20);
  assert.equal(target.nudges, 1);
  send();
  world.task();
  assert.equal(target.nudges, 2);
});

test("disposed: what is on its way stays unsent", () => {
  const { world, target, poller, send } = decided("loop");
  send();
  poller.dispose();
  world.task();
  world.pass(10);
  assert.equal(target.nudges, 0);
  assert.equal(world.channels, 0);
});

test("disposed: nothing more is asked", async () => {
  const { target, poller, send } = decided("echo");
  send();
  poller.dispose();
  await answer(target);
  assert.equal(target.asked.length, 1);
});

/**
 * A browser that notices what is done when it is nudged, and otherwise at its own pace; the
 * time that each batch took.
 */
async function slowToNotice({ world, target, send, settle }, { work, pace }) {
  const start = world.time;
  send();
  const { nudges } = target;
  while (target.batches > 0) {
    world.pass(1);
    world.task();
    const waited = world.time - start;
    const isNudged = target.nudges > nudges && waited >= work;
    if (isNudged || waited >= pace) settle();
    if (target.asked.length > 0)
      target.asked.splice(0).forEach(([yes]) => yes());
    await nothing();
  }
  return world.time - start;
}

test("batches at once behind each other, of a browser that looks every 100 ms: a loop", async () => {
  const all = polling();
  for (let batch = 0; all.poller.measuring; batch += 1) {
    assert.ok(batch < 30, "it never makes up its mind");
    await slowToNotice(all, { work: 1, pace: 100 });
  }
  assert.equal(all.poller.mode, "loop");
});

test("a loop no slower than the nudges is kept, however uneven the machine", async () => {
  const all = polling();
  const work = [9, 14, 25, 8, 15];
  for (let batch = 0; all.poller.measuring; batch += 1) {
    assert.ok(batch < 30, "it never makes up its mind");
    const polled = all.poller.mode === "loop";
    await slowToNotice(all, { work: polled ? work[batch % 5] : 1, pace: 100 });
  }
  assert.equal(all.poller.mode, "loop");
});

test("batches that become far slower are measured again", async () => {
  const all = polling();
  const { poller, target } = all;
  const quick = { work: 1, pace: 2 };
  for (let batch = 0; poller.measuring && batch < 30; batch += 1) {
    await slowToNotice(all, quick);
  }
  assert.equal(poller.mode, "echo");
  poller.mode = "none"; // The poller acts as though echoes had hurt.
  const slow = { work: 1, pace: 100 };
  for (let batch = 0; batch < 20; batch += 1) await slowToNotice(all, slow);
  assert.deepEqual([poller.mode, poller.measuring], ["loop", false]);
  assert.ok(target.nudges > 0);
  // Work that is slow by itself is measured once.
  const { poller: patient, ...rest } = polling();
  const heavy = { work: 200, pace: 200 };
  for (let batch = 0; batch < 60; batch += 1) {
    await slowToNotice({ poller: patient, ...rest }, heavy);
  }
  assert.equal(patient.measuring, false);
});
