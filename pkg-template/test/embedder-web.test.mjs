// Folders on the web: what servers answer, and what is kept in the browser's cache.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { manual, module, settled } from "./face.mjs";
import { folder, json, vector } from "./folder.mjs";

await module("embeddings/index");

const SITE = "https://models.test/small/";
const { fetch: realFetch, caches: realCaches } = globalThis;

/** What the server has, what it was asked, and how it answers some. */
let files, asked, answers;
/** What is kept, by address; and what writing to it throws. */
let kept, full;

beforeEach(() => {
  files = folder();
  asked = [];
  answers = {};
  kept = new Map();
  full = undefined;
  globalThis.fetch = async (url, { signal }) => {
    signal.throwIfAborted();
    const name = String(url).slice(SITE.length);
    asked.push(name);
    const answer = answers[name];
    if (answer instanceof Error) throw answer;
    if (answer !== undefined) return answer(signal);
    if (!(name in files)) return new Response("none", { status: 404 });
    const bytes = files[name];
    return new Response(bytes, {
      headers: { "content-length": bytes.length },
    });
  };
  const cache = {
    match: async (url) => kept.get(String(url))?.clone(),
    put: async (url, response) => {
      const bytes = await response.arrayBuffer();
      if (full !== undefined) throw full;
      const { headers, status } = response;
      const body = status === 404 ? null : bytes;
      kept.set(String(url), new Response(body, { headers, status }));
    },
    delete: async (url) => kept.delete(String(url)),
  };
  stub("caches", { open: async () => cache });
});

afterEach(() => {
  globalThis.fetch = realFetch;
  stub("caches", realCaches);
});

function stub(name, value) {
  Object.defineProperty(globalThis, name, { value, configurable: true });
}

async function works(gpu, core, embedder) {
  const result = embedder.embed("a");
  gpu.flush();
  core.answer();
  assert.deepEqual(await result, vector(2, 4, 3));
}

test("a folder is fetched once, and found in the cache from then on", async () => {
  const { gpu, core } = await manual();
  await works(gpu, core, await gpu.embedder(SITE.slice(0, -1)));
  await settled(20);
  const has = Object.keys(files).sort();
  // What the folder lacks is known as well, or it could not be loaded offline.
  const looked = [...has, "config_sentence_transformers.json"].sort();
  assert.deepEqual(
    [...kept.keys()].map((url) => url.slice(SITE.length)).sort(),
    looked,
  );
  asked = [];
  await works(gpu, core, await gpu.embedder(new URL(SITE)));
  assert.deepEqual(asked, []);
  asked = [];
  await works(gpu, core, await gpu.embedder(SITE, { cache: false }));
  assert.deepEqual(asked.filter((name) => name in files).sort(), has);
});

test("where nothing can be kept, a model loads all the same", async () => {
  const { gpu, core } = await manual();
  full = new DOMException("no room", "QuotaExceededError");
  await works(gpu, core, await gpu.embedder(SITE));
  await settled(20);
  assert.equal(kept.size, 0);
  stub("caches", { open: () => Promise.reject(new Error("denied")) });
  await works(gpu, core, await gpu.embedder(SITE));
  stub("caches", undefined);
  await works(gpu, core, await gpu.embedder(SITE));
});

test("what is no model is not kept", async () => {
  const { gpu, core } = await manual();
  files["model.safetensors"] = files["model.safetensors"].slice(0, 200);
  await assert.rejects(gpu.embedder(SITE), /it is truncated/);
  await settled(20);
  assert.equal(kept.size, 0);
  files = folder();
  await works(gpu, core, await gpu.embedder(SITE));
});

test("a server out of reach takes nothing from what is kept", async () => {
  const { gpu, core } = await manual();
  await works(gpu, core, await gpu.embedder(SITE));
  await settled(20);
  const name = "modules.json";
  kept.delete(SITE + name);
  const has = kept.size;
  const wrong = [
    new TypeError("offline"),
    () => new Response("", { status: 503 }),
  ];
  for (const answer of wrong) {
    answers = { [name]: answer };
    await assert.rejects(gpu.embedder(SITE), { code: "invalid-input" });
    await settled(20);
    assert.equal(kept.size, has);
  }
  answers = {};
  asked = [];
  await works(gpu, core, await gpu.embedder(SITE));
  assert.deepEqual(asked, [name]);
});

test("what servers answer is told by file and address", async () => {
  const { gpu, core } = await manual();
  const page = () =>
    new Response("<!doctype html>", {
      headers: { "content-type": "text/html" },
    });
  const status = (status) => () => new Response("", { status });
  const cases = [
    ["config.json", status(404), "config.json is missing"],
    ["config.json", page, "config.json is missing"],
    [
      "config.json",
      status(500),
      `config.json: ${SITE}config.json was answered with status 500`,
    ],
    ["modules.json", status(403), "modules.json: "],
    [
      "model.safetensors",
      new TypeError("refused"),
      `model.safetensors could not be fetched from ${SITE}model.safetensors (refused)`,
    ],
  ];
  for (const [name, answer, message] of cases) {
    answers = { [name]: answer };
    await assert.rejects(gpu.embedder(SITE), (error) => {
      assert.equal(error.code, "invalid-input");
      assert.ok(error.message.includes(message), error.message);
      return true;
    });
    assert.equal(core.tensors.size, 0);
    await settled(20);
    kept.clear();
  }
  // What a folder need not have may be missing in any way.
  answers = { "sentence_bert_config.json": page };
  const embedder = await gpu.embedder(SITE);
  assert.equal(embedder.info.maxTokens, 16);
});

test("a compressed file of another origin is no truncated one", async () => {
  const { gpu, core } = await manual();
  const whole = files["model.safetensors"];
  /** Of another origin how a file is compressed is not to be seen, but its length is. */
  const compressed = (bytes) => () => {
    const response = new Response(bytes, {
      headers: { "content-length": bytes.length >> 1 },
    });
    return Object.defineProperty(response, "type", { value: "cors" });
  };
  answers["model.safetensors"] = compressed(whole);
  const heard = [];
  const onProgress = (progress) => heard.push(progress);
  const options = { cache: false, onProgress };
  await works(gpu, core, await gpu.embedder(SITE, options));
  const { length } = whole;
  assert.deepEqual(heard.at(-1), { loaded: length, total: length });
  const tensors = core.tensors.size;
  answers["model.safetensors"] = compressed(whole.slice(0, -3));
  await assert.rejects(gpu.embedder(SITE, options), /it is truncated/);
  answers["model.safetensors"] = compressed(Uint8Array.of(...whole, 0));
  await assert.rejects(gpu.embedder(SITE, options), /there is more behind/);
  assert.equal(core.tensors.size, tensors);
});

test("what breaks off on its way is told so, and costs no file that was kept", async () => {
  const { gpu, core } = await manual();
  await works(gpu, core, await gpu.embedder(SITE));
  await settled(20);
  const had = [...kept.keys()].sort();
  const breaking = (bytes) => () => {
    const start = (to) => to.enqueue(bytes.slice(0, 9));
    const pull = (to) => to.error(new TypeError("network error"));
    const how = { highWaterMark: 0 };
    return new Response(new ReadableStream({ start, pull }, how));
  };
  const [words, weights] = ["tokenizer.json", "model.safetensors"];
  for (const name of [words, weights]) {
    kept.delete(SITE + name);
    answers = { [name]: breaking(files[name]) };
    await assert.rejects(gpu.embedder(SITE), {
      code: "invalid-input",
      message: `embedder: ${name} broke off on its way from ${SITE}${name} (network error)`,
    });
    await settled(20);
    const left = had.filter((url) => url !== SITE + name);
    assert.deepEqual([...kept.keys()].sort(), left);
    answers = {};
    await works(gpu, core, await gpu.embedder(SITE));
    await settled(20);
  }
  // What was kept and cannot be read is fetched again.
  const damaged = breaking(files[words])();
  damaged.clone = () => damaged;
  kept.set(SITE + words, damaged);
  await assert.rejects(gpu.embedder(SITE), /tokenizer.json broke off/);
  await settled(20);
  await works(gpu, core, await gpu.embedder(SITE));
});

test("loading from the web is given up, and its request with it", async () => {
  const { gpu, core } = await manual();
  const controller = new AbortController();
  let stopped;
  answers["model.safetensors"] = (signal) => {
    const body = new ReadableStream({
      start(to) {
        to.enqueue(files["model.safetensors"].slice(0, 300));
        signal.addEventListener("abort", () => {
          stopped = signal.reason;
          to.error(signal.reason);
        });
      },
    });
    return new Response(body);
  };
  const loading = gpu.embedder(SITE, { signal: controller.signal });
  await settled(20);
  controller.abort("enough");
  await assert.rejects(loading, (reason) => reason === "enough");
  assert.equal(stopped, "enough");
  assert.equal(core.tensors.size, 0);
  await settled(20);
  assert.ok(!kept.has(`${SITE}model.safetensors`));
});

test("a wrong file ends the request of the others", async () => {
  const { gpu } = await manual();
  let stopped = false;
  answers["model.safetensors"] = (signal) => {
    const start = (to) =>
      signal.addEventListener("abort", () => {
        stopped = true;
        to.error(signal.reason);
      });
    return new Response(new ReadableStream({ start }));
  };
  files["config.json"] = json({});
  await assert.rejects(gpu.embedder(SITE), /model_type must be a string/);
  assert.ok(stopped);
});
