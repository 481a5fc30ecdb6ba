// Where the page has no memory: the call, or what was asked for, is told so with a code,
// the bytes and what to do, and nothing else is lost.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { chunk, face, fake, manual, module, stateOf } from "./face.mjs";
import { folder, vector } from "./folder.mjs";
import { scarce } from "./scarce.mjs";

await module("animation/index");
await module("embeddings/index");
await module("search/index");

const f32 = (...values) => new Float32Array(values);
const LONG = 4096;
/** Bytes from which on nothing is left. */
const LEAST = LONG * 4;
const long = () => new Float32Array(LONG).fill(1);
/** Longer than what is copied at once. */
const HELD = 16_384;

afterEach(() => {
  fake.opening = Promise.resolve();
});

/** The error says how many bytes were missing, and what to do. */
const missing =
  (about, bytes = "\\d+") =>
  (error) => {
    assert.ok(error instanceof face.FramebatchError, String(error));
    assert.equal(error.code, "out-of-memory");
    const start = `^${about}: the page has no memory for ${bytes} bytes; \\w+ \\w+`;
    assert.match(error.message.replace(/[()]/g, ""), new RegExp(start));
    assert.ok(error.cause instanceof RangeError);
    return true;
  };

const KEYS = Array.from({ length: LONG }, (_, i) => i);
const CLIP = { tracks: [{ times: [0, 1], values: [0, 1] }] };
const LONG_CLIP = { tracks: [{ times: KEYS, values: KEYS }] };
const DATA = long();
const SHORT = f32(1, 2);
const PLACES = new Uint32Array(LONG);
const STATES = new Uint8Array(LEAST);
// The view begins between two words.
const HALVES = new Uint16Array(2 * LONG + 2).subarray(1, -1);

/** What throws; what its message begins with; the bytes that it names. */
const ASKED = {
  "a tensor of numbers": [
    (gpu) => gpu.tensor(KEYS, [LONG], { label: "k" }),
    "tensor label 'k'",
    LEAST,
  ],
  "a tensor that is copied": [(gpu) => gpu.tensor(DATA), "tensor", LEAST],
  "a tensor of places": [(gpu) => gpu.tensor(PLACES), "tensor", LEAST],
  "the memory that short tensors lie in": [
    (gpu) => gpu.tensor(SHORT),
    "tensor",
    8,
  ],
  "bits of a tensor": [
    (gpu) => gpu.tensor(HALVES, [2 * LONG], { dtype: "f16" }),
    "tensor",
    LEAST,
  ],
  "vectors of an index": [(gpu) => gpu.index(DATA, { dim: 4 }), "index"],
  "a clip": [
    (gpu) => gpu.clip(LONG_CLIP),
    "clip",
    // The words of a head and of a lane, and both lists.
    4 * (4 + 8 + 2 * LONG),
  ],
  "a tween": [
    (gpu) => gpu.tween(DATA, DATA, { label: "t" }),
    "tween label 't'",
    LEAST,
  ],
  "a spring": [(gpu) => gpu.spring(DATA, DATA), "spring", LEAST],
};
for (const [name, [ask, about, bytes]] of Object.entries(ASKED)) {
  test(`no memory for ${name}`, async () => {
    const { gpu, core } = await manual();
    const before = gpu.lerp(f32(1), f32(3), 0.5);
    const refused = () => scarce(LEAST, () => ask(gpu));
    assert.throws(refused, missing(about, bytes));
    assert.equal(core.tensors.size, 0);
    gpu.flush();
    core.answer();
    assert.deepEqual(await before, f32(2));
    ask(gpu); // With memory it is fine.
    await gpu.dispose();
  });
}

test("no memory for a larger store of clips: the place in it is given back", async () => {
  const { gpu, core } = await manual();
  const clip = gpu.clip(CLIP);
  const keys = Array.from({ length: 12_000 }, (_, i) => i);
  const long = { tracks: [{ times: keys, values: keys }] };
  // The clip's own words have room; the store doubles to 128 KiB.
  const refused = () => scarce(131_072, () => gpu.clip(long));
  assert.throws(refused, missing("clip", 131_072));
  const next = gpu.clip(CLIP);
  const samples = [clip.sample(0.5), next.sample(0.5)];
  const words = new Uint32Array(core.view().buffer);
  const places = core.queued.map(({ at }) => words[at + 8]);
  assert.equal(places[1] - places[0], 16, "beside the first one");
  gpu.flush();
  core.answer();
  for (const sample of samples) assert.deepEqual(await sample, f32(0.5));
});

/** Calls that are made while the session opens, which keeps what they were given. */
const EARLY = {
  lerp: (gpu) => () => gpu.lerp(DATA, DATA, 0),
  "states.lerp": (gpu) => () => gpu.states.lerp(STATES, STATES, 0.5),
  sample(gpu) {
    const clip = gpu.clip(CLIP);
    return () => clip.sample(DATA);
  },
};
for (const [name, made] of Object.entries(EARLY)) {
  test(`no memory for what ${name} is given while the session opens`, async () => {
    let open;
    fake.opening = new Promise((done) => (open = done));
    const gpu = face.shared({ flush: "manual" });
    const ask = made(gpu);
    await assert.rejects(scarce(LEAST, ask), missing(name, LEAST));
    const other = gpu.lerp(f32(1), f32(3), 0.5);
    open();
    await gpu.ready;
    gpu.flush();
    fake.core.answer();
    assert.deepEqual(await other, f32(2));
    await gpu.dispose();
  });
}

test("no memory to take a tensor to the device: its reading says so, and the session goes on", async () => {
  const { gpu, core } = await manual();
  const shelved = gpu.tensor(f32(1, 2, 3));
  const first = shelved.read();
  // From the second use on it lies there, from a copy of its own.
  const second = scarce(12, () => shelved.read({ label: "r" }));
  await assert.rejects(second, {
    ...{ code: "out-of-memory" },
    message: /the page has no memory for 12 bytes; dispose of tensors/,
  });
  const third = shelved.add(1).read();
  gpu.flush();
  core.answer();
  assert.deepEqual(await first, f32(1, 2, 3));
  assert.deepEqual(await third, f32(2, 3, 4));
});

for (const [way, answer] of [
  ["whole", (core) => core.answer()],
  ["in the core's memory", (core) => core.answer({ mapped: false })],
  ["in chunks", (core) => core.answerInChunks(1000)],
]) {
  test(`no memory for results that come ${way}: each call gets its own answer`, async () => {
    const { gpu, core } = await manual();
    const into = new Float32Array(LONG);
    const tensor = gpu.tensor(new Float32Array(HELD).fill(2));
    const calls = [
      gpu.lerp(f32(1), f32(3), 0.5),
      gpu.lerp(long(), long(), 0, { label: "new" }),
      gpu.lerp(long(), long(), 0, { into }),
      gpu.states.gradients(new Uint8Array(LONG)),
      tensor.slice([0, LONG]).read(),
      gpu.readAll([tensor.slice([0, 2]), tensor.slice([0, LONG])]),
      tensor.slice([0, 3]).read(),
    ];
    tensor.dispose();
    gpu.flush();
    // The fake computes in arrays of its own first.
    const { send } = core;
    core.send = (...table) => scarce(LEAST, () => send(...table));
    answer(core);
    core.send = send;
    const states = await Promise.all(calls.map(stateOf));
    const outcomes = states.map(({ value, reason }) => reason?.code ?? value);
    assert.deepEqual(outcomes[0], f32(2));
    assert.equal(outcomes[1], "out-of-memory");
    assert.match(
      states[1].reason.message,
      /^lerp \(label 'new'\): no memory for a result of 16384 bytes; give an array as into$/,
    );
    assert.equal(outcomes[2], into);
    assert.equal(into[LONG - 1], 1);
    for (const at of [3, 4, 5]) assert.equal(outcomes[at], "out-of-memory");
    assert.deepEqual(outcomes[6], f32(2, 2, 2));
    assert.equal(core.tensors.size, 0);
  });
}

test("an index without memory is as before, ids and all", async () => {
  const { gpu, core } = await manual();
  const index = gpu.index({ dim: 2, dtype: "int8" });
  index.add(new Float32Array(2 * 64).fill(1));
  const before = index.save();
  // Vectors fit where their ids do not.
  const many = new Float32Array(2 * 20).fill(2);
  assert.throws(() => scarce(80, () => index.add(many)), missing("index", 80));
  assert.deepEqual(index.save(), before);
  assert.throws(() => scarce(256, () => index.save()), missing("index", 256));
  const unaligned = new Uint8Array(before.length + 1).subarray(1);
  unaligned.set(before);
  assert.throws(
    () => scarce(before.length, () => gpu.loadIndex(unaligned)),
    missing("index", before.length),
  );
  // A query of two floats is padded to sixteen.
  const queries = f32(1, 0, 0, 1);
  await assert.rejects(
    scarce(128, () => index.searchMany(queries, 1)),
    missing("search", 128),
  );
  const filter = new Uint32Array(1);
  await assert.rejects(
    scarce(8, () => index.searchMany(queries, 1, { filter })),
    missing("search"),
  );
  const found = index.search(f32(1, 0), 1);
  gpu.flush();
  core.answer();
  assert.equal((await found).ids.length, 1);
});

test("more vectors than a map has entries: none of them is added", async () => {
  const { Map } = globalThis;
  // Engines bound it at 2 ** 24 or so.
  globalThis.Map = class extends Map {
    set(key, value) {
      if (this.size === 70) throw new RangeError("Map maximum size exceeded");
      return super.set(key, value);
    }
  };
  const { gpu } = await manual();
  const index = gpu.index({ dim: 2 });
  globalThis.Map = Map;
  index.add(new Float32Array(2 * 60).fill(1));
  const before = index.save();
  assert.throws(() => index.add(new Float32Array(2 * 20)), {
    code: "limit-exceeded",
    message: /no more than the places of 70 vectors; divide them/,
  });
  assert.equal(index.size, 60);
  assert.deepEqual(index.save(), before);
  assert.deepEqual(index.add(new Float32Array(2 * 5).fill(1))[0], 60);
});

test("no memory for the weights of a model: nothing of it stays", async () => {
  const { gpu, core } = await manual();
  const { freed, made } = chunk;
  const { Float32Array } = globalThis;
  const construct = (target, args) => {
    // The matrix of queries, keys and values.
    if (args[0] === 48) throw new RangeError("Array buffer allocation failed");
    return Reflect.construct(target, args);
  };
  globalThis.Float32Array = new Proxy(Float32Array, { construct });
  try {
    await assert.rejects(gpu.embedder(folder()), missing("embedder", 48 * 4));
  } finally {
    globalThis.Float32Array = Float32Array;
  }
  assert.equal(core.tensors.size, 0);
  assert.equal(chunk.freed - freed, chunk.made - made);
  const embedder = await gpu.embedder(folder());
  const call = embedder.embed("a");
  gpu.flush();
  core.answer();
  assert.deepEqual(await call, vector(2, 4, 3));
});
