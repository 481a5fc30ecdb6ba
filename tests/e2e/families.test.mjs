// Encoders of all families and rerankers in a real page, beside transformers in float64:
// `tests/embed/make_models.py` made the models, their vectors and their scores.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { heavyTest as test, openSite } from "./site.mjs";

const site = openSite();
const oracle = (name) =>
  JSON.parse(readFileSync(`tests/data/models/${name}/oracle.json`, "utf8"));

/** What browsers write of files that a folder need not have. */
const may = /404/;

/** In the page: the vectors of all texts together, which of them differ alone, and cut ones. */
async function embedAll(name, engine, dtype, oracle) {
  const gpu = await framebatch.open({ engine, flush: "manual" });
  const load = (options) => gpu.embedder(`/data/models/${name}/`, options);
  const all = (embedder, texts) => {
    const vectors = texts.map(({ ids }) => embedder.embedIds(ids));
    gpu.flush();
    return Promise.all(vectors);
  };
  const bits = ({ buffer }) => new Uint32Array(buffer).join();
  const embedder = await load({ dtype });
  const together = await all(embedder, oracle.texts);
  const others = [];
  for (const [i, text] of oracle.texts.entries()) {
    const [alone] = await all(embedder, [text]);
    if (bits(alone) !== bits(together[i])) others.push(i);
  }
  const { dimensions } = oracle;
  const short = await load({ dtype, dimensions, verify: false });
  const cut = await all(short, oracle.cut);
  const facts = [embedder.info.dimensions, short.info.dimensions];
  const tested = ({ info }) => info.fidelity ?? "untested";
  const fidelities = [tested(embedder), tested(short)];
  await gpu.dispose();
  const plain = (vectors) => vectors.map((vector) => [...vector]);
  return {
    vectors: plain(together),
    cut: plain(cut),
    others,
    facts,
    fidelities,
  };
}

/** In the page: the scores of all pairs together, which differ alone, and a ranking. */
async function scoreAll(name, engine, dtype, pairs) {
  const gpu = await framebatch.open({ engine, flush: "manual" });
  const reranker = await gpu.reranker(`/data/models/${name}/`, { dtype });
  const sent = async (promise) => {
    // Calls are made in the task that asks.
    gpu.flush();
    return await promise;
  };
  const batches = gpu.stats().batches;
  const scores = await sent(reranker.score(pairs));
  const passes = gpu.stats().batches - batches;
  const others = [];
  for (const [i, pair] of pairs.entries()) {
    const [alone] = await sent(reranker.score([pair]));
    if (!Object.is(alone, scores[i])) others.push(i);
  }
  const documents = pairs.map(([, document]) => document);
  const ranking = await sent(reranker.rank("cats", documents, { topN: 3 }));
  const own = documents.map((document) => ["cats", document]);
  const expected = await sent(reranker.score(own));
  reranker.dispose();
  const after = await reranker.score(pairs).catch(({ message }) => message);
  await gpu.dispose();
  return {
    ...{ scores: [...scores], others, passes, ranking, after },
    expected: [...expected],
  };
}

const cosine = (a, b) => {
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
};
const farthest = (a, b) => Math.max(...a.map((x, i) => Math.abs(x - b[i])));

/** Each engine in 32 bits, and in fewer all models on the CPU and one on the GPU. */
const casesOf = (name) => [
  ["cpu", "f32"],
  ["gpu", "f32"],
  ...(name === "mpnet" ? [["gpu", "f16"]] : []),
  ["cpu", /^distilbert$|^modernbert$/.test(name) ? "int8" : "f16"],
];
const LEAST = { f16: 0.9999, int8: 0.999 };

const ENCODERS = [
  ...["bert-dense", "roberta", "distilbert", "mpnet"],
  ...["modernbert", "nomic-bert", "gte", "jina-v2", "jina-v3"],
  ...["qwen3", "gemma3", "embedding-gemma2"],
];

for (const name of ENCODERS) {
  test(`${name} gives the vectors of transformers`, () =>
    site.page(
      async (page) => {
        const known = oracle(name);
        for (const [engine, dtype] of casesOf(name)) {
          const { fidelities, ...found } = await page.evaluate(
            embedAll,
            name,
            engine,
            dtype,
            known,
          );
          const { vectors, cut, others, facts } = found;
          const about = `${engine}, ${dtype}`;
          assert.deepEqual(others, [], about);
          const [fidelity, untested] = fidelities;
          assert.equal(untested, "untested");
          const isNear = fidelity >= (LEAST[dtype] ?? 1);
          const isCut = dtype in LEAST;
          assert.ok(isNear && fidelity < 1 === isCut, about);
          assert.deepEqual(
            facts,
            [known.texts[0].vector.length, known.dimensions],
            about,
          );
          const both = [
            [vectors, known.texts],
            [cut, known.cut],
          ];
          for (const [given, texts] of both) {
            given.forEach((vector, i) => {
              const exact = texts[i].vector;
              const like = cosine(vector, exact);
              const off = farthest(vector, exact);
              const most = 2e-6 * Math.max(1, Math.hypot(...exact));
              const isRight =
                dtype === "f32" ? off <= most : like >= LEAST[dtype];
              assert.ok(isRight, `${about}, text ${i}: ${off} off, ${like}`);
            });
          }
        }
      },
      { may },
    ));
}

for (const [name, field] of [
  ["reranker-bert", "score"],
  ["reranker-xlm-roberta", "logit"],
  ["reranker-modernbert", "logit"],
  ["reranker-gte", "logit"],
  ["reranker-qwen3", "score"],
  ["reranker-qwen3-logits", "score"],
]) {
  test(`${name} gives the scores of transformers`, () =>
    site.page(
      async (page) => {
        const { pairs } = oracle(name);
        const texts = pairs.map(({ query, document }) => [query, document]);
        for (const [engine, dtype] of casesOf(name)) {
          const about = `${engine}, ${dtype}`;
          const { scores, others, passes, ranking, expected, after } =
            await page.evaluate(scoreAll, name, engine, dtype, texts);
          assert.equal(passes, 1, about);
          assert.deepEqual(others, [], about);
          scores.forEach((score, i) => {
            const off = Math.abs(score - pairs[i][field]);
            const most = dtype === "f32" ? 5e-6 : 5e-3;
            assert.ok(off <= most, `${about}: ${off}`);
          });
          const best = expected.map((score, index) => ({ index, score }));
          best.sort((a, b) => b.score - a.score);
          assert.deepEqual(ranking, best.slice(0, 3), about);
          assert.match(after, /^score: the reranker is disposed/);
        }
      },
      { may },
    ));
}

test("a session in a worker scores pairs, cuts vectors and splits texts as one of the page does", () =>
  site.page(
    async (page) => {
      await page.evaluate(async () => {
        await import("framebatch/embeddings");
      });
      const { pairs } = oracle("reranker-bert");
      const texts = pairs.map(({ query, document }) => [query, document]);
      const { scores } = await page.evaluate(
        scoreAll,
        ...["reranker-bert", "cpu", "f32", texts],
      );
      scores.forEach((score, i) =>
        assert.ok(Math.abs(score - pairs[i].score) <= 5e-6, `pair ${i}`),
      );
      const known = oracle("mpnet");
      const { cut } = await page.evaluate(
        embedAll,
        ...["mpnet", "cpu", "f32", known],
      );
      cut.forEach((vector, i) =>
        assert.ok(farthest(vector, known.cut[i].vector) <= 2e-6, `text ${i}`),
      );
      const tokens = await page.evaluate(async () => {
        const gpu = await framebatch.open({ engine: "cpu" });
        const embedder = await gpu.embedder("/models/all-MiniLM-L6-v2/");
        const { ids, offsets } = await embedder.tokenize("the ☃ cat");
        await gpu.dispose();
        return [ids, offsets].map((numbers) => [...numbers]);
      });
      assert.deepEqual(tokens, [
        [2, 73, 1, 74, 3],
        [...[0, 0, 0, 3], ...[4, 5, 6, 9], ...[0, 0]],
      ]);
    },
    { path: "/in-worker/", may },
  ));
