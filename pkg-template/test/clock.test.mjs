// When each clock flushes. A script is a list of what happens; the expected text is
// the list of flushes, each with its time and the calls in it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { clockFor } = await module("clock/clock");

/** A clock over a batch that counts its calls, and the world around both. */
function rig(policy, { due = () => NaN, dueInFrames = due, ...places } = {}) {
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
function check(name, policy, options, script, expected) {
  test(name, () => {
    const it = rig(policy, options);
    script(it);
    assert.deepEqual(it.log, expected);
  });
}

const nextFrame = (world, ...callbacks) => {
  world.pass(16);
  world.frame(...callbacks);
};

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

const waitAtMost =
  (milliseconds) =>
  (_, { queued, since }) =>
    queued === 0 ? NaN : since + milliseconds;

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
  let busy = true;
  const due = (now, { queued }) => (busy || queued === 0 ? NaN : now);
  const { world, clock, call, log } = rig("frame", { due });
  call();
  clock.settled();
  world.task();
  assert.deepEqual(log, []);
  busy = false;
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
  { due: (now, { queued }) => (queued > 0 ? now : NaN) },
  ({ world, call }) => {
    call(2);
    world.task();
  },
  ["0: 2"],
);

check(
  "eager, GPU idle: the end of the current task",
  "eager",
  { due: (now, { queued }) => (queued > 0 ? now : NaN) },
  ({ world, call }) => {
    call(3);
    world.task();
    call();
    world.task();
  },
  ["0: 3", "0: 1"],
);

test("eager, GPU busy: collects until the batch in flight returns", () => {
  let busy = true;
  const due = (now, { queued }) => (busy || queued === 0 ? NaN : now);
  const { world, clock, call, log } = rig("eager", { due });
  call();
  world.task();
  call();
  world.task();
  world.pass(1000);
  assert.deepEqual(log, []);
  busy = false;
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

// The device of these is idle, or busy until it is set free.
const idleDevice = {
  due: (now, { queued }) => (queued > 0 ? now : NaN),
  dueInFrames: () => NaN,
};
const busyDevice = { due: () => NaN };

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
    ({ world, call }) => {
      call(); // the first is not known to be a frame's
      world.task();
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
  ({ world, call }) => {
    call();
    world.task();
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
  ({ world, call }) => {
    call();
    world.task();
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
  ({ world, call }) => {
    call();
    world.task();
    nextFrame(world, () => call());
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
  busyDevice,
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
  let busy = true;
  const due = (now, { queued }) => (busy || queued === 0 ? NaN : now);
  const { world, clock, call, log } = rig("auto", { due });
  call();
  world.task();
  world.pass(2);
  call();
  busy = false;
  clock.settled();
  world.task();
  assert.deepEqual(log, ["2: 2"]);
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
  ({ world, call }) => {
    call();
    world.task();
    nextFrame(world, () => call());
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
  ({ world, call }) => {
    call();
    world.task();
    nextFrame(world, () => call());
    call(2);
    world.show(false);
    call();
    world.task();
  },
  ["0: 1", "16: 1", "16: 2", "16: 1"],
);
