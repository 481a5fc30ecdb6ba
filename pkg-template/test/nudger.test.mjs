// Which way answers are hurried, and that nudges end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { Nudger } = await module("nudger");

/** A nudger, and a GPU under it. */
function hurried() {
  const world = fakeEnvironment();
  const target = {
    nudges: 0,
    batches: 0,
    nudge: () => (target.nudges += 1),
    flights: () => target.batches,
  };
  const nudger = new Nudger(world.environment, target);
  const settle = () => {
    target.batches -= 1;
    nudger.returned();
  };
  const send = () => {
    target.batches += 1;
    nudger.sent();
  };
  return { world, target, nudger, send, settle };
}

/** A nudger that has made up its mind. */
function decided(hurry) {
  const all = hurried();
  all.nudger.hurry = hurry;
  all.nudger.measuring = false;
  return all;
}

const cases = [
  ["nothing helps", { none: 3, few: 3, loop: 2.9 }, "none"],
  ["a few do", { none: 3, few: 0.4, loop: 0.1 }, "few"],
  ["only a loop does", { none: 100, few: 99, loop: 1.4 }, "loop"],
  ["the work itself is slow", { none: 30, few: 30, loop: 29 }, "none"],
  ["slow work is noticed late", { none: 30, few: 20, loop: 29 }, "few"],
  [
    "the first batches are slow for other reasons",
    { none: 3, few: 3, loop: 3 },
    "none",
    500,
  ],
];
for (const [name, times, expected, cold] of cases) {
  test(`chosen when ${name}: ${expected}`, () => {
    const { world, nudger, send, settle } = hurried();
    for (let batch = 0; nudger.measuring; batch += 1) {
      assert.ok(batch < 30, "it never makes up its mind");
      send();
      world.time += batch < 2 && cold ? cold : times[nudger.hurry];
      settle();
    }
    assert.equal(nudger.hurry, expected);
  });
}

test("measuring: what is not hurried is helped after ten milliseconds", () => {
  const { world, target, nudger, send, settle } = hurried();
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
  assert.equal(nudger.measuring, true);
});

test("measuring: batches that overlap teach nothing", () => {
  const { world, nudger, send, settle } = hurried();
  for (let i = 0; i < 60; i += 1) {
    send();
    send();
    world.time += 3;
    settle();
    settle();
  }
  assert.equal(nudger.measuring, true);
});

test("none: nothing is ever submitted", () => {
  const { world, target, send } = decided("none");
  send();
  world.pass(2000);
  world.task();
  assert.equal(target.nudges, 0);
});

test("few: two a millisecond for a batch on its way, none once it is back", () => {
  const { world, target, send, settle } = decided("few");
  send();
  send();
  for (const expected of [4, 6, 8, 8]) {
    world.pass(1);
    assert.equal(target.nudges, expected);
  }
  settle();
  send();
  settle();
  settle();
  world.pass(5);
  assert.equal(target.nudges, 8);
});

test("chosen by the usual time: one late batch and one early one change nothing", () => {
  const { world, nudger, send, settle } = hurried();
  const times = { none: [3, 0.3, 3, 9, 3], few: [1, 1, 30, 1, 0.9] };
  for (let batch = 0; nudger.measuring; batch += 1) {
    send();
    world.time += batch < 2 ? 1 : times[nudger.hurry][(batch - 2) % 5];
    settle();
  }
  assert.equal(nudger.hurry, "few");
});

test("loop: every task at first, then a pace, and never longer than a second", () => {
  const { world, target, send } = decided("loop");
  send();
  for (let i = 0; i < 10; i += 1) world.task();
  assert.equal(target.nudges, 10);
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

test("loop: ends with the batch, and starts again with the next", () => {
  const { world, target, send, settle } = decided("loop");
  send();
  world.task();
  settle();
  world.task();
  world.task();
  assert.equal(target.nudges, 1);
  send();
  world.task();
  assert.equal(target.nudges, 2);
});

test("disposed: what is on its way stays unsent", () => {
  for (const hurry of ["few", "loop"]) {
    const { world, target, nudger, send } = decided(hurry);
    send();
    nudger.dispose();
    world.task();
    world.pass(10);
    assert.equal(target.nudges, 0, hurry);
    assert.equal(world.channels, 0);
  }
});
