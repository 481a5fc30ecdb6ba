// Which way answers are hurried, and that nudges end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module, settled } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { Nudger } = await module("nudger");

/** A nudger, and a GPU under it whose read-backs take as long as `takes` says. */
function hurried(takes = () => 0) {
  const world = fakeEnvironment();
  const target = {
    nudges: 0,
    batches: 0,
    nudge: () => (target.nudges += 1),
    flights: () => target.batches,
    probe: () => {
      world.time += takes(nudger.hurry);
      return Promise.resolve();
    },
  };
  const nudger = new Nudger(world.environment, target);
  return { world, target, nudger };
}

const cases = [
  ["nothing helps", { none: 3, few: 3, loop: 2.9 }, "none"],
  ["a few do", { none: 3, few: 0.4, loop: 0.9 }, "few"],
  ["only a loop does", { none: 100, few: 99, loop: 1.4 }, "loop"],
  ["it is fast already", { none: 0.1, few: 0.01, loop: 0.01 }, "none"],
];
for (const [name, times, expected] of cases) {
  test(`chosen when ${name}: ${expected}`, async () => {
    const { nudger } = hurried((hurry) => times[hurry]);
    await nudger.choose();
    assert.equal(nudger.hurry, expected);
  });
}

test("none: nothing is ever submitted", () => {
  const { world, target, nudger } = hurried();
  target.batches = 1;
  nudger.sent();
  world.pass(2000);
  world.task();
  assert.equal(target.nudges, 0);
});

test("few: four for a batch on its way, none once it is back", () => {
  const { world, target, nudger } = hurried();
  nudger.hurry = "few";
  target.batches = 1;
  nudger.sent();
  nudger.sent();
  world.pass(1);
  assert.equal(target.nudges, 4);
  nudger.sent();
  target.batches = 0;
  world.pass(1);
  assert.equal(target.nudges, 4);
});

test("loop: every task at first, then a pace, and never longer than a second", () => {
  const { world, target, nudger } = hurried();
  nudger.hurry = "loop";
  target.batches = 1;
  nudger.sent();
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
  const { world, target, nudger } = hurried();
  nudger.hurry = "loop";
  target.batches = 1;
  nudger.sent();
  world.task();
  target.batches = 0;
  world.task();
  world.task();
  assert.equal(target.nudges, 1);
  target.batches = 1;
  nudger.sent();
  world.task();
  assert.equal(target.nudges, 2);
});

test("disposed: what is on its way stays unsent", async () => {
  for (const hurry of ["few", "loop"]) {
    const { world, target, nudger } = hurried();
    nudger.hurry = hurry;
    target.batches = 1;
    nudger.sent();
    nudger.dispose();
    world.task();
    world.pass(10);
    await settled();
    assert.equal(target.nudges, 0, hurry);
    assert.equal(world.channels, 0);
  }
});
