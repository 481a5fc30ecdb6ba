// When the clock of `flush: "auto"` flushes: once a frame while the page makes calls in
// frame callbacks, and at the ends of tasks otherwise.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  busyDevice,
  check,
  nextFrame,
  rig,
  waitAtMost,
  whileIdle,
} from "./clock-rig.mjs";

/** A queue over an idle device, of a page whose frames flush anyway. */
const idleDevice = { due: whileIdle, dueInFrames: () => NaN };

/** The first call of a page, at the end of its task: nothing shows yet that frames matter. */
function firstCall({ world, call }) {
  call();
  world.task();
}

/** A page that made its second call in a frame callback, at 16 ms. */
function animating(page) {
  firstCall(page);
  nextFrame(page.world, () => page.call());
}

check(
  "auto, no calls in frame callbacks: the end of each task",
  "auto",
  idleDevice,
  ({ world, call }) => {
    call(2);
    world.task();
    call();
    world.pass(3);
    world.task();
    nextFrame(world);
    call(); // right behind a frame
    world.task();
  },
  ["0: 2", "3: 1", "19: 1"],
);

for (const [order, frame] of [
  ["behind the clock's", (world, ...calls) => world.frame(...calls)],
  ["ahead of the clock's", (world, ...calls) => world.frameBehind(...calls)],
]) {
  check(
    `auto, calls in callbacks ${order}: one batch a frame, with those of tasks`,
    "auto",
    idleDevice,
    (page) => {
      const { world, call } = page;
      firstCall(page);
      for (let i = 0; i < 3; i += 1) {
        world.pass(8);
        if (i > 0) call(); // an event
        world.task();
        world.pass(8);
        frame(
          world,
          () => call(2),
          () => call(),
        );
      }
    },
    ["0: 1", "16: 3", "32: 4", "48: 4"],
  );
}

check(
  "auto, calls in callbacks behind the clock's, where the browser says nothing of tasks",
  "auto",
  { ...idleDevice, scheduler: false },
  (page) => {
    const { world, call } = page;
    firstCall(page);
    for (let i = 0; i < 2; i += 1) {
      nextFrame(world, () => call(2));
      call(); // an event
      world.task();
    }
  },
  ["0: 1", "16: 2", "16: 1", "32: 2", "32: 1"],
);

check(
  "auto, calls of tasks between a frame and its end are no calls in callbacks",
  "auto",
  idleDevice,
  (page) => {
    const { world, call } = page;
    firstCall(page);
    world.pass(16);
    world.messages.push(() => call()); // ahead of the clock's task
    world.frame();
    call();
    world.task();
  },
  ["0: 1", "16: 1", "16: 1"],
);

check(
  "auto: ten frames without calls in callbacks, and tasks set the pace again",
  "auto",
  idleDevice,
  (page) => {
    const { world, call } = page;
    animating(page);
    for (let i = 0; i < 9; i += 1) nextFrame(world);
    world.pass(1);
    call(); // 10 frames behind: it waits for its frame
    world.task();
    nextFrame(world);
    world.pass(1);
    call();
    world.task();
  },
  ["0: 1", "16: 1", "177: 1", "178: 1"],
);

check(
  "auto, device busy, no calls in callbacks: the frame's end at the latest",
  "auto",
  busyDevice(),
  ({ world, call }) => {
    call(2);
    world.task();
    world.pass(5);
    call();
    world.task();
    nextFrame(world);
  },
  ["21: 3"],
);

test("auto, device busy: collects until the batch in flight returns", () => {
  const device = busyDevice();
  const dueInFrames = () => NaN;
  const { world, clock, call, log } = rig("auto", { ...device, dueInFrames });
  call();
  world.task();
  world.pass(2);
  call();
  world.task();
  assert.deepEqual(log, []);
  device.free();
  clock.settled();
  world.task();
  assert.deepEqual(log, ["2: 2"]);
});

test("auto: a call in a callback behind the clock's counts, whatever waited before", () => {
  const device = busyDevice();
  const dueInFrames = () => NaN;
  const { world, clock, call, log } = rig("auto", { ...device, dueInFrames });
  call(); // an event's
  world.task();
  nextFrame(world, () => call());
  device.free();
  clock.settled();
  world.pass(4);
  call(); // the page animates: the end of the frame flushes
  world.task();
  nextFrame(world);
  assert.deepEqual(log, ["16: 2", "36: 1"]);
});

check(
  "auto, hidden or without frames: as eager, by the core's own wait",
  "auto",
  { due: waitAtMost(16), page: false, frames: false },
  ({ world, call }) => {
    call();
    world.task();
    world.pass(20);
  },
  ["16: 1"],
);

check(
  "auto, animating, then no frame comes: a timer once, then tasks",
  "auto",
  idleDevice,
  (page) => {
    const { world, call } = page;
    animating(page);
    call();
    world.pass(100);
    call();
    world.task();
    nextFrame(world, () => call()); // frames return
    call();
    world.task();
    nextFrame(world);
  },
  ["0: 1", "16: 1", "116: 1", "116: 1", "132: 1", "148: 1"],
);

check(
  "auto, animating: going hidden flushes at once, and then tasks set the pace",
  "auto",
  idleDevice,
  (page) => {
    const { world, call } = page;
    animating(page);
    call(2);
    world.show(false);
    call();
    world.task();
  },
  ["0: 1", "16: 1", "16: 2", "16: 1"],
);
