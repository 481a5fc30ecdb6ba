// Tensors in fewer bits: which data is to be kept how, and what the core is told of it.
// Packing itself is the core's.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fake, face, manual, settled } from "./face.mjs";

const LARGE = 16_384;
const HARDWARE = { engine: "gpu", software: false };
const HOMES = { f32: 1, f16: 2, bf16: 3, int8: 4, int4: 5 };

/** The home that a tensor's readers name, and the one that it was filled for. */
function homes(core, tensor) {
  const read = tensor.add(1).read();
  const { chain } = core.queued.at(-1).spec;
  const [{ attributes }] = chain.nodes.filter(({ code }) => code === 0);
  core.gpu?.flush();
  return {
    read,
    named: attributes[1],
    filled: [...core.homes.values()].at(-1),
  };
}

async function answer({ gpu, core }, ...reads) {
  gpu.flush();
  core.answer();
  await Promise.all(reads);
}

test("data of any length lies on the device in the format that is asked for", async () => {
  const { gpu, core } = await manual();
  for (const length of [1, LARGE]) {
    for (const dtype of ["f16", "bf16", "int8", "int4"]) {
      const tensor = gpu.tensor(new Float32Array(length), [length], { dtype });
      const { read, named, filled } = homes(core, tensor);
      assert.equal(named, HOMES[dtype]);
      assert.equal(filled, HOMES[dtype]);
      assert.equal(tensor.dtype, "float32");
      await answer({ gpu, core }, read);
    }
  }
});

test("f32 is what it is without a word", async () => {
  const { gpu, core } = await manual();
  const short = homes(core, gpu.tensor([1, 2], [2], { dtype: "f32" }));
  assert.equal(short.named, 0);
  const data = new Float32Array(LARGE);
  const long = homes(core, gpu.tensor(data, [LARGE], { dtype: "f32" }));
  assert.deepEqual([long.named, long.filled], [1, 1]);
  await answer({ gpu, core }, short.read, long.read);
});

test("16-bit floats go up as they are, whatever their place in memory", async () => {
  const { gpu, core } = await manual();
  const buffer = new Uint16Array([9, 1, 2, 3, 4, 5]);
  for (const [from, to] of [
    [0, 4],
    [1, 5],
    [2, 5],
    [1, 4],
  ]) {
    const data = buffer.subarray(from, to);
    gpu.tensor(data, [data.length], { dtype: "bf16" });
    const words = [...core.tensors.values()].at(-1);
    const halves = new Uint16Array(words.buffer, words.byteOffset);
    assert.deepEqual([...halves].slice(0, data.length), [...data]);
    assert.equal(words.length, Math.ceil(data.length / 2));
    assert.equal([...core.homes.values()].at(-1), HOMES.bf16 | 8);
  }
});

test("auto is f16 on a hardware GPU, for much data that it can hold", async () => {
  const { gpu, core } = await manual();
  const data = (value, length = LARGE) => new Float32Array(length).fill(value);
  for (const [device, given, dtype] of [
    [HARDWARE, data(1), "f16"],
    [HARDWARE, data(65519), "f16"],
    [HARDWARE, data(Infinity), "f16"],
    [HARDWARE, data(NaN), "f16"],
    [HARDWARE, data(-65520), "f32"],
    [{ engine: "gpu", software: true }, data(1), "f32"],
    [{ engine: "cpu" }, data(1), "f32"],
  ]) {
    core.device = device;
    gpu.tensor(given, [LARGE], { dtype: "auto" });
    assert.equal([...core.homes.values()].at(-1), HOMES[dtype], `${given[0]}`);
  }
  core.device = HARDWARE;
  const short = homes(core, gpu.tensor(data(1, 100), [100], { dtype: "auto" }));
  assert.equal(short.named, 0);
  await answer({ gpu, core }, short.read);
});

test("auto is decided when the session opens, and stays on another device", async () => {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const gpu = face.shared({ flush: "manual" });
  await settled();
  const tensor = gpu.tensor(new Float32Array(LARGE), [LARGE], {
    dtype: "auto",
  });
  const early = tensor.exp().read();
  fake.device = HARDWARE;
  open();
  await gpu.ready;
  fake.device = undefined;
  const { core } = fake;
  assert.deepEqual([...core.homes.values()], [HOMES.f16]);
  await answer({ gpu, core }, early);
  core.device = { engine: "cpu" };
  core.lose();
  core.restore("fallback");
  assert.deepEqual([...core.homes.values()], [HOMES.f16]);
  assert.equal(core.counts.fills, 2);
  const { read, named } = homes(core, tensor);
  assert.equal(named, HOMES.f16);
  await answer({ gpu, core }, read);
});

test("gpuBuffer tells the bytes that there are", async () => {
  const { gpu } = await manual();
  for (const [dtype, length, size] of [
    ["f32", LARGE, 4 * LARGE],
    ["f16", 5, 12],
    ["bf16", 6, 12],
    ["int8", 64, 68],
    ["int8", 65, 136],
    ["int4", 64, 36],
    ["int4", 65, 72],
  ]) {
    const tensor = gpu.tensor(new Float32Array(length), [length], { dtype });
    assert.equal(tensor.gpuBuffer().size, size, dtype);
  }
});
