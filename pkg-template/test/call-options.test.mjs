// The options of a call: where it runs, its key, when it is sent, and its array. What is
// said of wrong options is in check.test.mjs, signals and deadlines are in abort.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const u8 = (length, value) => new Uint8Array(length).fill(value);

test("a call says where it runs", async () => {
  const { gpu, core } = await manual();
  const tensor = gpu.tensor([1, 2]);
  for (const engine of [undefined, "gpu", "cpu"]) {
    gpu.lerp(f32(1), f32(1), 0, { engine });
    tensor.exp().read({ engine });
  }
  gpu.lerp(f32(1), f32(1), 0);
  assert.deepEqual(
    core.queued.map(({ engine }) => engine),
    [0, 0, 1, 1, 2, 2, 0],
  );
});

test("a call says how urgent it is", async () => {
  const { gpu, core } = await manual();
  const tensor = gpu.tensor([1, 2]);
  const states = u8(16, 2);
  const calls = [
    (options) => gpu.lerp(f32(1), f32(1), 0, options),
    (options) => gpu.slerp(f32(0, 0, 0, 1), f32(0, 0, 0, 1), 0, options),
    (options) => tensor.exp().read(options),
    (options) => gpu.readAll([tensor.exp(), tensor.neg()], options),
    (options) => gpu.states.gradients(states, options),
    (options) => gpu.states.lerp(states, states, 0.5, options),
  ];
  const rows = [
    [undefined, "queued", 0],
    ["normal", "queued", 0],
    ["high", "high", 1],
    ["low", "low", 2],
  ];
  for (const call of calls) {
    for (const [priority, list, number] of rows) {
      const before = core[list].length;
      call(priority === undefined ? undefined : { priority });
      assert.equal(core[list].length, before + 1, `${call} ${priority}`);
      assert.equal(core[list].at(-1).priority, number);
    }
  }
  for (const wrong of ["urgent", 1, null]) {
    await assert.rejects(
      gpu.lerp(f32(1), f32(1), 0, { priority: wrong, label: "x" }),
      {
        code: "invalid-input",
        message: `lerp (label 'x'): priority must be 'high', 'normal' or 'low', got '${wrong}'`,
      },
    );
  }
});

test("keys are numbers only under 'latest', and live as long as their calls", async () => {
  const plain = await manual();
  plain.gpu.lerp(f32(1), f32(1), 0, { key: "k" });
  assert.deepEqual(
    plain.core.queued.map(({ key }) => key),
    [0],
  );

  const { gpu, core } = await manual({ overflow: "latest" });
  const call = (key) => gpu.lerp(f32(1), f32(1), 0, { key });
  for (const key of ["x", "y", "x", undefined]) call(key);
  assert.deepEqual(
    core.queued.map(({ key }) => key),
    [1, 2, 1, 0],
  );
  gpu.flush();
  core.answer();
  call("x");
  assert.equal(core.queued[0].key, 3, "forgotten with its last call");
});

test("flush: 'now' sends the batch with this call in it", async () => {
  const { gpu, core } = await manual();
  gpu.lerp(f32(1), f32(1), 0);
  gpu.lerp(f32(1), f32(1), 0, { flush: "now" });
  assert.deepEqual([core.flights[0].length, core.queued.length], [2, 0]);
});

test("into: filled, and what the promise resolves to", async () => {
  const { gpu, core } = await manual();
  const backing = new Float32Array(10).fill(7);
  const into = backing.subarray(2, 5);
  const bytes = new Uint8Array(16);
  const floats = gpu.lerp(f32(1, 2, 3), f32(3, 4, 5), 0.5, { into });
  const states = gpu.states.lerp(u8(16, 2), u8(16, 4), 0.5, { into: bytes });
  gpu.flush();
  core.answer();
  assert.equal(await floats, into);
  assert.deepEqual([...backing], [7, 7, 2, 3, 4, 7, 7, 7, 7, 7]);
  assert.equal(await states, bytes);
  assert.deepEqual([...bytes], [...u8(16, 3)]);
});

test("into that is detached meanwhile rejects its own call only", async () => {
  const { gpu, core } = await manual();
  const into = new Float32Array(2);
  const lost = gpu.lerp(f32(1, 1), f32(1, 1), 0, { into, label: "lost" });
  const kept = gpu.lerp(f32(2), f32(2), 0);
  gpu.flush();
  structuredClone(into.buffer, { transfer: [into.buffer] });
  core.answer();
  await assert.rejects(lost, {
    code: "invalid-input",
    message: /^lerp \(label 'lost'\): into was detached/,
  });
  assert.deepEqual([...(await kept)], [2]);
});

test("options are read once: changing the object later changes nothing", async () => {
  const { gpu, core } = await manual();
  const options = { into: new Float32Array(1), label: "first" };
  const { into } = options;
  const promise = gpu.lerp(f32(1), f32(1), 0, options);
  options.into = new Float32Array(9);
  gpu.flush();
  core.answer();
  assert.equal(await promise, into);
});
