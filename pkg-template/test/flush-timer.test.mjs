// When the core is asked again, for waits beyond what a timer can hold.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { FlushTimer } = await module("clock/flush-timer");

test("a wait beyond a timer's longest is taken in parts", () => {
  const world = fakeEnvironment();
  const { environment } = world;
  const waits = [];
  const { setTimer } = environment;
  environment.setTimer = (callback, milliseconds) => {
    waits.push(milliseconds);
    return setTimer(callback, milliseconds);
  };
  const due = 2 ** 32;
  let flushes = 0;
  const batch = { flush: () => (flushes += 1), due: () => due };
  const timer = new FlushTimer(environment, batch);
  timer.ask();
  world.pass(due - 1);
  assert.equal(flushes, 0);
  world.pass(1);
  assert.equal(flushes, 1);
  const longest = 2 ** 31 - 1;
  assert.deepEqual(waits, [longest, longest, 2]);
});
