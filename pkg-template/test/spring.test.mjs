// Springs, against an integration in small steps, frame by frame.

import assert from "node:assert/strict";
import { test } from "node:test";
import { clock, frame, frames, near } from "./animation-frames.mjs";
import { manual, settled } from "./face.mjs";

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
