// Results that come in parts, because their batch went in chunks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const ramp = (length, from = 0) =>
  Float32Array.from({ length }, (_, i) => from + i);

for (const words of [1, 7, 64, 100, 256, 1000]) {
  test(`chunks of ${words} words: every call gets the whole of its result`, async () => {
    const { gpu, core } = await manual();
    const lengths = [3, 1, 300, 5, 120, 64, 1];
    const order = [];
    const promises = lengths.map((length, i) => {
      const promise = gpu.lerp(ramp(length, i), ramp(length, i), 0.5);
      promise.then(() => order.push(i));
      return promise;
    });
    gpu.flush();
    core.answerInChunks(words);
    const results = await Promise.all(promises);
    results.forEach((result, i) =>
      assert.deepEqual(result, ramp(lengths[i], i), `call ${i}`),
    );
    assert.deepEqual(order, [...lengths.keys()]);
    const buffers = new Set(results.map(({ buffer }) => buffer));
    assert.equal(buffers.size, lengths.length, "no memory is shared");
  });
}

test("bytes and `into` are filled part by part", async () => {
  const { gpu, core } = await manual();
  const states = Uint8Array.from({ length: 160 }, (_, i) => i);
  const into = new Float32Array(100);
  const given = gpu.lerp(ramp(100), ramp(100), 0, { into });
  const bytes = gpu.states.lerp(states, states, 0);
  gpu.flush();
  core.answerInChunks(33);
  assert.equal(await given, into);
  assert.deepEqual(into, ramp(100));
  assert.deepEqual(await bytes, states);
});

test("a call settles with its last part, and not before", async () => {
  const { gpu, core } = await manual();
  const call = gpu.lerp(ramp(100), ramp(100), 0);
  gpu.flush();
  let before = 0;
  let done = false;
  call.then(() => (done = true));
  core.answerInChunks(40, {
    behind: (chunk) => {
      assert.equal(done, false);
      before = chunk;
    },
  });
  assert.equal(before, 2);
  assert.equal((await call).length, 100);
});

test("a failed chunk rejects what it holds a part of, and nothing else", async () => {
  const { gpu, core } = await manual();
  const calls = [20, 100, 20, 20].map((length) =>
    gpu.lerp(ramp(length), ramp(length), 0),
  );
  gpu.flush();
  const failure = { code: "out-of-memory", message: "no room" };
  core.answerInChunks(50, { failing: 1, failure });
  await assert.rejects(calls[1], { code: "out-of-memory", message: /no room/ });
  for (const index of [0, 2, 3]) assert.equal((await calls[index]).length, 20);
});

test("given up between two parts: rejected once, and the rest is ignored", async () => {
  const { gpu, core } = await manual();
  const controller = new AbortController();
  const { signal } = controller;
  const given = gpu.lerp(ramp(100), ramp(100), 0, { signal });
  const other = gpu.lerp(f32(1), f32(1), 0);
  gpu.flush();
  core.answerInChunks(40, {
    behind: (chunk) => chunk === 0 && controller.abort(),
  });
  await assert.rejects(given, { name: "AbortError" });
  assert.deepEqual(await other, f32(1));
});

test("`into` that is gone between two parts rejects with the reason", async () => {
  const { gpu, core } = await manual();
  const into = new Float32Array(100);
  const call = gpu.lerp(ramp(100), ramp(100), 0, { into });
  const other = gpu.lerp(f32(1), f32(1), 0);
  gpu.flush();
  core.answerInChunks(40, {
    behind: (chunk) =>
      chunk === 0 && structuredClone(into.buffer, { transfer: [into.buffer] }),
  });
  await assert.rejects(call, { code: "invalid-input", message: /detached/ });
  assert.deepEqual(await other, f32(1));
});

test("disposed between two parts: the call rejects, and nothing follows", async () => {
  const { gpu, core } = await manual();
  const call = gpu.lerp(ramp(100), ramp(100), 0);
  const rejected = assert.rejects(call, { code: "disposed" });
  gpu.flush();
  core.answerInChunks(60, { behind: (chunk) => chunk === 0 && gpu.dispose() });
  await rejected;
});

test("sent again after a loss, a result is whole all the same", async () => {
  const { gpu, core } = await manual();
  const call = gpu.lerp(ramp(100), ramp(100), 0);
  gpu.flush();
  const [batch] = core.flights;
  let lost = true;
  // The first chunk of one device, then all from the next, in other chunks.
  try {
    core.answerInChunks(40, {
      behind: () => {
        if (lost) throw new Error("lost");
      },
    });
  } catch {
    lost = false;
  }
  core.flights.push(batch);
  core.answerInChunks(70);
  assert.deepEqual(await call, ramp(100));
});
