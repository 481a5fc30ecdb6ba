// What chains are on the wire, and which of them are one structure.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, module } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);

const cube = (gpu) =>
  gpu.tensor(
    Float32Array.from({ length: 24 }, (_, i) => i),
    [2, 3, 4],
  );

test("the words of a chain: what is shared stands there once", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(f32(1, 2), [1, 2]);
  const twice = a.scale(2);
  const reading = twice.add(twice).add(a).sum(1).read();
  gpu.flush();
  core.answer();
  assert.deepEqual(await reading, f32(15));
  assert.deepEqual(
    [...core.structures[0].words],
    [
      ...[6, 1],
      ...[0 | (4 << 16), 0, 0, 1, 2], // 0: floats with the call, of shape [1, 2]
      1, // 1: a number
      ...[3 | (2 << 8) | (1 << 16), 0, 1, 2], // 2: 0 · 1
      ...[3 | (2 << 8) | (1 << 16), 2, 2, 0], // 3: 2 + 2
      ...[3 | (2 << 8) | (1 << 16), 3, 0, 0], // 4: 3 + 0
      ...[6 | (1 << 8) | (3 << 16), 4, 0, 0, 1], // 5: the sum over axis 1
      5,
    ],
  );
});

test("a structure is asked for once; numbers and data are none of it", async () => {
  const { gpu, core } = await manual();
  const promises = [];
  for (let i = 1; i <= 4; i += 1) {
    promises.push(gpu.tensor(f32(i, i)).scale(i).read());
    promises.push(gpu.tensor(f32(i)).scale(i).read());
    promises.push(gpu.tensor(f32(i)).add(i).read());
  }
  assert.equal(core.structures.length, 3);
  gpu.flush();
  core.answer();
  const results = await Promise.all(promises);
  assert.deepEqual(
    results.map((result) => [...result]),
    [1, 2, 3, 4].flatMap((i) => [[i * i, i * i], [i * i], [i + i]]),
  );
});

test("axes in any order are one structure", async () => {
  const { gpu, core } = await manual();
  const orders = [
    [2, 0],
    [0, 2],
    [-1, -3],
  ];
  const sums = orders.map((axis) => cube(gpu).sum(axis).read());
  assert.equal(core.structures.length, 1);
  gpu.flush();
  core.answer();
  for (const sum of await Promise.all(sums)) {
    assert.deepEqual(sum, f32(60, 92, 124));
  }
});

test("words of one hash are kept apart", async () => {
  const { ChainStructures } = await module("tensor/chain-structures");
  const held = new Map();
  let next = 0;
  const structures = new ChainStructures({
    chain: (words) => held.set(next, words.join()) && next++,
    forget: (numbers) => numbers.forEach((number) => held.delete(number)),
  });
  const words = new Uint32Array(2);
  // Enough for some to collide in 30 bits, though only the last thousand are kept.
  for (let i = 0; i < 200_000; i += 1) {
    words.set([Math.imul(i, 0x9e3779b1), i]);
    for (let again = 0; again < 2; again += 1) {
      const { number } = structures.find({ words, length: 2 }, []);
      if (held.get(number) !== words.join()) assert.fail(`${words}: ${number}`);
    }
  }
  assert.equal(next, 200_000);
  assert.ok(held.size <= 1024, `${held.size} are held`);
});

test("many structures are kept apart", async () => {
  const { gpu, core } = await manual();
  const promises = [];
  for (let round = 0; round < 2; round += 1) {
    for (let length = 1; length <= 300; length += 1) {
      promises.push(gpu.tensor(new Float32Array(length).fill(1)).sum().read());
    }
  }
  assert.equal(core.structures.length, 300);
  gpu.flush();
  core.answer();
  const sums = (await Promise.all(promises)).map(([sum]) => sum);
  assert.deepEqual(
    sums,
    sums.map((_, i) => (i % 300) + 1),
  );
});
