// The adapters of LanceDB and Chroma beside the real libraries, and the package as built, on
// the CPU. LanceDB writes to a folder; Chroma's client asks a server of this file, which
// keeps what it is sent.
//
// Both libraries are heavy and bring native code, so `make databases` installs them here, and
// `make test` does without.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { connect } from "@lancedb/lancedb";
import { getRegistry, LanceSchema } from "@lancedb/lancedb/embedding";
import { Utf8 } from "apache-arrow";
import { ChromaClient } from "chromadb";
import { open } from "framebatch";
import { FramebatchEmbeddingFunction as ChromaFunction } from "framebatch/chroma";
import "framebatch/embeddings";
import { FramebatchEmbeddingFunction as LanceFunction } from "framebatch/lancedb";

const ROOT = join(import.meta.dirname, "..", "..");
const MODEL = [
  ...["config.json", "model.safetensors", "modules.json", "vocab.txt"],
  ...["sentence_bert_config.json", "1_Pooling/config.json"],
];
const TEXTS = ["a cat", "the dog", "a bird and a fish", "it rains"];

let gpu;
let embedder;

before(async () => {
  const read = (...path) => readFile(join(ROOT, ...path));
  const files = await Promise.all(
    MODEL.map(async (name) => [
      name,
      await read("tests/data/tiny-model", name),
    ]),
  );
  const wasm = await read("pkg/wasm/framebatch_bg.wasm");
  gpu = await open({ engine: "cpu", wasm });
  embedder = await gpu.embedder(Object.fromEntries(files), {
    wasm: await read("pkg/wasm/embeddings_bg.wasm"),
  });
});

after(() => gpu?.dispose());

/** Runs the example of a library in docs/libraries.md, changed; what it prints, and promises. */
async function example(library, change) {
  const page = await readFile(join(ROOT, "docs/libraries.md"), "utf8");
  const code = [...page.matchAll(/```ts\n(.*?)```/gs)]
    .map(([, code]) => code)
    .find((code) => code.includes(`"${library}"`));
  const [, promised] = /console\.log.*; \/\/ (.*)$/m.exec(code);
  const lines = [];
  const log = (...values) => lines.push(values.join(" "));
  globalThis.example = { embedder, console: { log } };
  const prelude = "const { embedder, console } = globalThis.example;\n";
  const folder = join(import.meta.dirname, "node_modules", ".examples");
  const file = join(folder, `${library.replaceAll("/", "-")}.mjs`);
  await mkdir(folder, { recursive: true });
  await writeFile(file, prelude + change(code));
  await import(pathToFileURL(file).href);
  return { printed: lines.join("\n"), promised };
}

/** How many batches were sent meanwhile. */
async function batchesOf(run) {
  const { batches } = gpu.stats();
  await run();
  return gpu.stats().batches - batches;
}

test("LanceDB: rows and texts that are searched are embedded, in a table that is opened again too", async () => {
  const folder = await mkdtemp(join(tmpdir(), "framebatch-lancedb-"));
  try {
    const at = (code) => code.replace('"texts.lance"', JSON.stringify(folder));
    const { printed, promised } = await example("@lancedb/lancedb", at);
    assert.equal(printed, promised);
    const own = new LanceFunction({ embedder, model: "tiny" });
    const schema = LanceSchema({
      text: own.sourceField(new Utf8()),
      vector: own.vectorField(),
    });
    const db = await connect(folder);
    const table = await db.createEmptyTable("more", schema);
    const rows = TEXTS.map((text) => ({ text }));
    assert.equal(await batchesOf(() => table.add(rows)), 1);
    const stored = await table.query().toArray();
    const vectors = await Promise.all(
      TEXTS.map((text) => embedder.embed(text)),
    );
    for (const { text, vector } of stored) {
      assert.deepEqual([...vector], [...vectors[TEXTS.indexOf(text)]]);
    }
    // The library makes the function anew, by the name that the table keeps.
    const again = await (await connect(folder)).openTable("more");
    for (const text of TEXTS) {
      const [first] = await again.search(text).limit(1).toArray();
      assert.equal(first.text, text);
    }
    const batches = await batchesOf(() =>
      Promise.all(TEXTS.map((text) => own.computeQueryEmbeddings(text))),
    );
    assert.equal(batches, 1);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("LanceDB: the registry makes a function, once its embedder is loaded", async () => {
  const options = { embedder: Promise.resolve(embedder), model: "later" };
  const made = await getRegistry().get("framebatch").create(options);
  assert.equal(made.ndims(), embedder.info.dimensions);
  assert.deepEqual(made.toJSON(), { model: "later" });
  const unknown = getRegistry().get("framebatch").create({ model: "other" });
  await assert.rejects(unknown, {
    code: "invalid-input",
    message: /no embedder was given for the model 'other'/,
  });
});

/** A server that keeps collections as Chroma's client sends them. */
async function chromaServer() {
  const collections = new Map();
  const seen = [];
  const rows = [];
  const respond = (path, body) => {
    seen.push({ path, body });
    if (/collections$/.test(path)) {
      const { name, configuration = {} } = body;
      const id = `00000000-0000-4000-8000-00000000000${collections.size}`;
      const made = {
        ...{ id, name, metadata: null, dimension: null, version: 0 },
        ...{ tenant: "default_tenant", database: "default_database" },
        ...{ log_position: 0, configuration_json: configuration },
      };
      collections.set(name, made);
      return made;
    }
    if (/collections\/[^/]+$/.test(path)) {
      return collections.get(path.split("/").at(-1));
    }
    if (path.endsWith("/add")) {
      body.ids.forEach((id, i) => rows.push([id, decoded(body.embeddings[i])]));
    }
    if (path.endsWith("/query")) {
      const ids = body.query_embeddings.map((query) => [nearest(rows, query)]);
      return { ids, distances: ids.map(() => [0]), include: [] };
    }
    if (path.endsWith("identity")) {
      return {
        ...{ user_id: "", tenant: "default_tenant" },
        databases: ["default_database"],
      };
    }
    return { max_batch_size: 1000, supports_base64_encoding: true };
  };
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const text = Buffer.concat(parts).toString();
    const { pathname } = new URL(request.url, "http://127.0.0.1");
    const answer = respond(
      pathname,
      text === "" ? undefined : JSON.parse(text),
    );
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { seen, server, port: server.address().port };
}

test("Chroma: documents and queries are embedded, of a collection that is opened again too", async () => {
  const { seen, server, port } = await chromaServer();
  try {
    const at = `new ChromaClient({ host: "127.0.0.1", port: ${port} })`;
    const { printed, promised } = await example("chromadb", (code) =>
      code.replace("new ChromaClient()", at),
    );
    assert.equal(printed, promised);
    seen.length = 0;
    const client = new ChromaClient({ host: "127.0.0.1", port });
    const own = new ChromaFunction({ embedder, model: "tiny" });
    const collection = await client.createCollection({
      name: "more",
      embeddingFunction: own,
    });
    const ids = TEXTS.map((_, i) => String(i));
    const add = () => collection.add({ ids, documents: TEXTS });
    assert.equal(await batchesOf(add), 1);
    const vectors = await Promise.all(
      TEXTS.map((text) => embedder.embed(text)),
    );
    const sent = seen.find(({ path }) => path.endsWith("/add")).body;
    assert.deepEqual(
      sent.embeddings.map((one) => decoded(one)),
      vectors.map((vector) => [...vector]),
    );
    const { body } = seen.find(({ path }) => path.endsWith("collections"));
    const kept = body.configuration.embedding_function;
    assert.deepEqual(kept, {
      ...{ type: "known", name: "framebatch" },
      config: { model: "tiny" },
    });
    const again = await client.getCollection({ name: "more" });
    const asked = await batchesOf(() => again.query({ queryTexts: TEXTS }));
    assert.equal(asked, 1);
    const query = seen.find(({ path }) => path.endsWith("/query")).body;
    assert.deepEqual(query.query_embeddings.map(decoded), [
      ...vectors.map((vector) => [...vector]),
    ]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

/** The id of the row whose vector is most like the query's. */
function nearest(rows, query) {
  const likeness = (vector) =>
    decoded(query).reduce((sum, x, i) => sum + x * vector[i], 0);
  const [[id]] = rows.toSorted(([, a], [, b]) => likeness(b) - likeness(a));
  return id;
}

/** A vector as the client sends it: numbers, or their bytes. */
function decoded(vector) {
  if (typeof vector !== "string") return vector;
  const bytes = Buffer.from(vector, "base64");
  return [...new Float32Array(new Uint8Array(bytes).buffer)];
}

test("the adapters have the types that the libraries ask for", async () => {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const compiled = promisify(execFile)(process.execPath, [
    ...[tsc, "-p", import.meta.dirname],
  ]);
  await assert.doesNotReject(compiled, ({ stdout }) => assert.fail(stdout));
});
