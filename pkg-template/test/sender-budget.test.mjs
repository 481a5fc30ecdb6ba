// What a sender charges to the main thread's budget, and that due batches wait for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { Sender } = await module("session/sender");
const { MainThreadBudget } = await module("clock/main-thread-budget");

/** A sender over a core whose batches take time of the main thread, and always are due. */
function sending() {
  const world = fakeEnvironment();
  const arena = { owed: 0, flights: 0 };
  const nothing = () => {};
  const hearsNothing = {
    flushed: nothing,
    sent: nothing,
    settled: nothing,
    returned: nothing,
  };
  const core = {
    flush: nothing,
    due: (now) => now,
    due_in_frames: (now) => now,
  };
  const { environment } = world;
  const sender = new Sender(
    core,
    { arena, pending: { size: 0 } },
    {
      environment,
      clock: hearsNothing,
      budget: new MainThreadBudget(() => !world.hidden),
      poller: hearsNothing,
      calibrator: hearsNothing,
    },
    (doing, thrown) => assert.fail(`${doing}: ${thrown}`),
  );
  /** Sends a batch to the GPU or computes it on the CPU, for so many milliseconds. */
  const flush = (device, milliseconds, inside = nothing) => {
    core.flush = () => {
      world.time += milliseconds;
      if (device === "gpu") arena.owed += 1;
      inside();
    };
    sender.flush(false);
  };
  /** Fills results of a batch for so many milliseconds. */
  const answer = (milliseconds) => {
    sender.returning();
    world.time += milliseconds;
    sender.filled();
  };
  return { world, sender, flush, answer };
}

// What happens from moment 0 on; when the next batch may go after that.
const CASES = [
  ["a GPU's batches, within", ({ flush }) => flush("gpu", 5), 5],
  [
    "a GPU's batches, beyond",
    ({ flush }) => {
      flush("gpu", 3);
      flush("gpu", 3);
    },
    16,
  ],
  [
    "answers count as their batches do",
    ({ flush, answer }) => {
      flush("gpu", 3);
      answer(3);
    },
    16,
  ],
  [
    "an answer takes no longer than its results",
    ({ world, answer }) => {
      world.time = 100;
      answer(3);
    },
    103,
  ],
  ["the CPU's batches, beyond", ({ flush }) => flush("cpu", 4), 16],
  [
    "the CPU's batches of a hidden page",
    ({ world, flush }) => {
      world.hidden = true;
      flush("cpu", 9);
    },
    9,
  ],
  [
    "what is flushed and answered inside of a flush counts once",
    ({ flush, answer }) => {
      flush("gpu", 1, () => {
        answer(2);
        flush("gpu", 2);
      });
    },
    5,
  ],
];

for (const [name, happen, expected] of CASES) {
  test(`the next batch waits for the main thread's budget: ${name}`, () => {
    const all = sending();
    happen(all);
    assert.equal(all.sender.due(all.world.time), expected);
    // The end of a frame flushes whatever was spent.
    assert.equal(all.sender.dueInFrames(all.world.time), all.world.time);
  });
}
