// Storage in fewer bits is tested while a model loads: whose cosine is told, what is refused, what
// is let go of.
//
// The fake core keeps all bits, whatever a home is: what a device would lose, a case takes away.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, fake, manual, module } from "./face.mjs";
import { folder, safetensors, TENSORS } from "./folder.mjs";

await module("embeddings/index");

async function opened() {
  fake.device = { engine: "gpu", software: false };
  const { gpu, core } = await manual();
  fake.device = undefined;
  core.answersAtOnce = true;
  return { gpu, core };
}

/** A model whose numbers the device changes by `lose`, once they were uploaded in fewer bits. */
async function loading(options, { lose = (x) => x, change } = {}) {
  const { gpu, core } = await opened();
  const { fill } = core;
  core.fill = function (number, data, home, ...rest) {
    const { buffer, byteOffset, length } = data;
    const floats = new Float32Array(buffer, byteOffset, length);
    const kept = home > 1 ? new Uint32Array(floats.map(lose).buffer) : data;
    return fill.call(this, number, kept, home, ...rest);
  };
  const loaded = gpu.embedder(folder(change), options);
  return { gpu, core, loaded };
}

for (const [name, options] of [
  ["by default", {}],
  ["without a copy in the page", { keep: false }],
]) {
  test(`the least cosine of the texts is told, ${name}`, async () => {
    const lose = (x) => x - (x % 2);
    const { core, loaded } = await loading(
      { dtype: "int8", ...options },
      { lose },
    );
    const embedder = await loaded;
    const { fidelity } = embedder.info;
    // The vectors of the fake's texts, with the bias of 100: "a b" and "c" between their ends.
    const vector = (ids, of) =>
      Array.from({ length: 4 }, (_, i) => {
        const sum = ids.reduce((sum, id) => sum + of(id + i / 4), 0);
        return sum / ids.length + 100;
      });
    const cosine = (ids) => {
      const [a, b] = [vector(ids, (x) => x), vector(ids, lose)];
      const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
      return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
    };
    const expected = Math.min(cosine([2, 4, 5, 3]), cosine([2, 6, 3]));
    assert.ok(expected < 1 && Math.abs(fidelity - expected) < 1e-6, fidelity);
    // What the test had of its own is gone.
    assert.equal(core.tensors.size, 3);
    embedder.dispose();
    assert.equal(core.tensors.size, 0);
  });
}

test("no text is computed where no bits are lost, or nobody asks", async () => {
  const halves = TENSORS.map(([name, dtype, shape, elements]) => [
    ...[name, dtype === "F32" ? "F16" : dtype, shape],
    elements.map(() => 0x3c00),
  ]);
  for (const [options, change, fidelity] of [
    [{ dtype: "f32" }, {}, 1],
    [{ dtype: "auto" }, { "model.safetensors": safetensors(halves) }, 1],
    [{ dtype: "int8", verify: false }, {}, undefined],
  ]) {
    const { core, loaded } = await loading(options, { change });
    const embedder = await loaded;
    assert.equal(embedder.info.fidelity, fidelity);
    // The call that compiles the kernels.
    assert.equal(core.counts.submits, 1);
  }
});

test("storage that changes vectors too much is refused, and leaves nothing", async () => {
  for (const lose of [(x, i) => (i % 4 === 0 ? 5000 : x), () => NaN]) {
    const { freed, made } = chunk;
    const { core, loaded } = await loading({ dtype: "int8" }, { lose });
    await assert.rejects(loaded, {
      code: "unsupported",
      message: /^embedder: as int8 the model gives other vectors/,
    });
    assert.equal(core.tensors.size, 0);
    assert.equal(chunk.made - made, chunk.freed - freed, "all is freed");
  }
});

test("without a tokenizer ids stand for texts, and rerankers are tested, too", async () => {
  const { core, loaded } = await loading(
    { dtype: "f16" },
    { change: { "tokenizer.json": undefined } },
  );
  assert.equal((await loaded).info.fidelity, 1);
  assert.ok(core.counts.submits > 1);
  const { gpu } = await opened();
  const reranker = await gpu.reranker(folder(), { dtype: "bf16" });
  assert.equal(reranker.info.fidelity, 1);
  await assert.rejects(gpu.embedder(folder(), { verify: 1 }), {
    code: "invalid-input",
    message: "embedder: verify must be true or false, got number",
  });
});

test("loading that is given up ends while texts are computed", async () => {
  const { gpu, core } = await opened();
  core.answersAtOnce = false;
  const controller = new AbortController();
  const { signal } = controller;
  const loaded = gpu.embedder(folder(), { dtype: "f16", signal });
  while (core.flights.length === 0) await new Promise(setImmediate);
  controller.abort(new Error("enough"));
  await assert.rejects(loaded, /enough/);
  core.answer();
  assert.equal(core.tensors.size, 0);
});

test("a session that ends meanwhile ends loading", async () => {
  for (const stages of [0, 1]) {
    const { gpu, core } = await opened();
    core.answersAtOnce = false;
    const loaded = gpu.embedder(folder(), { dtype: "f16" });
    const sent = async () => {
      while (core.flights.length === 0) await new Promise(setImmediate);
    };
    for (let stage = 0; stage < stages; stage += 1) {
      await sent();
      core.answer();
    }
    if (stages === 0) await sent();
    await gpu.dispose();
    await assert.rejects(loaded, { code: "disposed" });
  }
});
