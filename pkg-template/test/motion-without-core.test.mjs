// Motions of sessions that have no core: the file did not load, or the core trapped. They go
// on, and the console hears once why nothing else does.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { frame, frames, near } from "./animation-frames.mjs";
import { face, fake, manual, settled } from "./face.mjs";

const warnings = [];

before(() => {
  console.warn = (message) => warnings.push(message);
});

const LINEAR = { duration: 0.1, easing: "linear" };

test("a file that does not load leaves tweens and springs as they are", async () => {
  fake.loading = Promise.reject(new Error("404"));
  fake.loading.catch(() => {});
  const gpu = face.shared();
  const seen = [];
  const onUpdate = (x) => seen.push(x);
  const before = gpu.tween(0, 1, { ...LINEAR, onUpdate });
  await assert.rejects(gpu.ready, { message: /404/ });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /^framebatch: tweens and springs are .*: .*404/);
  assert.equal(face.shared(), gpu, "the page keeps the session");
  const behind = face.shared().tween([0, 8], [1, 0], { ...LINEAR });
  const spring = gpu.spring(0, 1);
  for (const ms of [0, 50]) frame(ms);
  near(seen.at(-1), 0.5);
  near(behind.value[1], 4);
  assert.ok(spring.value > 0);
  spring.to(0.25);
  for (let at = 0; at < 3000; at += 16) frame(16);
  near(before.value, 1);
  near(spring.value, 0.25, 1e-3);
  const ends = [before, behind, spring].map(({ finished }) => finished);
  assert.deepEqual(await Promise.all(ends), [true, true, true]);
  assert.equal(frames.size, 0, "no frame is asked for any more");
  assert.equal(warnings.length, 1, "the console hears of it once");
  await assert.rejects(gpu.lerp([0], [1], 0.5));
});

test("a core that traps leaves them too, and a session that is disposed of ends them", async () => {
  fake.loading = Promise.resolve();
  const { gpu, core } = await manual({
    wasm: new WebAssembly.Module(fake.file),
  });
  const tween = gpu.tween(0, 1, LINEAR);
  frame();
  core.failures.flush = new WebAssembly.RuntimeError("unreachable");
  const floats = new Float32Array(1);
  const call = gpu.lerp(floats, floats, 0);
  gpu.flush();
  await assert.rejects(call, { code: "fatal" });
  frame(50);
  near(tween.value, 0.5);
  frame(50);
  assert.equal(await tween.finished, true);

  const { gpu: other } = await manual();
  const ended = other.tween(0, 1, LINEAR);
  await other.dispose();
  await settled();
  assert.equal(await ended.finished, false);
  assert.throws(() => other.tween(0, 1), { code: "disposed" });
});
