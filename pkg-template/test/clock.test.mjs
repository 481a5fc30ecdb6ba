// When the clocks of the policies flush, other than `auto` (`auto-clock.test.mjs`).

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

check(
  "frame, idle: calls go out together at the end of the coming frame",
  "frame",
  {},
  ({ world, call }) => {
    call(2);
    world.task();
    call();
    nextFrame(world);
  },
  ["16: 3"],
);

check(
  "frame, armed: calls from tasks and from callbacks of one frame are one batch",
  "frame",
  {},
  ({ world, call }) => {
    call();
    nextFrame(world);
    call(); // an event
    world.task();
    world.pass(1);
    call(); // a timer
    nextFrame(
      world,
      () => call(),
      () => call(),
    );
  },
  ["16: 1", "33: 4"],
);

check(
  "frame: nothing is flushed in frames without calls",
  "frame",
  {},
  ({ world, call }) => {
    call();
    for (let i = 0; i < 10; i += 1) nextFrame(world);
  },
  ["16: 1"],
);

check(
  "frame: a task that comes late is overtaken by the next frame",
  "frame",
  {},
  ({ world, call }) => {
    call();
    world.pass(16);
    const [{ callback }] = world.frames.splice(0);
    callback(); // posts, but its task is not run
    call();
    world.pass(16);
    const [{ callback: next }] = world.frames.splice(0);
    next();
  },
  ["32: 2"],
);

test("frame: stays armed for a second past the last call, then asks for no frames", () => {
  const { world, call } = rig("frame");
  call();
  for (let i = 0; i < 62; i += 1) nextFrame(world);
  assert.equal(world.frames.length, 1, "armed at 992 ms");
  nextFrame(world);
  assert.equal(world.frames.length, 0, "idle at 1008 ms");
  assert.equal(world.messages.length, 0);
  call();
  assert.equal(world.frames.length, 1, "armed again by a call");
});

check(
  "frame, hidden page: the end of each task",
  "frame",
  {},
  ({ world, call }) => {
    world.show(false);
    call(3);
    world.task();
    call();
    world.task();
  },
  ["0: 3", "0: 1"],
);

check(
  "frame: going hidden flushes at once, coming back waits for frames again",
  "frame",
  {},
  ({ world, call }) => {
    call(2);
    world.show(false);
    world.show(true);
    call();
    world.task();
    nextFrame(world);
  },
  ["0: 2", "16: 1"],
);

check(
  "frame: going hidden with nothing queued flushes nothing",
  "frame",
  {},
  ({ world }) => {
    world.show(false);
    world.task();
  },
  [],
);

check(
  "frame, no frame comes: a timer once, then tasks, until frames return",
  "frame",
  {},
  ({ world, call }) => {
    call(2);
    world.pass(99);
    call();
    world.pass(1); // 100 ms after the first call
    call(2);
    world.task();
    call();
    world.task();
    world.frame(); // frames return
    call();
    world.task();
    nextFrame(world);
  },
  ["100: 3", "100: 2", "100: 1", "116: 1"],
);

check(
  "frame: the missing-frame wait counts from each batch's own first call",
  "frame",
  {},
  ({ world, call }) => {
    call();
    nextFrame(world);
    world.pass(50);
    call(); // at 66
    world.pass(99);
    call();
    world.pass(1);
  },
  ["16: 1", "166: 2"],
);

check(
  "frame, no page (a worker that has frames): frames",
  "frame",
  { page: false },
  ({ world, call }) => {
    call();
    world.task();
    nextFrame(world);
  },
  ["16: 1"],
);

check(
  "frame, no frames at all (a worker, Node): the end of each task",
  "frame",
  { frames: false, page: false },
  ({ world, call }) => {
    call(2);
    world.task();
    world.task();
    call();
    world.task();
  },
  ["0: 2", "0: 1"],
);

check(
  "frame with a longest wait: whichever comes first",
  "frame",
  { due: waitAtMost(5) },
  ({ world, call }) => {
    call();
    world.pass(3);
    call();
    world.pass(2); // five after the first call
    call(); // at 5, due at 10
    world.pass(1);
    world.frame(); // at 6
    world.pass(50);
  },
  ["5: 2", "6: 1"],
);

test("frame: asked again after each answer", () => {
  const device = busyDevice();
  const { world, clock, call, log } = rig("frame", device);
  call();
  clock.settled();
  world.task();
  assert.deepEqual(log, []);
  device.free();
  clock.settled();
  world.task();
  assert.deepEqual(log, ["0: 1"]);
});

test("a batch that was sent leaves no timer, and a task no second message", () => {
  for (const policy of ["auto", "frame", "eager"]) {
    const { world, batch, call } = rig(policy, {
      due: waitAtMost(5),
      frames: false,
    });
    call(3);
    assert.equal(world.messages.length, 1, policy);
    if (policy !== "frame") world.task();
    assert.equal(world.timers.length, 1, policy);
    batch.flush();
    assert.equal(world.timers.length, 0, policy);
  }
});

check(
  "frame, already due: the end of the current task",
  "frame",
  { due: whileIdle },
  ({ world, call }) => {
    call(2);
    world.task();
  },
  ["0: 2"],
);

check(
  "eager, GPU idle: the end of the current task",
  "eager",
  { due: whileIdle },
  ({ world, call }) => {
    call(3);
    world.task();
    call();
    world.task();
  },
  ["0: 3", "0: 1"],
);

test("an answer with nothing queued asks nothing of the core", () => {
  for (const policy of ["auto", "frame", "eager"]) {
    let asked = 0;
    const due = (now) => {
      asked += 1;
      return now;
    };
    const { world, clock, call } = rig(policy, { due });
    call();
    world.task();
    const before = asked;
    clock.settled();
    world.task();
    assert.equal(asked, before, policy);
  }
});

test("eager, GPU busy: collects until the batch in flight returns", () => {
  const device = busyDevice();
  const { world, clock, call, log } = rig("eager", device);
  call();
  world.task();
  call();
  world.task();
  world.pass(1000);
  assert.deepEqual(log, []);
  device.free();
  clock.settled();
  assert.deepEqual(log, [], "not inside the answer");
  world.task();
  assert.deepEqual(log, ["1000: 2"]);
});

check(
  "eager, waiting for a smallest batch: asked again in every task with calls",
  "eager",
  {
    due: (now, { queued, since }) =>
      queued === 0 ? NaN : queued >= 3 ? now : since + 5,
  },
  ({ world, call }) => {
    call();
    world.task();
    world.pass(2);
    call(2);
    world.task(); // three
    call();
    world.task();
    world.pass(5); // the longest wait
  },
  ["2: 3", "7: 1"],
);

check(
  "eager: a timer that comes early waits for the rest",
  "eager",
  { due: waitAtMost(5) },
  ({ world, call }) => {
    call();
    world.task();
    const [timer] = world.timers.splice(0);
    world.time = 4.5;
    timer.callback();
    world.pass(1);
  },
  ["5.5: 1"],
);

test("a longest wait that no timer can wait for is asked for in parts", () => {
  let asked = 0;
  const due = (now) => {
    asked += 1;
    return Math.max(now, 2 ** 33);
  };
  const { world, call, log } = rig("eager", { due });
  call();
  world.task();
  world.pass(1000);
  assert.equal(asked, 1, "nothing rings meanwhile");
  world.pass(2 ** 33);
  world.task();
  assert.deepEqual(log, [`${2 ** 33}: 1`]);
  assert.ok(asked < 10, `${asked} times`);
});

check(
  "manual: never by itself",
  "manual",
  { due: (now) => now },
  ({ world, call, clock }) => {
    call(2);
    clock.settled();
    world.task();
    nextFrame(world);
    world.show(false);
  },
  [],
);

test("a scheduler of one's own is called once a batch, with flush", () => {
  const given = [];
  const { world, call, log } = rig((flush) => given.push(flush));
  call(3);
  assert.equal(given.length, 1);
  given[0]();
  assert.deepEqual(log, ["0: 3"]);
  call();
  assert.equal(given.length, 2);
  nextFrame(world);
  assert.deepEqual(log, ["0: 3"], "nothing but the scheduler flushes");
});

test("a scheduler that throws is reported and asked again", (context) => {
  const reports = [];
  context.mock.method(globalThis, "queueMicrotask", (report) =>
    reports.push(report),
  );
  let asked = 0;
  const { call } = rig(() => {
    asked += 1;
    throw new Error("broken scheduler");
  });
  call(2);
  assert.equal(asked, 2);
  assert.throws(reports[0], /broken scheduler/);
});

test("a message on its way keeps Node alive, an open channel does not", () => {
  const { world, call } = rig("frame", { frames: false, page: false });
  call(5);
  assert.equal(world.referenced, 1);
  world.task();
  assert.equal(world.referenced, 0);
});

test("disposing lets go of frames, timers, channels and listeners", () => {
  for (const policy of ["auto", "frame", "eager"]) {
    const { world, clock, call, log } = rig(policy, { due: waitAtMost(5) });
    call();
    if (policy !== "eager") nextFrame(world);
    world.task();
    call();
    clock.dispose();
    const left = [world.frames, world.timers, world.listeners].map(
      (list) => list.length,
    );
    assert.deepEqual([...left, world.channels], [0, 0, 0, 0], policy);
    const flushes = log.length;
    world.task();
    world.pass(1000);
    assert.equal(log.length, flushes, policy);
  }
});
