// A clock over a batch that counts its calls, with frames, tasks and time in the test's
// hand. A script is a list of what happens; the expected text is the list of flushes, each
// with its time and the calls in it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { clockFor } = await module("clock/clock");

/** The clock of a policy, its batch, and the world around both. */
export function rig(
  policy,
  { due = () => NaN, dueInFrames = due, ...places } = {},
) {
  const world = fakeEnvironment(places);
  const log = [];
  const state = { queued: 0, since: 0 };
  const batch = {
    flush() {
      log.push(`${world.time}: ${state.queued}`);
      state.queued = 0;
      clock.flushed();
    },
    due: (now) => due(now, state),
    dueInFrames: (now) => dueInFrames(now, state),
  };
  const clock = clockFor(policy, world.environment, batch);
  const call = (count = 1) => {
    for (let i = 0; i < count; i += 1) {
      if (state.queued === 0) state.since = world.time;
      state.queued += 1;
      clock.called();
    }
  };
  return { world, clock, batch, call, log };
}

/** Runs a script against a clock and compares its flushes with the expected ones. */
export function check(name, policy, options, script, expected) {
  test(name, () => {
    const it = rig(policy, options);
    script(it);
    assert.deepEqual(it.log, expected);
  });
}

/** 16 ms later: a frame with these callbacks. */
export const nextFrame = (world, ...callbacks) => {
  world.pass(16);
  world.frame(...callbacks);
};

/** The answer of a queue whose batch is due when its oldest call is this old. */
export const waitAtMost =
  (milliseconds) =>
  (_, { queued, since }) =>
    queued === 0 ? NaN : since + milliseconds;

/** The answer of a queue that sends a batch as soon as it has a call: the device is idle. */
export const whileIdle = (now, { queued }) => (queued > 0 ? now : NaN);

/** The answers of a queue over a device that is busy until `free` is called. */
export function busyDevice() {
  let isBusy = true;
  return {
    due: (now, state) => (isBusy ? NaN : whileIdle(now, state)),
    free: () => (isBusy = false),
  };
}
