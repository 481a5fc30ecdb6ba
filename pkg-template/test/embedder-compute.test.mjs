// Vectors of texts that stay on the device: whose they are, what becomes of them after a loss,
// and what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, made } from "./embedder-session.mjs";
import { module, settled } from "./face.mjs";
import { json, vector } from "./folder.mjs";

await module("search/index");

/** Sends what is queued, answers it, and gives what came of the promises. */
async function sent(session, ...promises) {
  answer(session);
  return Promise.all(promises);
}

/** Reads tensors. */
async function read(session, ...tensors) {
  return sent(session, ...tensors.map((tensor) => tensor.read()));
}

/** Loses the device, finds another, and answers what is computed again. */
function replace({ core, gpu }) {
  let news;
  const off = gpu.on("restored", (event) => (news = event));
  core.lose();
  core.restore("restored");
  off();
  while (core.flights.length > 0) core.answer();
  const labels = (tensors) => tensors.map(({ label }) => label);
  return {
    lost: labels(news.lostTensors),
    reverted: labels(news.revertedTensors),
  };
}

test("a tensor takes the vector, of texts and of tokens, beside vectors that are read", async () => {
  const session = await made();
  const { core, embedder } = session;
  const { submits } = core.counts;
  const calls = [
    embedder.compute("a"),
    embedder.computeIds([2, 5, 6, 3]),
    embedder.embed("a"),
  ];
  const [a, bc, floats] = await sent(session, ...calls);
  assert.equal(core.counts.submits - submits, 3);
  assert.deepEqual([a.shape, a.dtype], [[4], "float32"]);
  const values = await read(session, a, bc, a.add(bc));
  const [first, second] = [vector(2, 4, 3), vector(2, 5, 6, 3)];
  assert.deepEqual(values.slice(0, 2), [first, second]);
  assert.deepEqual(
    values[2],
    first.map((x, i) => x + second[i]),
  );
  assert.deepEqual(floats, first);
});

test("equal texts have tensors of their own", async () => {
  const session = await made();
  const { core, embedder } = session;
  const calls = [embedder.compute("a"), embedder.compute("a")];
  assert.equal(core.queued.length, 2);
  const [one, other] = await sent(session, ...calls);
  one.dispose();
  assert.deepEqual(await read(session, other), [vector(2, 4, 3)]);
});

test("memory comes back with the tensors, and with the embedder once its calls are answered", async () => {
  const session = await made();
  const { core, embedder } = session;
  const before = core.tensors.size;
  const [kept] = await sent(session, embedder.compute("a"));
  assert.equal(core.tensors.size, before + 1);
  kept.dispose();
  assert.equal(core.tensors.size, before);
  // A call that is given up has no tensor.
  const controller = new AbortController();
  const { signal } = controller;
  const given = embedder.compute("b", { signal });
  controller.abort("enough");
  await assert.rejects(given, (reason) => reason === "enough");
  session.gpu.flush();
  assert.equal(core.tensors.size, before);
  const last = embedder.compute("c");
  embedder.dispose();
  const [vectorOf] = await sent(session, last);
  assert.equal(core.tensors.size, 1);
  assert.deepEqual(await read(session, vectorOf), [vector(2, 6, 3)]);
  assert.equal(core.structures.filter(Boolean).length, 1);
});

test("after a loss vectors are computed again, and what is computed of them behind", async () => {
  const session = await made();
  const { embedder } = session;
  const [a] = await sent(session, embedder.compute("a", { label: "a" }));
  const [twice] = await sent(session, a.scale(2).compute());
  for (let loss = 0; loss < 2; loss += 1) {
    assert.deepEqual(replace(session), { lost: [], reverted: [] });
    const own = vector(2, 4, 3);
    assert.deepEqual(await read(session, a, twice), [
      own,
      own.map((x) => 2 * x),
    ]);
  }
});

test("what is not remembered, or whose embedder is disposed of, is lost with the device", async () => {
  const session = await made();
  const { embedder } = session;
  const [forgotten, orphan, snapped] = await sent(
    session,
    embedder.compute("a", { keep: false, label: "forgotten" }),
    embedder.compute("b", { label: "orphan" }),
    embedder.compute("c", { snapshotEvery: 1, label: "snapped" }),
  );
  // The snapshot is read.
  await settled();
  session.gpu.flush();
  while (session.core.flights.length > 0) session.core.answer();
  await settled();
  embedder.dispose();
  const news = replace(session);
  assert.deepEqual(news, {
    lost: ["forgotten", "orphan"],
    reverted: ["snapped"],
  });
  for (const tensor of [forgotten, orphan]) {
    await assert.rejects(tensor.read(), { code: "device-lost" });
  }
  assert.deepEqual(await read(session, snapped), [vector(2, 6, 3)]);
});

test("vectors that are computed again while the embedder waits to be freed are there", async () => {
  const session = await made();
  const { core, embedder } = session;
  const [a] = await sent(session, embedder.compute("a"));
  const pending = embedder.embed("b");
  embedder.dispose();
  assert.deepEqual(replace(session), { lost: [], reverted: [] });
  while (core.flights.length > 0) core.answer();
  answer(session);
  assert.deepEqual(await pending, vector(2, 5, 3));
  assert.deepEqual(await read(session, a), [vector(2, 4, 3)]);
});

test("calls that are only planned store nothing", async () => {
  const session = await made();
  const { gpu, core, embedder } = session;
  const before = core.tensors.size;
  gpu.explain(() => embedder.compute("a").catch(() => {}));
  assert.equal(core.tensors.size, before);
});

test("what is wrong is refused, and takes no memory", async () => {
  const session = await made({
    "sentence_bert_config.json": json({ max_seq_length: 3 }),
  });
  const { core, embedder } = session;
  const before = core.tensors.size;
  const into = new Float32Array(4);
  const WRONG = [
    [embedder.compute(7), "compute: a text must be a string, got number"],
    [embedder.compute("a b", { truncate: false }), /4 tokens/],
    [embedder.compute("a", { prompt: "no" }), /prompt must be one of/],
    [embedder.compute("a", { into }), /'into'/],
    [embedder.compute("a", { keep: 1 }), /keep must be true or false/],
    [embedder.compute("a", { snapshotEvery: 0 }), /snapshotEvery/],
    [embedder.computeIds([]), /computeIds/],
    [embedder.computeIds([2], { truncate: true }), /'truncate'/],
    [embedder.compute("a", { label: "door", priority: "x" }), /door/],
  ];
  for (const [call, message] of WRONG) {
    await assert.rejects(call, { code: "invalid-input", message });
  }
  assert.equal(core.tensors.size, before);
  core.failures.submit = { code: "queue-full", message: "full" };
  await assert.rejects(embedder.compute("a"), { code: "queue-full" });
  assert.equal(core.tensors.size, before);
  embedder.dispose();
  await assert.rejects(embedder.compute("a"), { code: "disposed" });
});
