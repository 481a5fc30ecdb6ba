// A page whose time stands still until a test moves it.
//
// The environment has frames, timers, message channels and visibility, and runs nothing by
// itself: `task()`, `frame()` and `pass()` do. Each can be taken away.

/** Makes an environment for a clock, and the controls for a test. */
export function fakeEnvironment({
  frames = true,
  page = true,
  scheduler = true,
} = {}) {
  const world = {
    time: 0,
    messages: [],
    timers: [],
    frames: [],
    listeners: [],
    channels: 0,
    /** Ports that would keep Node alive. */
    referenced: 0,
    hidden: false,
    /** What callbacks of the newest frame are told. */
    frameTime: undefined,
  };
  let ids = 0;

  const environment = {
    now: () => world.time,
    setLooseTimer: (...timer) => environment.setTimer(...timer),
    setTimer(callback, milliseconds) {
      // The page as browsers have it.
      const pause = milliseconds < 2 ** 31 ? milliseconds : 1;
      const timer = { id: (ids += 1), at: world.time + pause, callback };
      world.timers.push(timer);
      return timer.id;
    },
    clearTimer(id) {
      world.timers = world.timers.filter((timer) => timer.id !== id);
    },
    channel: () => channel(world),
    frames: frames
      ? {
          request(callback) {
            world.frames.push({ id: (ids += 1), callback });
            return ids;
          },
          cancel(id) {
            world.frames = world.frames.filter((frame) => frame.id !== id);
          },
          newest: () => world.frameTime,
          behind(run) {
            if (!scheduler) return false;
            world.messages.unshift(run);
            return true;
          },
        }
      : undefined,
    page: page
      ? {
          get hidden() {
            return world.hidden;
          },
          addEventListener: (_, listener) => world.listeners.push(listener),
          removeEventListener(_, listener) {
            world.listeners = world.listeners.filter(
              (other) => other !== listener,
            );
          },
        }
      : undefined,
  };

  return Object.assign(world, {
    environment,
    /** Delivers the messages that are on their way. */
    task() {
      for (const deliver of world.messages.splice(0)) deliver();
    },
    /** One frame: what was requested before it, then `others`, then its tasks. */
    frame(...others) {
      world.frameTime = world.time;
      for (const { callback } of world.frames.splice(0)) callback(world.time);
      for (const other of others) other();
      world.task();
    },
    /** The same with callbacks that were requested before the others. */
    frameBehind(...others) {
      world.frameTime = world.time;
      for (const other of others) other();
      for (const { callback } of world.frames.splice(0)) callback(world.time);
      world.task();
    },
    /** Lets time pass and its timers fire; no frame comes and no message is delivered. */
    pass(milliseconds) {
      const end = world.time + milliseconds;
      for (;;) {
        const next = world.timers
          .filter(({ at }) => at <= end)
          .sort((x, y) => x.at - y.at)[0];
        if (next === undefined) break;
        world.timers.splice(world.timers.indexOf(next), 1);
        world.time = Math.max(world.time, next.at);
        next.callback();
      }
      world.time = end;
    },
    /** Hides or shows the page. */
    show(visible) {
      world.hidden = !visible;
      for (const listener of world.listeners) listener();
    },
  });
}

function channel(world) {
  world.channels += 1;
  let open = true;
  const port1 = {
    onmessage: null,
    ref: () => (world.referenced += 1),
    unref: () => (world.referenced -= 1),
    close() {
      if (open) world.channels -= 1;
      open = false;
    },
    postMessage() {},
  };
  const port2 = {
    onmessage: null,
    postMessage: () => world.messages.push(() => open && port1.onmessage?.({})),
    close() {},
  };
  return { port1, port2 };
}
