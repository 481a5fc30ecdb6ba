// Indexes of vectors: their bytes, what the device is told, and how calls hold on to
// them. What is said of wrong input is tested in real pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { face, fake, manual, module, settled } from "./face.mjs";

await module("search/index");
const { Vectors, rounded } = await module("search/vectors");
const { load, save } = await module("search/index-file");
const { toF16 } = await module("search/packing");

// `tests/search/files.rs` has the same vectors.
const GIVEN = Float32Array.of(
  ...[1.5, -0.25, 3, 0, 7.125],
  ...[0, 0, 0, 0, 0],
  ...[-0.001, 0.333, 2.5, 1e-6, -0.7],
);
const TYPES = ["f32", "f16", "bf16", "int8"];

/** The value of a positive 16-bit float. */
function fromF16(half) {
  const exponent = half >> 10;
  const fraction = half & 1023;
  if (exponent === 31) return fraction > 0 ? NaN : Infinity;
  if (exponent === 0) return fraction * 2 ** -24;
  return (1 + fraction / 1024) * 2 ** (exponent - 15);
}

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
    range: (page, at, words) => told.push([page, at / block, words.length]),
  };
  const expect = (...expected) => {
    vectors.upload(listener);
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
  assert.deepEqual([...vectors.slots.keys()].at(-1), 302);
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

// `tests/search/files.rs` has the same words.
test("what packing does not give is refused, and its largest is not", () => {
  const kept = (dtype, vector, word, value) => {
    const vectors = new Vectors({ dim: vector.length, metric: "l2", dtype });
    vectors.add(Float32Array.from(vector));
    const bytes = save(vectors);
    if (word !== undefined) new Uint32Array(bytes.buffer)[word] = value;
    return bytes;
  };
  for (const dtype of TYPES) {
    const most = dtype === "f16" ? 65_504 : 1e17;
    const bytes = kept(dtype, [most, -most, most]);
    assert.deepEqual(save(load(bytes)), bytes);
  }
  const [float, scale] = new Uint32Array(
    Float32Array.of(1e17, Math.fround(1e17) / 127).buffer,
  );
  const sign = 2 ** 31;
  for (const [dtype, word, last, first] of [
    ["int8", 8, scale, scale + 1],
    ["int8", 8, 0, scale + sign],
    ["int8", 8, 0, 0x7fc0_0000],
    ["f32", 9, float, float + 1],
    ["f32", 9, float + sign, float + sign + 1],
    ["f16", 9, 0xfbff_7bff, 0x7c00],
    ["f16", 9, 0xfbff_7bff, 0xfe00_0000],
    ["bf16", 9, 0xdbb2_5bb2, 0x5bb3],
    ["bf16", 9, 0xdbb2_5bb2, 0xdbb3_0000],
  ]) {
    load(kept(dtype, [1, 2], word, last));
    assert.throws(() => load(kept(dtype, [1, 2], word, first)), {
      code: "invalid-input",
      message: "index: the bytes: the vector of id 0 holds what is no number",
    });
  }
});

test("bytes that were transferred away are refused", async () => {
  const { gpu } = await manual();
  const bytes = gpu.index(GIVEN, { dim: 5 }).save();
  const { buffer } = bytes;
  structuredClone(buffer, { transfer: [buffer] });
  for (const given of [bytes, buffer]) {
    assert.throws(() => gpu.loadIndex(given), {
      code: "invalid-input",
      message: /^index: bytes is detached/,
    });
  }
});

test("where there is no memory, none is added, and the index is as before", async () => {
  const { gpu, core } = await manual();
  const index = gpu.index({ dim: 4, metric: "dot", dtype: "int8" });
  index.add(new Float32Array(4 * 60).fill(1));
  const before = index.save();
  const Words = globalThis.Uint32Array;
  const refusing = (words) =>
    class extends Words {
      constructor(...args) {
        if (args[0] >= words) throw new RangeError("allocation failed");
        super(...args);
      }
    };
  const refused = (words, ask) => {
    globalThis.Uint32Array = refusing(words);
    try {
      assert.throws(ask, { code: "out-of-memory" });
    } finally {
      globalThis.Uint32Array = Words;
    }
  };
  const block = 128 + 4 * 64;
  const many = new Float32Array(4 * 70).fill(2);
  for (let tries = 0; tries < 2; tries += 1) {
    refused(2 * block, () => index.add(many));
    assert.equal(index.size, 60);
    assert.deepEqual(index.save(), before);
  }
  refused(61, () => index.save());
  refused(61, () => gpu.loadIndex(before));
  const search = index.search(Float32Array.of(1, 1, 1, 1), 1);
  gpu.flush();
  core.answer();
  assert.equal((await search).ids.length, 1);
  assert.deepEqual(index.add(many)[0], 60);
  assert.equal(index.size, 130);
});

test("what a filter or ids cannot be is said, and a filter may dispose", async () => {
  const { gpu, core } = await manual();
  const index = gpu.index(GIVEN, { dim: 5 });
  const query = GIVEN.subarray(0, 5);
  const gone = Uint32Array.of(1);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  for (const filter of [gone, { mask: gone }]) {
    await assert.rejects(index.search(query, 1, { filter }), {
      message: /^search: the filter's array is detached/,
    });
  }
  for (const [ids, message] of [
    [7, "index.remove: give ids, as in [7], got number"],
    [null, "index.remove: give ids, as in [7], got null"],
    [[Symbol("x")], "index.remove: no vector has the id Symbol(x)"],
  ]) {
    assert.throws(() => index.remove(ids), { code: "invalid-input", message });
  }
  const filter = () => index.dispose();
  assert.throws(() => index.add([1, 2]), {
    code: "invalid-input",
    message:
      /^index\.add: vectors must be a Float32Array, got Array; give Float32Array\.from\(vectors\)/,
  });
  await assert.rejects(index.search(query, 1, { filter }), {
    code: "disposed",
  });
  assert.equal(core.tensors.size, 0);
});

test("what a filter takes grows with vectors and not with ids", async () => {
  const { gpu, core } = await manual();
  const bytes = gpu.index(GIVEN, { dim: 5 }).save();
  const words = new Uint32Array(bytes.buffer);
  // Six of the header, the next id, the ids.
  const last = 2 ** 32 - 3;
  words.set([last + 1, 0, 2 ** 31, last], 6);
  const index = gpu.loadIndex(bytes);
  const query = GIVEN.subarray(0, 5);
  /** The words of the mask of the call that is queued. */
  const maskOf = (filter) => {
    void index.search(query, 1, { filter }).catch(() => {});
    const { at, spec } = core.queued.at(-1);
    assert.ok(spec.isListed);
    return [...core.view().subarray(at + spec.row, at + spec.row + spec.mask)];
  };
  const nobody = 2 ** 32 - 1;
  const cases = [
    [Uint32Array.of(last, 0, 7, 0), [0, last, nobody]],
    [{ mask: Uint32Array.of(0b1001) }, [0, nobody, nobody]],
    [(id) => id > 0, [2 ** 31, last, nobody]],
    [new Uint32Array(0), [nobody, nobody, nobody]],
  ];
  for (const [filter, mask] of cases) assert.deepEqual(maskOf(filter), mask);
  assert.throws(() => index.add(query), { code: "invalid-input" });
  words[6] = nobody;
  assert.throws(() => gpu.loadIndex(bytes), {
    code: "invalid-input",
    message: "index: the bytes: the next id is too large",
  });
  await gpu.dispose();
});

test("masks have a bit for each id where these are few words", () => {
  const vectors = new Vectors({ dim: 1, metric: "dot", dtype: "f32" });
  vectors.add(new Float32Array(100));
  const bits = vectors.mask([0, 33, 99, 100, 2 ** 32 - 2]);
  assert.ok(!bits.isListed);
  assert.deepEqual([...bits.words], [1, 2, 0, 8 | 16]);
  const same = vectors.maskOfBits(Uint32Array.of(1, 2, 0, 8, 5));
  assert.deepEqual([...same.words], [1, 2, 0, 8]);
});

test("a distance of nothing is 0", async () => {
  const { gpu, core } = await manual();
  const index = gpu.index(GIVEN, { dim: 5, metric: "l2" });
  const search = index.search(GIVEN.subarray(0, 5), 1);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await search).scores], [0]);
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

const { DevicePlaces } = await module("search/device-places");

test("device pages double, and places that were given back are taken first", () => {
  const places = new DevicePlaces(2, 5);
  assert.deepEqual([places.pages, places.blocks], [0, 0]);
  // Pages of 2, 4, 5, 5, … blocks of 64 places.
  const sizes = [0, 1, 2, 3].map((page) => places.blocksOf(page));
  assert.deepEqual(sizes, [2, 4, 5, 5]);
  const taken = Array.from({ length: 128 + 256 + 1 }, () => places.take());
  assert.deepEqual(taken, [...taken.keys()]);
  for (const [place, spot] of [
    [0, { page: 0, place: 0 }],
    [127, { page: 0, place: 127 }],
    [128, { page: 1, place: 0 }],
    [383, { page: 1, place: 255 }],
    [384, { page: 2, place: 0 }],
    [384 + 320, { page: 3, place: 0 }],
  ]) {
    assert.deepEqual(places.locate(place), spot);
  }
  assert.deepEqual([places.pages, places.blocks], [3, 7]);
  places.give(70);
  places.give(3);
  assert.deepEqual([places.take(), places.take(), places.take()], [3, 70, 385]);
  places.clear();
  assert.deepEqual([places.take(), places.pages], [0, 1]);
});

test("blocks that are searched are rounded up, within the pages that are there", () => {
  const places = new DevicePlaces(4, 1000);
  for (let place = 0; place < 64 * 100; place += 1) {
    places.take();
    let room = 0;
    for (let page = 0; page < places.pages; page += 1) {
      room += places.blocksOf(page);
    }
    const used = Math.ceil((place + 1) / 64);
    assert.equal(places.blocks, Math.min(rounded(used), room));
    assert.ok(places.blocks >= used);
  }
});
