// Indexes of vectors: their bytes, what the device is told, and how calls hold on to
// them. What is said of wrong input is tested in real pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { face, fake, manual, module, settled } from "./face.mjs";

await module("search/index");
const { Vectors, rounded } = await module("search/vectors");
const { load, save } = await module("search/file");
const { fromF16, toF16 } = await module("search/packing");

// `tests/search/files.rs` has the same vectors.
const GIVEN = Float32Array.of(
  ...[1.5, -0.25, 3, 0, 7.125],
  ...[0, 0, 0, 0, 0],
  ...[-0.001, 0.333, 2.5, 1e-6, -0.7],
);
const TYPES = ["f32", "f16", "bf16", "int8"];

test("indexes have the bytes of both languages", () => {
  const lines = [];
  for (const dtype of TYPES) {
    for (const metric of ["cosine", "dot", "l2"]) {
      const vectors = new Vectors({ dim: 5, metric, dtype });
      vectors.add(GIVEN);
      vectors.remove([1]);
      const bytes = save(vectors);
      assert.deepEqual(save(load(bytes)), bytes);
      lines.push(Buffer.from(bytes).toString("hex"));
    }
  }
  const file = new URL("../../tests/search/saved.txt", import.meta.url);
  assert.deepEqual(lines, readFileSync(file, "utf8").trim().split("\n"));
});

test("the bytes of an index may lie anywhere, in arrays of any kind", async () => {
  const { gpu } = await manual();
  const made = gpu.index(GIVEN, { dim: 5, metric: "dot" });
  const bytes = made.save();
  const odd = Buffer.alloc(bytes.length + 1).subarray(1);
  odd.set(bytes);
  const foreign = runInNewContext("Uint8Array").from(bytes);
  for (const given of [bytes, bytes.buffer, odd, foreign, foreign.buffer]) {
    assert.deepEqual(gpu.loadIndex(given).save(), bytes);
  }
  for (const given of [new Float32Array(8), "bytes", null, {}]) {
    assert.throws(() => gpu.loadIndex(given), {
      message: /^index: bytes must be a Uint8Array, got /,
    });
  }
});

test("16-bit floats are packed to the nearest", () => {
  for (let half = 0; half < 0x7c00; half += 1) {
    assert.equal(toF16(fromF16(half)), half);
    const middle = (fromF16(half) + fromF16(half + 1)) / 2;
    if (half < 0x7bff) assert.equal(toF16(-middle), 0x8000 + half + (half & 1));
  }
});

test("the device is told what changed, and no more", () => {
  const dim = 4;
  const block = 128 + 4 * 64;
  const vectors = new Vectors({ dim, metric: "dot", dtype: "f32" });
  const told = [];
  const listener = {
    page: (page, words) => told.push(["page", page, words.length / block]),
    part: (page, at, words) => told.push([page, at / block, words.length]),
  };
  const expect = (...expected) => {
    vectors.tell(listener);
    assert.deepEqual(told.splice(0), expected);
  };
  vectors.add(new Float32Array(dim * 200));
  expect(["page", 0, 4]);
  expect();
  vectors.remove([3, 70]);
  expect([0, 0, 128], [0, 1, 128]);
  vectors.add(new Float32Array(dim * 3));
  expect([0, 0, block * 2], [0, 3, block]);
  vectors.add(new Float32Array(dim * 100));
  expect(["page", 0, 8]);
  vectors.forget();
  expect(["page", 0, 8]);
  assert.deepEqual([...vectors.places.keys()].at(-1), 302);
});

test("rounded counts are few, and at most a quarter above", () => {
  const seen = new Set();
  for (let count = 1; count <= 4096; count += 1) {
    const more = rounded(count);
    assert.ok(more >= count && more <= count * 1.25, `${count} became ${more}`);
    seen.add(more);
  }
  assert.ok(seen.size < 100, `${seen.size} sizes`);
});

test("an index that is disposed of stays until its searches are answered", async () => {
  const { gpu, core } = await manual();
  const index = gpu.index(new Float32Array([1, 0, 0, 1]), { dim: 2 });
  const before = core.tensors.size;
  const search = index.search(new Float32Array([1, 0]), 1);
  assert.equal(core.tensors.size, before + 1);
  index.dispose();
  assert.equal(core.tensors.size, before + 1);
  gpu.flush();
  core.answer();
  const { ids, scores } = await search;
  assert.deepEqual([...ids, ...scores], [7, 0.5]); // The fake core finds it.
  assert.equal(core.tensors.size, before);
  await assert.rejects(index.search(new Float32Array([1, 0]), 1), {
    code: "disposed",
  });
  index.dispose();
});

test("a search that is made tells the device what changed, whatever waits", async () => {
  const { gpu, core } = await manual();
  const index = gpu.index(new Float32Array([1, 0, 0, 1]), { dim: 2 });
  const query = new Float32Array([1, 0]);
  const told = () => [core.counts.fills, core.counts.patches];
  const searches = [index.search(query, 1)];
  index.remove([0]);
  assert.deepEqual(told(), [1, 0]);
  searches.push(index.search(query, 1));
  assert.deepEqual(told(), [1, 1]);
  index.add(query);
  gpu.flush();
  assert.deepEqual(told(), [1, 1]);
  core.answer();
  await Promise.all(searches);
});

test("an index that is made while the session opens is searched once it is open", async () => {
  const gpu = face.shared({ flush: "manual" });
  const index = gpu.index(new Float32Array([1, 0, 0, 1]), { dim: 2 });
  const search = index.search(new Float32Array([1, 0]), 1);
  gpu.flush();
  await gpu.ready;
  fake.core.answer();
  assert.deepEqual([...(await search).ids], [7]);
  await gpu.dispose();
});

test("a stream of searches begun while the session opens is sent without a flush", async () => {
  const gpu = face.shared({ flush: "manual" });
  const index = gpu.index(new Float32Array([1, 0, 0, 1]), { dim: 2 });
  const queries = [new Float32Array([1, 0])];
  const found = gpu.stream(queries, (query) => index.search(query, 1));
  const first = found.next();
  await gpu.ready;
  await settled();
  assert.equal(fake.core.flights.length, 1);
  fake.core.answer();
  assert.deepEqual([...(await first).value.ids], [7]);
  await gpu.dispose();
});
