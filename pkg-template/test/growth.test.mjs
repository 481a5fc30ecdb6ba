// WebAssembly memory that grows while answers are handed out.
//
// What an answered call held is given back at once. That enters the core, which may ask
// for memory: every view of the memory before has no length from then on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, module, stateOf } from "./face.mjs";
import { folder, vector } from "./folder.mjs";

await module("embeddings/index");
await module("search/index");

const LARGE = 16_384;
const f32 = (...values) => new Float32Array(values);
const ramp = (length, from) =>
  Float32Array.from({ length }, (_, i) => from + i);

/** How a batch comes back. */
const WAYS = {
  "in the core's memory": (core) => core.answer({ mapped: false }),
  "in a mapped range": (core) => core.answer(),
  "in chunks": (core) => core.answerInChunks(50),
};

for (const [way, answer] of Object.entries(WAYS)) {
  test(`tensors disposed of while they are read, answered ${way}: every reading is right`, async () => {
    const { gpu, core } = await manual();
    const into = new Float32Array(30);
    const reads = [];
    const expected = [];
    for (let k = 0; k < 60; k += 1) {
      const tensor = gpu.tensor(ramp(LARGE, 100 * k));
      // Short results are copied by a loop, longer ones by a built-in.
      const length = k % 2 === 0 ? 3 : 30;
      const options = k === 31 ? { into } : undefined;
      reads.push(tensor.slice([0, length]).read(options));
      expected.push(ramp(length, 100 * k));
      if (k % 3 === 0) {
        reads.push(gpu.lerp(f32(k, 1), f32(k, 1), 0));
        expected.push(f32(k, 1));
      }
      tensor.dispose();
    }
    const several = gpu.tensor(ramp(LARGE, 7));
    reads.push(gpu.readAll([several.slice([0, 5]), several.argmax()]));
    expected.push([ramp(5, 7), Uint32Array.of(LARGE - 1)]);
    several.dispose();
    gpu.flush();
    core.growsOnRelease = true;
    answer(core);
    assert.equal(core.counts.releases, 61);
    for (const [at, read] of reads.entries()) {
      assert.deepEqual((await stateOf(read)).value, expected[at], `read ${at}`);
    }
    assert.equal(await reads[42], into);
  });
}

test("an index and an embedder that are disposed of while calls wait: every call is answered", async () => {
  const { gpu, core } = await manual();
  const index = gpu.index(f32(1, 0, 0, 1), { dim: 2 });
  const embedder = await gpu.embedder(folder());
  const found = index.search(f32(1, 0), 2);
  const embedded = embedder.embed("a b");
  const last = gpu.lerp(f32(1), f32(3), 0.5);
  index.dispose();
  embedder.dispose();
  gpu.flush();
  core.growsOnRelease = true;
  core.answer({ mapped: false });
  assert.deepEqual([...(await found).ids], [7, 8]);
  assert.deepEqual(await embedded, vector(2, 4, 5, 3));
  assert.deepEqual(await last, f32(2));
});
