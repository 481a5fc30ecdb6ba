// Folders of models on a real server, in a real browser's cache: errors that are no
// absences, new versions, other origins, servers that are gone, and loads that end early.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { serve } from "../../tools/serve.mjs";
import { openSite } from "./site.mjs";

const MODEL = "tests/data/tiny-model";
const WEIGHTS = "model.safetensors";
const FILES = readdirSync(MODEL, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ parentPath, name }) => join(parentPath, name))
  .map((path) => [path.slice(MODEL.length + 1), readFileSync(path)]);
const NAMES = FILES.map(([name]) => name).sort();
/** What a folder need not have, and this one lacks. */
const LACKS = [
  "config_sentence_transformers.json",
  "tokenizer.json",
  "tokenizer_config.json",
];

const site = openSite();
let folder;
let page;
let complaints;
beforeEach(() => (folder = newFolder()));

/** The page's own server has a folder, and so has one of another origin. */
let own;
let other;
before(async () => {
  const mounts = { "/pkg/": "pkg", "/": "tests/e2e/pages" };
  own = await serve(mounts, { answer: (...all) => folder.answer(...all) });
  other = await serve({}, { answer: (...all) => folder.answer(...all) });
});
after(() => Promise.all([own.close(), other.close()]));

/** A folder on the web, what was asked of it, and what a test says of its answers. */
function newFolder() {
  const it = {
    files: new Map(FILES),
    asked: [],
    /** Answers to some names, in place of the files. */
    answers: {},
    /** Headers of all its answers. */
    headers: {},
    /** What it tells versions apart by. */
    validators: ["etag", "last-modified"],
    names: (status) =>
      it.asked
        .filter((request) => request.status === status)
        .map(({ name }) => name)
        .sort(),
    answer(request, response) {
      const { pathname } = new URL(request.url, "http://loopback");
      if (!pathname.startsWith("/model/")) return false;
      const name = decodeURIComponent(pathname.slice("/model/".length));
      const entry = { name, method: request.method, status: 0 };
      it.asked.push(entry);
      const send = (status, headers, body) => {
        entry.status = status;
        response.writeHead(status, {
          "cache-control": "no-cache",
          ...it.headers,
          ...headers,
        });
        if (body !== undefined) response.end(body);
        return true;
      };
      if (it.answers[name] !== undefined)
        return it.answers[name](send, response);
      const bytes = it.files.get(name);
      if (bytes === undefined) return send(404, {}, "");
      const hash = createHash("sha1").update(bytes).digest();
      const all = {
        etag: `"${hash.toString("hex")}"`,
        // Some second of this century.
        "last-modified": new Date(
          1e12 + hash.readUInt32LE() * 100,
        ).toUTCString(),
      };
      const has = Object.fromEntries(
        it.validators.map((name) => [name, all[name]]),
      );
      const headers = { ...has, "content-length": bytes.length };
      const { "if-none-match": etag, "if-modified-since": modified } =
        request.headers;
      const isKnown =
        etag === undefined
          ? modified !== undefined && modified === has["last-modified"]
          : etag === has.etag;
      return isKnown ? send(304, has, "") : send(200, headers, bytes);
    },
  };
  return it;
}

/** A page whose cache is empty, for `use`. */
async function open(use) {
  complaints = [];
  page = await site.open((text) => {
    if (!/404|503|Failed to load|CORS|NetworkError/.test(text)) {
      complaints.push(text);
    }
  });
  try {
    await page.goto(own.url);
    await page.waitForFunction(() => "framebatch" in window);
    await page.evaluate(() => caches.delete("framebatch-models"));
    await use();
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
  }
}

/** Loads the folder in the page; what it says of a text, or why it does not. */
async function load(address = `${own.url}/model/`, among = page) {
  folder.asked = [];
  return among.evaluate(async (address) => {
    const gpu = await framebatch.open({ engine: "cpu" });
    try {
      const embedder = await gpu.embedder(address);
      const vector = await embedder.embed("the cat sat on the mat");
      const { normalized, maxTokens } = embedder.info;
      return { normalized, maxTokens, vector: [...vector].join() };
    } catch ({ name, code, message }) {
      return { name, code, message };
    } finally {
      await gpu.dispose();
    }
  }, address);
}

/** Waits until a load has kept its set; the names that are kept, absences included. */
async function kept(address = `${own.url}/model/`) {
  const handle = await page.waitForFunction(
    async (address) => {
      // While a load writes, it has a lock.
      const { held } = await navigator.locks.query();
      if (held.some(({ name }) => name.startsWith("framebatch-models"))) {
        return undefined;
      }
      const cache = await caches.open("framebatch-models");
      const list = await cache.match(`${address}?framebatch-files`);
      return list === undefined ? ["nothing"] : Object.keys(await list.json());
    },
    {},
    address,
  );
  return (await handle.jsonValue()).sort();
}

const files = (limit) => [
  "sentence_bert_config.json",
  Buffer.from(JSON.stringify({ max_seq_length: limit })),
];
const html = (status) => (send) =>
  send(status, { "content-type": "text/html" }, "<!doctype html>");

test("an error page is no absence, and the next load is whole", () =>
  open(async () => {
    const address = `${own.url}/model/modules.json`;
    for (const status of [503, 403]) {
      folder.answers = { "modules.json": html(status) };
      assert.deepEqual(await load(), {
        name: "FramebatchError",
        code: "invalid-input",
        message: `embedder: modules.json: ${address} was answered with status ${status}`,
      });
      assert.deepEqual(await kept(), ["nothing"]);
    }
    folder.answers = {};
    assert.equal((await load()).normalized, true);
    assert.deepEqual(await kept(), [...NAMES, ...LACKS].sort());
    // The page of an application stands for files that its server lacks.
    folder = newFolder();
    for (const name of [...LACKS, "framebatch-no-such-file.json"]) {
      folder.answers[name] = html(200);
    }
    assert.equal((await load()).normalized, true);
    folder.answers["modules.json"] = html(200);
    assert.equal((await load()).normalized, false);
  }));

test("a kept folder is asked for by conditions, and what changed is fetched", () =>
  open(async () => {
    const first = await load();
    assert.equal(first.maxTokens, 40);
    await kept();
    assert.deepEqual(await load(), first);
    assert.deepEqual(folder.names(304), NAMES);
    assert.deepEqual(folder.names(404), LACKS);
    assert.deepEqual(folder.names(200), []);
    folder.files.set(...files(9));
    assert.equal((await load()).maxTokens, 9);
    assert.deepEqual(folder.names(200), ["sentence_bert_config.json"]);
    await kept();
    // A version that is no model leaves the one that was.
    folder.files.set("config.json", Buffer.from("{}"));
    assert.match((await load()).message, /model_type/);
    folder.answers = { "vocab.txt": html(500) };
    assert.equal((await load()).maxTokens, 9);
    assert.deepEqual(await kept(), [...NAMES, ...LACKS].sort());
  }));

test("a folder of another origin needs to allow no conditions", () =>
  open(async () => {
    folder.headers = { "access-control-allow-origin": "*" };
    const address = `${other.url}/model/`;
    const first = await load(address);
    assert.equal(first.normalized, true);
    await kept(address);
    assert.deepEqual(await load(address), first);
    folder.files.set(...files(9));
    assert.equal((await load(address)).maxTokens, 9);
    await kept(address);
    // Nothing asked for permission.
    for (const { method } of folder.asked) assert.equal(method, "GET");
    // Out of reach, as without a network.
    await other.close();
    assert.equal((await load(address)).maxTokens, 9);
    // Without validators that are to be seen, nothing is asked. An origin that is new has
    // nothing in the browser's own cache, which would remember more.
    other = await serve({}, { answer: (...all) => folder.answer(...all) });
    folder.validators = ["etag"];
    const hidden = `${other.url}/model/`;
    await load(hidden);
    await kept(hidden);
    folder.files.set(...files(7));
    assert.equal((await load(hidden)).maxTokens, 9);
    assert.deepEqual(folder.asked, []);
  }));

test("two pages that load at once, and a load that is given up, leave one whole set", () =>
  open(async () => {
    // The server keeps half of the weights until the page has given them up.
    let begun;
    const half = new Promise((resolve) => (begun = resolve));
    folder.answers[WEIGHTS] = (send, response) => {
      const bytes = folder.files.get(WEIGHTS);
      send(200, { "content-length": bytes.length });
      response.write(bytes.subarray(0, bytes.length / 2));
      begun();
      return true;
    };
    await page.evaluate(async (address) => {
      window.gpu = await framebatch.open({ engine: "cpu" });
      window.giving = new AbortController();
      const { signal } = window.giving;
      window.loading = gpu
        .embedder(address, { signal })
        .catch((error) => error);
    }, `${own.url}/model/`);
    await half;
    const reason = await page.evaluate(async () => {
      giving.abort("enough");
      return loading.finally(() => gpu.dispose());
    });
    assert.equal(reason, "enough");
    assert.deepEqual(await kept(), ["nothing"]);
    const entries = () =>
      page.evaluate(async () => {
        const cache = await caches.open("framebatch-models");
        return (await cache.keys()).length;
      });
    assert.equal(await entries(), 0);
    folder.answers = {};
    const second = await site.open((text) => {
      if (!/404/.test(text)) complaints.push(text);
    });
    await second.goto(own.url);
    await second.waitForFunction(() => "framebatch" in window);
    const both = await Promise.all([load(), load(undefined, second)]);
    await second.close();
    assert.equal(both[0].normalized, true);
    assert.deepEqual(both[1], both[0]);
    assert.deepEqual(await kept(), [...NAMES, ...LACKS].sort());
    // The files, and the list of them.
    assert.equal(await entries(), NAMES.length + 1);
    assert.deepEqual(await load(), both[0]);
    assert.deepEqual(folder.names(200), []);
  }));
