// The adapters of rerankers by the libraries' own contracts: the libraries are the real ones.

import assert from "node:assert/strict";
import { test } from "node:test";
import { rerank } from "ai";
import { answer } from "./embedder-session.mjs";
import { face, manual, module, settled, stateOf } from "./face.mjs";
import { folder } from "./folder.mjs";

const { rerankingModel, rerankingModelV3 } = await module("libraries/ai-sdk");
const { FramebatchReranker } = await module("libraries/langchain");

/** How each adapter ranks documents, given its options: places and scores. */
const RERANKERS = {
  "ai-sdk": ({ topN, ...options }) => rankBySdk(rerankingModel(options), topN),
  "ai-sdk, version 3": ({ topN, ...options }) =>
    rankBySdk(rerankingModelV3(options), topN),
  langchain: (options) => {
    const compressor = new FramebatchReranker(options);
    return async (query, texts) => {
      const documents = texts.map((pageContent, at) => ({
        ...{ id: `${at}`, pageContent, metadata: { at } },
      }));
      const found = await compressor.compressDocuments(documents, query);
      for (const { id, pageContent, metadata } of found) {
        assert.deepEqual([id, pageContent], [`${metadata.at}`, texts[id]]);
      }
      // What was given stays as it was.
      assert.deepEqual(documents[0].metadata, { at: 0 });
      return found.map(({ metadata }) => [
        metadata.at,
        metadata.relevanceScore,
      ]);
    };
  },
};

const rankBySdk = (model, topN) => async (query, documents) => {
  const { ranking } = await rerank({ model, query, documents, topN });
  return ranking.map(({ originalIndex, score }) => [originalIndex, score]);
};

/** A session with a reranker of the small model. */
async function withReranker() {
  const { gpu, core } = await manual();
  return { gpu, core, reranker: await gpu.reranker(folder()) };
}

for (const [name, adapter] of Object.entries(RERANKERS)) {
  test(`${name}: a ranking is the reranker's, and rankings of a frame are one submission`, async () => {
    const session = await withReranker();
    const { core, reranker } = session;
    const texts = ["a", "d d", "a", "c"];
    const own = reranker.rank("d", texts, { topN: 3 });
    const { flushes } = core.counts;
    const rankings = [reranker, Promise.resolve(reranker)].map((source) =>
      adapter({ reranker: source, topN: 3 })("d", texts),
    );
    await settled();
    answer(session);
    const expected = (await own).map(({ index, score }) => [index, score]);
    assert.equal(expected.length, 3);
    assert.deepEqual(await Promise.all(rankings), [expected, expected]);
    assert.equal(core.counts.flushes - flushes, 1);
  });

  test(`${name}: what is wrong with a ranking keeps its code, and priority holds`, async () => {
    const { gpu, core, reranker } = await withReranker();
    const wrong = await stateOf(adapter({ reranker: 5 })("a", ["b"]));
    assert.equal(wrong.reason.code, "invalid-input");
    assert.match(wrong.reason.message, /reranker must be .*, got number/);
    assert.throws(() => adapter({ reranker, top: 3 }), {
      code: "invalid-input",
      message: /there is no option 'top'; the options are .*reranker/,
    });
    const failed = new face.FramebatchError("unsupported", "another kind");
    const broken = Promise.reject(failed);
    broken.catch(() => {});
    const lost = await stateOf(adapter({ reranker: broken })("a", ["b"]));
    assert.equal(lost.reason, failed);
    core.slice = 0;
    const pending = adapter({ reranker, priority: "low" })("a", ["b", "c"]);
    pending.catch(() => {});
    await settled();
    assert.deepEqual([core.low.length, core.queued.length], [2, 0]);
    await gpu.dispose();
    assert.equal((await stateOf(pending)).reason.code, "disposed");
  });
}

test("ai-sdk: documents that are objects, options and an abort of a ranking", async () => {
  const session = await withReranker();
  const { reranker } = session;
  const model = rerankingModel({ reranker, modelId: "small" });
  assert.deepEqual([model.provider, model.modelId], ["framebatch", "small"]);
  const values = [{ b: "c" }, { b: "d" }];
  const texts = values.map((value) => JSON.stringify(value));
  const asked = [
    reranker.rank("a", texts),
    model.doRerank({
      query: "a",
      documents: { type: "object", values },
      providerOptions: { framebatch: { truncate: true } },
    }),
  ];
  const aborter = new AbortController();
  const given = model.doRerank({
    query: "a",
    documents: { type: "text", values: ["b"] },
    abortSignal: aborter.signal,
  });
  await settled();
  aborter.abort(new Error("enough"));
  await assert.rejects(given, /enough/);
  answer(session);
  const [own, { ranking, warnings }] = await Promise.all(asked);
  assert.deepEqual(
    ranking.map(({ index, relevanceScore }) => [index, relevanceScore]),
    own.map(({ index, score }) => [index, score]),
  );
  assert.deepEqual(
    warnings.map(({ type, feature }) => [type, feature]),
    [
      ["unsupported", "providerOptions.framebatch.truncate"],
      ["compatibility", "object documents"],
    ],
  );
});
