// The adapters of embedders by the libraries' own contracts: the libraries are the real ones,
// but for LanceDB. What all adapters have in common is one table.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  insert,
  insertMultiple,
  search,
  upsertMultiple,
} from "@orama/orama";
import { embed, embedMany } from "ai";
import { answer, made } from "./embedder-session.mjs";
import { face, module, settled, stateOf } from "./face.mjs";
import { json, vector } from "./folder.mjs";

const libraries = Object.fromEntries(
  await Promise.all(
    ["ai-sdk", "chroma", "lancedb", "langchain", "llamaindex", "orama"].map(
      async (name) => [name, await module(`libraries/${name}`)],
    ),
  ),
);
const { embeddingModel, embeddingModelV3 } = libraries["ai-sdk"];
const { FramebatchEmbeddings } = libraries.langchain;
const { FramebatchEmbedding } = libraries.llamaindex;
const { pluginFramebatch } = libraries.orama;

const PROMPTS = {
  "config_sentence_transformers.json": json({
    prompts: { query: "a ", passage: "b ", other: "c " },
  }),
};

/** How each adapter embeds a query and documents, given its options. */
const ADAPTERS = {
  "ai-sdk": (options) => {
    const model = embeddingModel(options);
    return {
      query: async (value) => (await embed({ model, value })).embedding,
      documents: async (values) =>
        (await embedMany({ model, values })).embeddings,
    };
  },
  "ai-sdk, version 3": (options) => {
    const model = embeddingModelV3(options);
    return {
      query: async (value) => (await embed({ model, value })).embedding,
      documents: async (values) =>
        (await embedMany({ model, values })).embeddings,
    };
  },
  langchain: (options) => {
    const embeddings = new FramebatchEmbeddings(options);
    return {
      query: (text) => embeddings.embedQuery(text),
      documents: (texts) => embeddings.embedDocuments(texts),
    };
  },
  llamaindex: (options) => {
    const embedding = new FramebatchEmbedding(options);
    return {
      query: (text) => embedding.getQueryEmbedding({ type: "text", text }),
      documents: (texts) => embedding.getTextEmbeddingsBatch(texts),
    };
  },
  lancedb: (options) => {
    const { FramebatchEmbeddingFunction } = libraries.lancedb;
    const own = new FramebatchEmbeddingFunction(options);
    return {
      query: async (text) => [...(await own.computeQueryEmbeddings(text))],
      documents: async (texts) =>
        (await own.generateEmbeddings(texts)).map((vector) => [...vector]),
    };
  },
  chroma: (options) => {
    const { FramebatchEmbeddingFunction } = libraries.chroma;
    const own = new FramebatchEmbeddingFunction(options);
    return {
      query: async (text) => (await own.generateForQueries([text]))[0],
      documents: (texts) => own.generate(texts),
    };
  },
  orama: (options) => {
    const plugin = pluginFramebatch({ ...options, properties: ["text"] });
    return {
      query: async (term) => {
        const asked = { mode: "vector", term };
        await plugin.beforeSearch({}, asked);
        return asked.vector.value;
      },
      documents: async (texts) => {
        const documents = await plugin.embed(texts.map((text) => ({ text })));
        return documents.map(({ embeddings }) => embeddings);
      },
    };
  },
};
/** A session that sends at the end of each task. */
async function eager() {
  const session = await made({}, { flush: "eager" });
  const { core } = session;
  core.dueAt = (now) => (core.queued.length > 0 ? now : NaN);
  return session;
}

const knowsQueries = (name) => !name.startsWith("ai-sdk");
const numbers = (...ids) => [...vector(...ids)];

for (const [name, adapter] of Object.entries(ADAPTERS)) {
  test(`${name}: ten texts of a task are one submission`, async () => {
    const { core, embedder } = await eager();
    for (const source of [embedder, Promise.resolve(embedder)]) {
      const { query, documents } = adapter({ embedder: source });
      const { flushes, submits } = core.counts;
      const texts = ["c c", "a", "b", "c", "d", "a a", "a b", "a c", "a d"];
      const queries = texts.map(query);
      const list = documents(["d d", "a a"]);
      await settled();
      assert.equal(core.counts.flushes - flushes, 1);
      // Equal texts are computed once.
      assert.equal(core.counts.submits - submits, 10);
      core.answer();
      assert.deepEqual((await Promise.all(queries))[5], numbers(2, 4, 4, 3));
      assert.deepEqual(await list, [numbers(2, 7, 7, 3), numbers(2, 4, 4, 3)]);
    }
  });

  test(`${name}: a long list is computed in slices, in order`, async () => {
    const { core, embedder } = await eager();
    const { documents } = adapter({ embedder });
    const all = documents(Array.from({ length: 65 }, (_, i) => "abcd"[i % 4]));
    await settled();
    core.answer();
    const vectors = await all;
    assert.equal(vectors.length, 65);
    assert.deepEqual(vectors.slice(3, 5), [numbers(2, 7, 3), numbers(2, 4, 3)]);
    assert.deepEqual(await documents([]), []);
  });

  test(`${name}: what is wrong keeps its code`, async () => {
    const { gpu, embedder } = await made();
    const long = "a a a a a";
    const { documents } = adapter({ embedder, truncate: false });
    const limited = await stateOf(documents([long]));
    assert.equal(limited.reason?.code, "invalid-input");
    assert.match(limited.reason.message, /^embed\w*: the text has 7 tokens/);
    const wrong = await stateOf(adapter({ embedder: 5 }).query("a"));
    assert.equal(wrong.reason.code, "invalid-input");
    assert.match(wrong.reason.message, /embedder must be .*, got number/);
    assert.throws(() => adapter({ embedder, pormpt: "query" }), {
      code: "invalid-input",
      message: /there is no option 'pormpt'; the options are .*embedder/,
    });
    const failed = new face.FramebatchError("unsupported", "another kind");
    const broken = Promise.reject(failed);
    broken.catch(() => {});
    const lost = await stateOf(adapter({ embedder: broken }).query("a"));
    assert.equal(lost.reason, failed);
    const pending = adapter({ embedder }).query("a");
    pending.catch(() => {});
    await settled();
    await gpu.dispose();
    assert.equal((await stateOf(pending)).reason.code, "disposed");
  });

  test(`${name}: queries and documents have the model's prompts`, async () => {
    const session = await made(PROMPTS);
    const { embedder } = session;
    const given = { queryPrompt: "other", documentPrompt: "query" };
    const cases = knowsQueries(name)
      ? [
          [{}, [4], [5]],
          [given, [6], [4]],
        ]
      : [
          [{}, [], []],
          [{ prompt: "query" }, [4], [4]],
        ];
    for (const [options, query, document] of cases) {
      const asked = adapter({ embedder, ...options });
      const vectors = [asked.query("d"), asked.documents(["d"])];
      await settled();
      answer(session);
      assert.deepEqual(await Promise.all(vectors), [
        numbers(2, ...query, 7, 3),
        [numbers(2, ...document, 7, 3)],
      ]);
    }
    // A model without prompts.
    const plain = await made();
    const vectors = adapter({ embedder: plain.embedder }).query("d");
    await settled();
    answer(plain);
    assert.deepEqual(await vectors, numbers(2, 7, 3));
  });

  test(`${name}: its calls have the priority that it is given`, async () => {
    const { core, embedder } = await made();
    core.slice = 0;
    const { documents } = adapter({ embedder, priority: "low" });
    documents(["a", "b"]).catch(() => {});
    await settled();
    assert.deepEqual([core.low.length, core.queued.length], [2, 0]);
  });
}

test("ai-sdk: usage, warnings, and options of a call", async () => {
  const session = await made(PROMPTS);
  const { embedder } = session;
  const model = embeddingModel({ embedder, modelId: "small" });
  assert.deepEqual([model.provider, model.modelId], ["framebatch", "small"]);
  globalThis.AI_SDK_LOG_WARNINGS = false;
  const asked = embedMany({
    model,
    values: ["d", "d d d d d d d"],
    dimensions: 2,
    providerOptions: { framebatch: { prompt: "query", pooling: "cls" } },
  });
  await settled();
  answer(session);
  const { embeddings, usage, warnings } = await asked;
  assert.deepEqual(embeddings[0], numbers(2, 4, 7, 3));
  assert.equal(usage.tokens, 4 + 6);
  assert.deepEqual(
    warnings.map(({ type, feature, details }) => [type, feature, details]),
    [
      [
        "unsupported",
        "providerOptions.framebatch.pooling",
        "the options are prompt, truncate, priority",
      ],
      ["unsupported", "dimensions", "vectors have 4 floats"],
    ],
  );
  const many = embedMany({ model, values: Array(65).fill("d"), dimensions: 4 });
  await settled();
  answer(session);
  const { usage: all, warnings: none } = await many;
  assert.deepEqual([all.tokens, none], [65 * 3, []]);
  delete globalThis.AI_SDK_LOG_WARNINGS;
});

test("ai-sdk: an abort gives calls up, those of long lists too", async () => {
  const { core, embedder } = await made();
  const model = embeddingModel({ embedder });
  const aborter = new AbortController();
  const { signal } = aborter;
  const calls = [
    embed({ model, value: "a", abortSignal: signal }),
    embedMany({ model, values: ["b", "c"], abortSignal: signal }),
    embedMany({ model, values: Array(65).fill("d"), abortSignal: signal }),
  ];
  const others = embed({ model, value: "a" });
  await settled();
  aborter.abort(new Error("enough"));
  for (const call of calls) await assert.rejects(call, /enough/);
  assert.equal(await stateOf(others), "pending");
  assert.ok(core.counts.aborts >= 3);
});

test("llamaindex: nodes are embedded, progress is told, and images have no vector", async () => {
  const { TextNode } = await import("@llamaindex/core/schema");
  const session = await made();
  const embedding = new FramebatchEmbedding({ embedder: session.embedder });
  const nodes = ["a", "b"].map((text) => new TextNode({ text }));
  const transformed = embedding(nodes);
  await settled();
  answer(session);
  await transformed;
  assert.deepEqual(nodes[1].getEmbedding(), numbers(2, 5, 3));
  embedding.embedBatchSize = 1;
  const told = [];
  const progressCallback = (...at) => told.push(at);
  const all = embedding.getTextEmbeddingsBatch(["a", "b"], {
    progressCallback,
  });
  for (let text = 0; text < 2; text += 1) {
    await settled();
    answer(session);
  }
  const [a, b] = await all;
  assert.deepEqual(told, [
    [1, 2],
    [2, 2],
  ]);
  assert.equal(embedding.similarity(a, a).toFixed(6), "1.000000");
  assert.notDeepEqual(a, b);
  const image = { type: "image_url", image_url: { url: "data:," } };
  assert.equal(await embedding.getQueryEmbedding(image), null);
});

test("langchain: a vector store takes the embeddings", async () => {
  const { Document } = await import("@langchain/core/documents");
  const { VectorStore } = await import("@langchain/core/vectorstores");
  class Store extends VectorStore {
    rows = [];
    _vectorstoreType() {
      return "lines";
    }
    async addDocuments(documents) {
      const texts = documents.map(({ pageContent }) => pageContent);
      await this.addVectors(
        await this.embeddings.embedDocuments(texts),
        documents,
      );
    }
    async addVectors(vectors, documents) {
      this.rows.push(...vectors.map((vector, i) => [vector, documents[i]]));
    }
    async similaritySearchVectorWithScore(query, k) {
      const scored = this.rows.map(([vector, document]) => [
        document,
        -Math.abs(vector[0] - query[0]),
      ]);
      return scored.sort((a, b) => b[1] - a[1]).slice(0, k);
    }
  }
  const session = await made();
  const embeddings = new FramebatchEmbeddings({ embedder: session.embedder });
  const store = new Store(embeddings, {});
  const texts = ["a", "b", "d d"];
  const added = store.addDocuments(
    texts.map((pageContent) => new Document({ pageContent })),
  );
  await settled();
  answer(session);
  await added;
  const found = store.asRetriever(1).invoke("b");
  await settled();
  answer(session);
  assert.deepEqual(
    (await found).map(({ pageContent }) => pageContent),
    ["b"],
  );
});

test("databases keep a name, and find the embedder by it", async () => {
  const { registered } = await import("@lancedb/lancedb/embedding").catch(() =>
    module("../../@lancedb/lancedb/embedding"),
  );
  const { lancedb, chroma } = libraries;
  const kinds = [
    {
      Made: lancedb.FramebatchEmbeddingFunction,
      keep: (made) => JSON.parse(JSON.stringify(made)),
      open: (config) => new (registered.get("framebatch"))(config),
      ask: (made) => made.computeQueryEmbeddings("d"),
    },
    {
      Made: chroma.FramebatchEmbeddingFunction,
      keep: (made) => made.getConfig(),
      open: (config) =>
        chroma.FramebatchEmbeddingFunction.buildFromConfig(config),
      ask: async (made) => (await made.generateForQueries(["d"]))[0],
    },
  ];
  for (const [i, { Made, keep, open, ask }] of kinds.entries()) {
    const session = await made(PROMPTS);
    const { embedder } = session;
    const model = `model ${i}`;
    const first = new Made({ embedder, model, queryPrompt: "other" });
    const config = keep(first);
    assert.deepEqual(config, { model, queryPrompt: "other" });
    const found = ask(open(config));
    await settled();
    answer(session);
    assert.deepEqual([...(await found)], numbers(2, 6, 7, 3));
    // The table of another program is opened before its embedder is given.
    const early = open({ model: `late ${model}` });
    const missing = await stateOf(ask(early));
    assert.equal(missing.reason.code, "invalid-input");
    assert.match(
      missing.reason.message,
      /no embedder was given for the model 'late model .'; make new Framebatch/,
    );
    new Made({ embedder, model: `late ${model}` });
    const late = ask(early);
    await settled();
    answer(session);
    assert.deepEqual([...(await late)], numbers(2, 4, 7, 3));
  }
});

test("lancedb: a column is as wide as vectors, once the embedder is there", async () => {
  const { FramebatchEmbeddingFunction } = libraries.lancedb;
  const { embedder } = await made();
  assert.equal(new FramebatchEmbeddingFunction({ embedder }).ndims(), 4);
  const later = new FramebatchEmbeddingFunction({
    embedder: Promise.resolve(embedder),
    model: "later",
  });
  assert.equal(later.ndims(), undefined);
  await later.init();
  assert.equal(later.ndims(), 4);
});

test("orama: documents and terms are embedded, by any way in", async () => {
  const { core, embedder } = await eager();
  core.answersAtOnce = true;
  const plugin = pluginFramebatch({
    embedder,
    properties: ["title", "in.body"],
  });
  const db = create({
    schema: {
      title: "string",
      in: { body: "string" },
      embeddings: "vector[4]",
    },
    plugins: [plugin],
  });
  const first = { id: "1", title: "a", in: { body: "b" } };
  await insert(db, first);
  // "." is no word of the small model's.
  assert.deepEqual(first.embeddings, numbers(2, 1, 5, 3));
  const others = Array.from({ length: 10 }, (_, i) => ({
    id: `m${i}`,
    title: "abcd"[i % 4],
  }));
  const before = { ...core.counts };
  await insertMultiple(db, await plugin.embed(others));
  assert.equal(core.counts.flushes - before.flushes, 1);
  // Texts of documents that were changed are embedded again, and documents without text not.
  const changed = { ...others[0], title: "d d" };
  await upsertMultiple(db, [changed, { id: "none" }]);
  assert.deepEqual(changed.embeddings, numbers(2, 7, 7, 3));
  const params = {
    mode: "vector",
    term: "d",
    similarity: 0,
    includeVectors: true,
  };
  const found = await search(db, params);
  const { vector: asked } = params;
  assert.deepEqual([...asked.value], numbers(2, 7, 3));
  assert.equal(found.count, 11);
  // The same object with another term, and one that brings its vector.
  params.term = "a";
  await search(db, params);
  assert.deepEqual([...params.vector.value], numbers(2, 4, 3));
  const own = { value: numbers(2, 5, 3), property: "embeddings" };
  const brought = { mode: "hybrid", term: "a", vector: own, similarity: 0 };
  await search(db, brought);
  assert.equal(brought.vector, own);
  const plain = { term: "a" };
  await search(db, plain);
  assert.equal(plain.vector, undefined);
  await assert.rejects(async () => search(db, { mode: "vector" }), {
    code: "invalid-input",
    message: /a search by vector needs a term or a vector/,
  });
});

test("orama: a document whose text was changed in place is embedded anew", async () => {
  const { core, embedder } = await eager();
  core.answersAtOnce = true;
  const plugin = pluginFramebatch({
    embedder,
    properties: ["title"],
    vectorProperty: "place",
  });
  const db = create({
    schema: { title: "string", place: "vector[4]" },
    plugins: [plugin],
  });
  const document = { id: "1", title: "a" };
  await plugin.embed([document]);
  document.title = "b";
  await insert(db, document);
  assert.deepEqual(document.place, numbers(2, 5, 3));
});
