// Tweens and springs, against an integration in small steps, frame by frame.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { manual, module, settled } from "./face.mjs";

await module("animation/index");
const { stepperOf } = await module("animation/motion");
const { callsOf } = await module("session/session");

/** The frames that were asked for. */
let frames;
let clock;

beforeEach(() => {
  frames = new Map();
  clock = 1000;
  let next = 0;
  globalThis.requestAnimationFrame = (callback) => {
    frames.set(++next, callback);
    return next;
  };
  globalThis.cancelAnimationFrame = (id) => frames.delete(id);
});
afterEach(() => {
  delete globalThis.requestAnimationFrame;
  delete globalThis.cancelAnimationFrame;
  delete globalThis.matchMedia;
});

/** Runs a frame so many milliseconds after the one before. */
function frame(ms = 0) {
  clock += ms;
  const due = [...frames.values()];
  frames.clear();
  for (const callback of due) callback(clock);
}

const near = (a, b, bound = 1e-6) =>
  assert.ok(Math.abs(a - b) <= bound, `${a}, not ${b}`);

test("a tween goes from one value to another, and leaves nothing", async () => {
  const { gpu } = await manual();
  const seen = [];
  const onUpdate = (x) => seen.push(x);
  const options = { duration: 0.1, easing: "linear", onUpdate };
  const tween = gpu.tween(2, 4, options);
  assert.equal(tween.value, 2);
  for (const ms of [0, 25, 25, 25, 50]) frame(ms);
  [2, 2.5, 3, 3.5, 4].forEach((want, i) => near(seen[i], want));
  assert.equal(seen.length, 5);
  assert.equal(await tween.finished, true);
  assert.equal(frames.size, 0);
  assert.equal(stepperOf(callsOf(gpu)).size, 0);
});

test("arrays, delays and easings", async () => {
  const { gpu } = await manual();
  const to = new Float32Array([10, -10]);
  const options = { duration: 1, delay: 0.5, easing: "steps(2)" };
  const tween = gpu.tween([0, 0], to, options);
  to.fill(99); // It was copied.
  const seen = [];
  for (const ms of [0, 400, 200, 500, 400]) {
    frame(ms);
    seen.push([...tween.value]);
  }
  assert.deepEqual(seen, [
    [0, 0],
    [0, 0],
    [0, 0],
    [5, -5],
    [10, -10],
  ]);
  assert.equal(await tween.finished, true);
});

test("nothing moves before its delay is over", async () => {
  const { gpu } = await manual();
  const cases = [
    [{ duration: 0, delay: 1 }, [0, 0, 0, 1]],
    [{ duration: 1, delay: 1, easing: "step-start" }, [0, 0, 0, 1, 1]],
    [
      { duration: 1, delay: 1, easing: "steps(2, jump-both)" },
      [0, 0, 0, 1 / 3, 1],
    ],
  ];
  const heard = cases.map(([options]) => {
    const values = [];
    gpu.tween(0, 1, { ...options, onUpdate: (x) => values.push(x) });
    return values;
  });
  for (const ms of [0, 500, 400, 200, 1000]) frame(ms);
  cases.forEach(([, expected], i) => {
    assert.equal(heard[i].length, expected.length);
    expected.forEach((want, k) => near(heard[i][k], want));
  });
});

test("all motions of a session share one frame; those that end leave the others", async () => {
  const { gpu } = await manual();
  const motions = Array.from({ length: 1000 }, (_, i) =>
    i % 2
      ? gpu.tween(0, i, { duration: 0.1 + i / 1000 })
      : gpu.spring(-1, i, { precision: 0.01 }),
  );
  assert.equal(frames.size, 1);
  const control = new AbortController();
  const given = gpu.tween(0, 1, { signal: control.signal });
  frame();
  motions[1].cancel();
  control.abort();
  assert.deepEqual(await Promise.all([motions[1].finished, given.finished]), [
    false,
    false,
  ]);
  assert.equal(stepperOf(callsOf(gpu)).size, 999);
  for (let i = 0; i < 300; i += 1) frame(16);
  const ends = await Promise.all(motions.map(({ finished }) => finished));
  assert.equal(ends.filter(Boolean).length, 999);
  motions.forEach(({ value }, i) => {
    if (i !== 1) assert.equal(value, i);
  });
  assert.equal(frames.size, 0);
});

/** The same oscillator in steps of a microsecond: [value, velocity]. */
function integrate({ stiffness, damping, mass }, [x, v], seconds) {
  const step = 1e-6;
  for (let t = 0; t < seconds - step / 2; t += step) {
    const pull = (x, v) => (-stiffness * x - damping * v) / mass;
    const half = v + (step / 2) * pull(x, v);
    const middle = x + (step / 2) * v;
    x += step * half;
    v += step * pull(middle, half);
  }
  return [x, v];
}

for (const [name, terms] of Object.entries({
  swinging: { stiffness: 100, damping: 4, mass: 2 },
  critical: { stiffness: 25, damping: 10, mass: 1 },
  slow: { stiffness: 40, damping: 60, mass: 1.5 },
  free: { stiffness: 90, damping: 0, mass: 1 },
})) {
  test(`a spring, ${name}, is the oscillator`, async () => {
    const { gpu } = await manual();
    const spring = gpu.spring(3, 1, { ...terms, velocity: -5 });
    frame();
    for (const ms of [50, 100, 200]) {
      frame(ms);
      const seconds = (clock - 1000) / 1000;
      const [x, v] = integrate(terms, [2, -5], seconds);
      near(spring.value, 1 + x, 1e-4);
      near(spring.velocity, v, 1e-3);
    }
    // Pulled elsewhere it goes on from there, as fast as it is.
    const [place, speed] = [spring.value, spring.velocity];
    const before = spring.finished;
    spring.to(-2);
    assert.equal(await before, false);
    near(spring.value, place);
    near(spring.velocity, speed, 1e-4);
    frame();
    frame(80);
    const [x] = integrate(terms, [place + 2, speed], 0.08);
    near(spring.value, x - 2, 1e-4);
    spring.cancel();
    assert.equal(await spring.finished, false);
    assert.equal(frames.size, 0);
  });
}

test("a spring that is pulled with every frame moves like any other", async () => {
  const { gpu } = await manual();
  const [pulled, left] = [gpu.spring(0, 1), gpu.spring(0, 1)];
  pulled.to(1);
  frame();
  for (let i = 0; i < 10; i += 1) {
    pulled.to(2);
    pulled.to(1);
    frame(16);
    near(pulled.value, left.value);
    near(pulled.velocity, left.velocity, 1e-5);
  }
  assert.ok(pulled.value > 0.5);
  pulled.cancel();
  left.cancel();
});

for (const late of [0, 2]) {
  test(`a spring that the device computes and that is pulled with every frame does too, answers ${late} frames late`, async () => {
    const { gpu, core } = await manual();
    let heard = 0;
    const onUpdate = () => (heard += 1);
    const pulled = gpu.spring(0, 1, { engine: "gpu", onUpdate });
    const left = gpu.spring(0, 1);
    frame();
    for (let i = 0; i < 12; i += 1) {
      pulled.to(2);
      pulled.to(1);
      near(pulled.value, left.value);
      near(pulled.velocity, left.velocity, 1e-5);
      frame(16);
      gpu.flush();
      if (i >= late && core.flights.length > 0) core.answer();
      await settled();
    }
    assert.ok(pulled.value > 0.5);
    assert.ok(heard >= 11, `${heard} updates`);
    pulled.cancel();
    left.cancel();
    if (core.flights.length > 0) core.answer();
    await settled();
    assert.equal(core.tensors.size, 0);
  });
}

test("an answer of the device leaves alone what ended before it", async () => {
  const { gpu, core } = await manual();
  const linear = { duration: 1, easing: "linear", engine: "gpu" };
  const [ended, other] = [gpu.tween(0, 100, linear), gpu.tween(0, 100, linear)];
  const step = async (ms, between = () => {}) => {
    frame(ms);
    gpu.flush();
    between();
    core.answer();
    await settled();
  };
  await step(0);
  await step(500, () => ended.cancel());
  assert.deepEqual([ended.value, other.value], [0, 50]);
  other.cancel();
  assert.equal(core.tensors.size, 0);
});

test("an answer of the device is older than what was stepped here since", async () => {
  const { gpu, core } = await manual();
  core.device = { engine: "gpu", software: false };
  const linear = { duration: 1, easing: "linear" };
  const many = new Float32Array(40_000);
  const heard = [];
  const onUpdate = (x) => heard.push(x[0]);
  const a = gpu.tween(many, many.slice().fill(100), linear);
  const b = gpu.tween(many, many.slice().fill(100), { ...linear, onUpdate });
  frame();
  frame(500);
  gpu.flush();
  assert.equal(core.flights.length, 1);
  a.cancel(); // The other is few floats now.
  frame(250);
  frame(250);
  assert.equal(b.value[0], 100);
  assert.equal(await b.finished, true);
  const told = heard.length;
  core.answer();
  await settled();
  assert.deepEqual([b.value[0], heard.length], [100, told]);
});

test("weights of many motions leave the device with their step", async () => {
  const { gpu, core } = await manual();
  const linear = { duration: 9, easing: "linear", engine: "gpu" };
  const tweens = Array.from({ length: 16_384 }, () => gpu.tween(0, 1, linear));
  const held = [];
  for (let i = 0; i < 5; i += 1) {
    frame(16);
    gpu.flush();
    core.answer();
    await settled();
    held.push(core.tensors.size);
  }
  assert.deepEqual(held, [2, 2, 2, 2, 2], "where they come from, and go to");
  for (const tween of tweens) tween.cancel();
  assert.equal(core.tensors.size, 0);
});

test("a spring rests at its end, exactly, and can be pulled again", async () => {
  const { gpu } = await manual();
  let updates = 0;
  const spring = gpu.spring([0, 1], [1, 0.1], { onUpdate: () => updates++ });
  for (let i = 0; i < 200 && frames.size > 0; i += 1) frame(16);
  assert.equal(await spring.finished, true);
  assert.deepEqual([...spring.value], [1, Math.fround(0.1)]);
  assert.deepEqual([...spring.velocity], [0, 0]);
  const rested = updates;
  assert.ok(rested > 20 && rested < 100, `${rested}`);
  spring.to(new Float32Array([0, 0]));
  frame();
  frame(16);
  assert.equal(updates, rested + 2);
  spring.cancel();
});

test("less motion on request: the end, with the first frame", async () => {
  const { gpu } = await manual();
  globalThis.matchMedia = (query) => ({
    matches: query === "(prefers-reduced-motion: reduce)",
  });
  const short = { reducedMotion: "jump" };
  const tween = gpu.tween(0, 1, { duration: 9, delay: 9, ...short });
  const spring = gpu.spring(0, 1, short);
  const usual = gpu.tween(0, 1, { duration: 9 });
  frame();
  assert.deepEqual([tween.value, spring.value, usual.value], [1, 1, 0]);
  assert.deepEqual(await Promise.all([tween.finished, spring.finished]), [
    true,
    true,
  ]);
  usual.cancel();
});

test("the end of a session ends its motions", async () => {
  const { gpu } = await manual();
  const tween = gpu.tween(0, 1);
  await gpu.dispose();
  assert.equal(await tween.finished, false);
  assert.equal(frames.size, 0);
  assert.throws(() => gpu.tween(0, 1), { code: "disposed" });
});

test("many floats are one call of the frame", async () => {
  const { gpu, core } = await manual();
  await gpu.ready;
  const wide = (length, x) => new Float32Array(length).fill(x);
  const seen = [];
  const far = { engine: "gpu", duration: 1, easing: "linear" };
  const tweens = [300, 300, 20].map((length, i) =>
    gpu.tween(wide(length, 0), wide(length, 10 * (i + 1)), {
      ...far,
      onUpdate: (value) => seen.push([i, value.length, value[0], value.at(-1)]),
    }),
  );
  const spring = gpu.spring(wide(20, 1), wide(20, 0), { engine: "gpu" });
  const here = gpu.tween(0, 1, { duration: 1, easing: "linear" });
  frame();
  frame(250); // While the first is on its way, no other is sent.
  assert.equal(here.value, 0.25);
  assert.equal(core.queued.length, 1);
  const step = async (ms) => {
    frame(ms);
    gpu.flush();
    core.answer();
    await settled();
  };
  await step(0);
  seen.length = 0;
  await step(250);
  assert.deepEqual(seen, [
    [0, 300, 5, 5],
    [1, 300, 10, 10],
    [2, 20, 15, 15],
  ]);
  assert.ok(spring.value[3] > 0 && spring.value[3] < 0.1);
  const held = core.tensors.size;
  assert.ok(held > 0);
  spring.cancel();
  await step(1000);
  assert.deepEqual(await Promise.all(tweens.map(({ finished }) => finished)), [
    true,
    true,
    true,
  ]);
  assert.equal(core.tensors.size, 0);
  assert.equal(frames.size, 0);
});

test("a listener may end and begin other motions", async () => {
  const { gpu, core } = await manual();
  const linear = { duration: 1, easing: "linear" };
  const wide = (x) => new Float32Array(20).fill(x);
  const far = (to) =>
    gpu.tween(wide(0), wide(to), { ...linear, engine: "gpu" });
  const heard = [];
  let begun;
  const first = gpu.tween(0, 1, {
    ...linear,
    onUpdate: (x) => {
      if (x < 0.25 || begun !== undefined) return;
      far1.cancel();
      near.cancel();
      begun = far(8);
    },
  });
  const [far1, far2] = [far(1), far(2)];
  const near = gpu.tween(0, 1, { ...linear, onUpdate: (x) => heard.push(x) });
  const step = async (ms) => {
    frame(ms);
    gpu.flush();
    if (core.flights.length > 0) core.answer();
    await settled();
  };
  await step(0);
  await step(250);
  assert.deepEqual(heard, [0]);
  assert.deepEqual([far1.value[0], far2.value[0]], [0, 0.5]);
  await step(250);
  await step(250);
  assert.deepEqual([first.value, far2.value[0]], [0.75, 1.5]);
  // What is on the device is chosen anew, so that it is no longer left out.
  assert.equal(begun.value[0], 2);
  assert.equal(core.counts.submits, 4);
  const ends = [far1.finished, near.finished];
  assert.deepEqual(await Promise.all(ends), [false, false]);
  begun.cancel();
  await step(250);
  assert.equal(await far2.finished, true);
  assert.equal(core.tensors.size, 0);
  assert.equal(frames.size, 0);
});

/** What `work` throws where nobody catches it. */
async function uncaught(work) {
  const thrown = [];
  const listeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => thrown.push(error.message));
  try {
    await work();
    await settled();
    return thrown;
  } finally {
    process.removeAllListeners("uncaughtException");
    for (const listener of listeners) process.on("uncaughtException", listener);
  }
}

test("motions that cannot be laid end, and are told once", async () => {
  const { gpu, core } = await manual();
  const ends = [];
  const value = new Float32Array(2);
  const bad = {
    ...{ from: value, to: value, velocity: undefined, value, engine: "gpu" },
    at() {
      throw new Error("no moment");
    },
    updated() {},
    ended: (isFinished) => ends.push(isFinished),
  };
  const thrown = await uncaught(async () => {
    stepperOf(callsOf(gpu)).add(bad);
    frame();
    await settled();
    frame(16);
  });
  assert.deepEqual([thrown, ends], [["no moment"], [false]]);
  const good = gpu.tween(value, [1, 1], { engine: "gpu", duration: 0.01 });
  for (const ms of [0, 20]) {
    frame(ms);
    gpu.flush();
    core.answer();
    await settled();
  }
  assert.equal(await good.finished, true);
});

test("what a listener throws ends its own motion alone", async () => {
  const { gpu } = await manual();
  const thrown = await uncaught(async () => {
    const onUpdate = () => {
      throw new Error("mine");
    };
    const bad = gpu.tween(0, 1, { onUpdate });
    const good = gpu.tween(0, 1, { duration: 0.01 });
    frame();
    frame(20);
    assert.equal(await bad.finished, false);
    assert.equal(await good.finished, true);
  });
  assert.deepEqual(thrown, ["mine"]);
});

test("wrong motions throw in a sentence", async () => {
  const { gpu } = await manual();
  const cases = [
    [
      () => gpu.tween("0", 1),
      "tween: from must be a number, a Float32Array or an array of numbers, got string",
    ],
    [
      () => gpu.tween(NaN, 1),
      "tween: from must be a number, a Float32Array or an array of numbers, got NaN",
    ],
    [
      () => gpu.tween([0, NaN], [1, 1]),
      "tween: from must be a number, a Float32Array or an array of numbers, got NaN",
    ],
    [
      () => gpu.spring(0, 1, { velocity: [NaN] }),
      "spring: velocity must be a number, a Float32Array or an array of numbers, got NaN",
    ],
    [
      () => gpu.tween([0, 1], [1]),
      "tween: to has 1 numbers, but from has 2; give both as many",
    ],
    [
      () => gpu.tween(0, 1, { duration: -1 }),
      "tween: duration must be a number from 0, got -1",
    ],
    [
      () => gpu.tween(0, 1, { speed: 1, label: "x" }),
      "tween (label 'x'): there is no option 'speed'; the options are duration, delay, easing, onUpdate, signal, reducedMotion, engine, label",
    ],
    [
      () => gpu.tween(0, 1, { onUpdate: 1 }),
      "tween: onUpdate must be a function, got number",
    ],
    [
      () => gpu.tween(0, 1, { reducedMotion: true }),
      "tween: reducedMotion must be 'ignore' or 'jump', got boolean",
    ],
    [
      () => gpu.spring(0, 1, { stiffness: 0 }),
      "spring: stiffness must be a number above 0, got 0",
    ],
    [
      () => gpu.spring(0, 1, { mass: "1" }),
      "spring: mass must be a number above 0, got string",
    ],
    [
      () => gpu.spring(0, 1, { engine: "tpu" }),
      "spring: engine must be 'cpu' or 'gpu', got 'tpu'",
    ],
    [
      () => gpu.spring(0, 1, { signal: {} }),
      "spring: signal must be an AbortSignal, got Object",
    ],
  ];
  for (const [make, message] of cases) {
    assert.throws(make, { code: "invalid-input", message });
  }
  assert.equal(frames.size, 0);
});
