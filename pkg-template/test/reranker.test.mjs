// Pairs in and scores out: what is one batch, in which order documents come, what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, manual, settled } from "./face.mjs";
import { answer } from "./embedder-session.mjs";
import { CONFIG, folder, json } from "./folder.mjs";

async function made(change) {
  const { gpu, core } = await manual();
  return { gpu, core, reranker: await gpu.reranker(folder(change)) };
}

/** What the fake gives for a pair of texts of these tokens. */
function score(first, second) {
  const ids = [2, ...first, 3, ...second, 3];
  const sum = ids.reduce((total, id) => total + id, 0);
  // A row is its number and 3/8 more, of a token as of a type.
  return (sum + second.length + 1) / ids.length + 0.75;
}

test("the pairs of all callers are one batch, each with its own score", async () => {
  const { gpu, core, reranker } = await made();
  assert.deepEqual(chunk.tasks.at(-1), { isReranker: true, dimensions: 0 });
  const { flushes, submits } = core.counts;
  const pairs = reranker.score([
    ["a", "b c"],
    ["", ""],
  ]);
  const ranking = reranker.rank("d", ["a", "d d", "a", "c"], { topN: 3 });
  const none = [reranker.score([]), reranker.rank("a", [])];
  answer({ gpu, core });
  assert.deepEqual(
    await pairs,
    Float32Array.of(score([4], [5, 6]), score([], [])),
  );
  assert.deepEqual(await ranking, [
    { index: 1, score: Math.fround(score([7], [7, 7])) },
    { index: 3, score: Math.fround(score([7], [6])) },
    { index: 0, score: Math.fround(score([7], [4])) },
  ]);
  assert.deepEqual(await Promise.all(none), [new Float32Array(0), []]);
  assert.equal(core.counts.flushes - flushes, 1);
  assert.equal(core.counts.submits - submits, 6);
  assert.deepEqual(new Set(chunk.limits), new Set([16]));
  assert.deepEqual(reranker.info, {
    ...{ layers: 1, heads: 2, vocabulary: 8, maxTokens: 16 },
    ...{ dtype: "f32", fidelity: 1, engine: "cpu" },
  });
});

test("options of rankings hold for all pairs", async () => {
  const { core, reranker } = await made();
  const controller = new AbortController();
  const { signal } = controller;
  const given = reranker.rank("a", ["b", "c"], { signal });
  controller.abort("enough");
  await assert.rejects(given, (reason) => reason === "enough");
  await assert.rejects(
    reranker.rank("a", [], { signal }),
    (reason) => reason === "enough",
  );
  await assert.rejects(reranker.score([["a", 5]], { label: "mine" }), {
    message: /^score \(label 'mine'\): a text must be a string/,
  });
  // Such calls are sent without being told.
  const urgent = reranker.rank("a", ["b"], { priority: "high" });
  await settled();
  core.answer();
  assert.equal((await urgent).length, 1);
});

test("wrong arguments are refused in a sentence", async () => {
  const { gpu, reranker } = await made();
  const cases = [
    [
      () => reranker.rank(1, ["a"]),
      "rank: a text must be a string, got number",
    ],
    [
      () => reranker.rank("a", "b"),
      "rank: documents must be an array of strings",
    ],
    [
      () => reranker.rank("a", ["\ud800"]),
      "rank: the text has half of a surrogate",
    ],
    [
      () => reranker.rank("a", [], { topN: 0 }),
      "rank: topN must be a whole number",
    ],
    [
      () => reranker.rank("a", [], { top: 1 }),
      "rank: there is no option 'top'",
    ],
    [() => reranker.score("a"), "score: pairs must be an array of pairs"],
    [() => reranker.score(["ab"]), "score: a pair is two strings, got string"],
    [() => reranker.score([], { topN: 1 }), "score: there is no option 'topN'"],
    [() => reranker.score([], { priority: 1 }), "score: priority must be"],
    [() => reranker.score([], { signal: 1 }), "score: signal must be"],
    [
      () => gpu.reranker(folder(), { dimensions: 2 }),
      "reranker: there is no option",
    ],
    [() => gpu.reranker({}), "reranker: "],
  ];
  for (const [call, message] of cases) {
    await assert.rejects(call, (error) => {
      assert.equal(error.code, "invalid-input", message);
      assert.ok(error.message.startsWith(message), error.message);
      return true;
    });
  }
});

test("a folder without a tokenizer has no reranker, and nothing of it stays", async () => {
  const { gpu, core } = await manual();
  const { freed, made } = chunk;
  const loading = gpu.reranker(folder({ "tokenizer.json": undefined }));
  await assert.rejects(loading, {
    code: "invalid-input",
    message:
      "reranker: tokenizer.json and vocab.txt are missing; add the one that the model has",
  });
  assert.equal(core.tensors.size, 0);
  assert.equal(chunk.freed - freed, chunk.made - made);
});

test("RoBERTa's padding is no part of a pair, and tokens have no types", async () => {
  const config = { ...CONFIG, model_type: "roberta", type_vocab_size: 1 };
  const { gpu, core, reranker } = await made({
    "config.json": json({ ...config, pad_token_id: 7 }),
  });
  await assert.rejects(reranker.score([["a", "d"]]), {
    message: /^score: 7 is the model's padding/,
  });
  const { submits } = core.counts;
  const one = reranker.score([["a", "b"]]);
  answer({ gpu, core });
  await one;
  assert.equal(core.counts.submits - submits, 1);
});

test("a reranker that is disposed of answers what was asked", async () => {
  const { gpu, core, reranker } = await made();
  const pending = reranker.score([["a", "b"]]);
  reranker.dispose();
  reranker[Symbol.dispose]();
  answer({ gpu, core });
  assert.deepEqual(await pending, Float32Array.of(score([4], [5])));
  assert.equal(core.tensors.size, 0);
  await assert.rejects(reranker.rank("a", ["b"]), {
    code: "disposed",
    message: /^rank: the reranker is disposed; make it anew/,
  });
});
