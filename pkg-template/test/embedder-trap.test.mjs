// A trap of the embeddings' WebAssembly: every embedder on the instance ends, the session
// goes on, and the next embedder gets another instance.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, manual, module, settled } from "./face.mjs";
import { folder, safetensors, TENSORS, vector } from "./folder.mjs";

await module("embeddings/index");

const trap = () => new WebAssembly.RuntimeError("unreachable");
const STOPPED = {
  code: "fatal",
  message:
    /^embed.*: the WebAssembly of embeddings stopped \(.*unreachable\); make a new embedder/,
};

/** Sends what is queued, and answers it. */
function answer({ gpu, core }) {
  gpu.flush();
  core.answer();
}

/** What of an embedder is entered, and how a trap there is met. */
const TRAPS = {
  encode: (embedder) => embedder.embed("a"),
  // For a length that was not asked for before.
  forward: (embedder) => embedder.embedIds([2, 4, 5, 6, 3]),
};
for (const [method, ask] of Object.entries(TRAPS)) {
  test(`a trap of ${method} ends every embedder on the instance, and no session`, async () => {
    const first = await manual();
    const second = await manual();
    const embedders = [];
    for (const { gpu } of [first, first, second]) {
      embedders.push(await gpu.embedder(folder()));
    }
    const [trapping, beside, elsewhere] = embedders;
    const { instances } = chunk;
    // The core has these calls, and knows nothing of that WebAssembly.
    const asked = [beside.embed("a b"), elsewhere.embedIds([2, 5, 3])];
    const slices = beside.embedMany(["a"])[Symbol.asyncIterator]();
    chunk.failures[method] = trap();
    await assert.rejects(ask(trapping), STOPPED);
    assert.ok(chunk.abandoned.has(instances));
    for (const embedder of embedders) {
      await assert.rejects(embedder.embed("a"), STOPPED);
      await assert.rejects(embedder.embedIds([2, 3]), STOPPED);
      assert.throws(() => embedder.embedMany(["a"]), STOPPED);
    }
    await assert.rejects(slices.next(), STOPPED);
    answer(first);
    answer(second);
    assert.deepEqual(await asked[0], vector(2, 4, 5, 3));
    assert.deepEqual(await asked[1], vector(2, 5, 3));
    // What the models held on their devices is given back.
    assert.deepEqual(
      [first.core.tensors.size, second.core.tensors.size],
      [0, 0],
    );
    // Nothing enters the instance again, not even to give something back.
    for (const embedder of embedders) embedder.dispose();
    const next = await first.gpu.embedder(folder());
    assert.equal(chunk.instances, instances + 1);
    const sound = next.embed("a");
    const sum = first.gpu.lerp(Float32Array.of(1), Float32Array.of(3), 0.5);
    answer(first);
    assert.deepEqual(await sound, vector(2, 4, 3));
    assert.deepEqual(await sum, Float32Array.of(2));
    next.dispose();
  });
}

test("an embedder that is still loading ends with the instance, too", async () => {
  const { gpu, core } = await manual();
  const embedder = await gpu.embedder(folder());
  let next;
  const whole = safetensors(TENSORS);
  const blob = new Blob([whole]);
  blob.stream = () =>
    new ReadableStream({
      start(to) {
        next = () => {
          to.enqueue(whole);
          to.close();
        };
      },
    });
  const loading = gpu.embedder(folder({ "model.safetensors": blob }));
  await settled();
  const ended = assert.rejects(loading, STOPPED);
  chunk.failures.encode = trap();
  await assert.rejects(embedder.embed("a"), STOPPED);
  next();
  await ended;
  assert.equal(core.tensors.size, 0);
});

test("a trap while something is given back ends the embedders beside it", async () => {
  const { gpu, core } = await manual();
  const leaving = await gpu.embedder(folder());
  const beside = await gpu.embedder(folder());
  const last = leaving.embed("a");
  const behind = gpu.lerp(Float32Array.of(1), Float32Array.of(3), 0.5);
  leaving.dispose();
  chunk.failures.free = trap();
  // The answer gives back what the model held.
  answer({ gpu, core });
  assert.deepEqual(await last, vector(2, 4, 3));
  assert.deepEqual(await behind, Float32Array.of(2));
  await assert.rejects(beside.embed("a"), STOPPED);
  assert.equal(core.tensors.size, 0);
  (await gpu.embedder(folder())).dispose();
});

test("a refusal is no trap: the embedders go on", async () => {
  const { gpu, core } = await manual();
  const embedder = await gpu.embedder(folder());
  const { instances } = chunk;
  chunk.failures.forward = { code: "invalid-input", message: "too long" };
  await assert.rejects(embedder.embed("a b c"), {
    ...{ code: "invalid-input", message: "embed: too long" },
  });
  const call = embedder.embed("a");
  answer({ gpu, core });
  assert.deepEqual(await call, vector(2, 4, 3));
  assert.equal(chunk.instances, instances);
});

test("a warm-up that fails gives everything back", async () => {
  const { gpu, core } = await manual();
  const { freed, made } = chunk;
  core.end_warmup = () => {
    throw { code: "shader", message: "it does not compile" };
  };
  const before = Object.keys(core.structures).length;
  await assert.rejects(gpu.embedder(folder()), { code: "shader" });
  assert.equal(core.tensors.size, 0);
  assert.equal(Object.keys(core.structures).length, before);
  assert.equal(chunk.freed - freed, chunk.made - made);
});
