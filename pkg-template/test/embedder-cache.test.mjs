// What is kept of a model's folder in the browser's cache, and when it serves; several
// loads at once. Folders that change are in embedder-versions.test.mjs.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { chunk, manual, settled } from "./face.mjs";
import { CONFIG, folder, json, TOKENIZER, vector } from "./folder.mjs";
import {
  breaking,
  fails,
  load,
  page,
  server,
  status,
  WEIGHTS,
  works,
} from "./web-model.mjs";
import { from, SITE } from "./web-server.mjs";

test("a folder is fetched once, and from then on revalidated", async () => {
  for (const validator of ["etag", "last-modified"]) {
    server.validator = validator;
    server.kept.clear();
    const session = await manual();
    const first = await session.gpu.embedder(SITE.slice(0, -1));
    assert.deepEqual(await works(session, first), vector(2, 4, 3));
    await settled(20);
    const has = Object.keys(server.files).sort();
    assert.deepEqual(server.keptNames(), has);
    await load(session);
    // What the folder lacks is known as well, or it could not be loaded offline.
    const lacks = [
      "config_sentence_transformers.json",
      "tokenizer_config.json",
    ];
    assert.deepEqual(server.names(304), has);
    assert.deepEqual(server.names(404), lacks);
    assert.equal(server.asked.length, has.length + lacks.length);
    server.answers = Object.fromEntries(
      [...has, ...lacks].map((name) => [name, new TypeError("offline")]),
    );
    await load(session);
    server.answers = {};
    await load(session, { cache: false });
    assert.deepEqual(server.names(200), has);
  }
});

test("where nothing can be kept, a model loads all the same", async () => {
  const session = await manual();
  server.full = new DOMException("no room", "QuotaExceededError");
  await load(session);
  assert.equal(server.kept.size, 0);
  server.full = undefined;
  server.stub("navigator", {});
  await load(session);
  assert.equal(server.kept.size, 0);
  const denied = () => Promise.reject(new Error("denied"));
  server.stub("caches", { open: denied });
  await load(session);
  server.stub("caches", undefined);
  await load(session);
});

test("what is no model is not kept", async () => {
  const session = await manual();
  server.files[WEIGHTS] = server.files[WEIGHTS].slice(0, 200);
  assert.match((await fails(session)).message, /it is truncated/);
  assert.equal(server.kept.size, 0);
  server.files = folder();
  await load(session);
});

test("an error of a server is no absence, and a load that failed keeps none", async () => {
  const session = await manual();
  const wrong = [
    [page(503), "503"],
    [status(503), "503"],
    [page(403), "403"],
    [status(401), "401"],
    [page(410), "410"],
    [status(429), "429"],
    [page(500), "500"],
  ];
  const name = "modules.json";
  for (const [answer, code] of wrong) {
    server.answers = { [name]: answer };
    const { message } = await fails(session);
    assert.equal(
      message,
      `embedder: ${name}: ${SITE}${name} was answered with status ${code}`,
    );
    assert.equal(server.kept.size, 0);
  }
  server.answers = {};
  const { info } = await load(session);
  assert.equal(info.normalized, true);
});

test("an absence is asked for again, and believed only where nothing else is wrong", async () => {
  const session = await manual();
  const modules = server.files["modules.json"];
  delete server.files["modules.json"];
  assert.equal((await load(session)).info.normalized, false);
  server.files["modules.json"] = modules;
  assert.equal((await load(session)).info.normalized, true);
  delete server.files["modules.json"];
  assert.equal((await load(session)).info.normalized, false);
  assert.ok(!server.keptNames().includes("1_Pooling/config.json"));
});

test("a page of HTML is an absence where the server has one for everything", async () => {
  const session = await manual();
  const optional = "sentence_bert_config.json";
  server.answers = { [optional]: page() };
  assert.equal(
    (await fails(session)).message,
    `embedder: ${optional}: ${SITE}${optional} was answered with a page of HTML and status 200`,
  );
  const everything = {
    [optional]: page(),
    "framebatch-no-such-file.json": page(),
  };
  server.answers = everything;
  assert.equal((await load(session)).info.maxTokens, 16);
  server.answers = { ...everything, "config.json": page() };
  assert.match((await fails(session)).message, /config.json is missing/);
  // The whole set is kept all the same.
  server.answers = everything;
  await load(session);
  assert.deepEqual(server.names(200), [
    "framebatch-no-such-file.json",
    optional,
  ]);
});

test("a whole set serves while its server is out of reach", async () => {
  const session = await manual();
  await load(session);
  server.files["config.json"] = json({ ...CONFIG, max_position_embeddings: 4 });
  const unreachable = [
    new TypeError("offline"),
    status(503),
    page(500),
    (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        // The model's server is silent for longer than it may be.
        mock.timers.tick(10_000);
      }),
  ];
  const had = [...server.kept.keys()];
  for (const answer of unreachable) {
    mock.timers.enable({ apis: ["setTimeout"] });
    server.answers = { "tokenizer.json": answer };
    const { info } = await load(session);
    mock.timers.reset();
    assert.equal(info.maxTokens, 6, String(answer));
    assert.deepEqual([...server.kept.keys()], had);
  }
  // What was on its way of the new version is given up.
  assert.ok(server.given.includes("config.json"));
  server.answers = {};
  assert.equal((await load(session)).info.maxTokens, 4);
});

test("what a whole set lacks is not there while its server is out of reach, and the set stays", async () => {
  const session = await manual();
  // A reranker needs fewer files than an embedder.
  const rerank = async () => (await session.gpu.reranker(SITE)).dispose();
  await rerank();
  await settled(20);
  const had = [...server.kept.keys()];
  const names = [...server.keptNames(), "config_sentence_transformers.json"];
  const offline = new TypeError("offline");
  server.answers = Object.fromEntries(names.map((name) => [name, offline]));
  await assert.rejects(
    session.gpu.embedder(SITE),
    /is not among the files kept/,
  );
  await settled(20);
  assert.deepEqual([...server.kept.keys()], had);
  await rerank();
});

test("a server that refuses a kept file is heard, and the set stays", async () => {
  const session = await manual();
  await load(session);
  for (const code of [401, 403, 410]) {
    server.answers = { [WEIGHTS]: status(code) };
    const { message } = await fails(session);
    assert.ok(message.includes(`${SITE}${WEIGHTS}`), message);
    assert.ok(message.includes(`status ${code}`), message);
  }
  server.answers = {};
  await load(session);
  assert.deepEqual(server.names(200), []);
});

test("without validators the whole set serves, and nothing is asked", async () => {
  const session = await manual();
  server.validator = "nothing";
  await load(session);
  server.files["config.json"] = json({ ...CONFIG, max_position_embeddings: 4 });
  const { info } = await load(session);
  assert.equal(info.maxTokens, 6);
  assert.deepEqual(server.asked, []);
  const key = [...server.kept.keys()].find((key) => key.endsWith(WEIGHTS));
  const { url } = server.kept.get(key);
  server.kept.set(key, from(url, breaking(server.files[WEIGHTS])()));
  assert.match((await fails(session)).message, /from the browser's cache/);
  assert.equal((await load(session)).info.maxTokens, 4);
  // What the set lacks its server may have.
  server.kept.clear();
  (await session.gpu.reranker(SITE)).dispose();
  await load(session);
  assert.ok(server.asked.some(({ name }) => name === "modules.json"));
});

test("a load that is given up in the middle keeps nothing, and takes nothing", async () => {
  const session = await manual();
  for (const isFirst of [true, false]) {
    if (!isFirst) await load(session);
    const had = [...server.kept.keys()];
    server.files = { ...folder(), "vocab.txt": new TextEncoder().encode("x") };
    server.files["tokenizer.json"] = json({ ...TOKENIZER, truncation: null });
    let stopped;
    server.answers[WEIGHTS] = (signal) => {
      const start = (to) => {
        to.enqueue(folder()[WEIGHTS].slice(0, 300));
        signal.addEventListener("abort", () => {
          stopped = signal.reason;
          to.error(signal.reason);
        });
      };
      return new Response(new ReadableStream({ start }));
    };
    const controller = new AbortController();
    const { signal } = controller;
    const loading = session.gpu.embedder(SITE, { signal });
    await settled(20);
    assert.equal(server.locks.size, 1);
    controller.abort("enough");
    await assert.rejects(loading, (reason) => reason === "enough");
    await settled(20);
    assert.equal(stopped, "enough");
    assert.deepEqual([...server.kept.keys()], had);
    assert.equal(server.locks.size, 0);
    server.files = folder();
    server.answers = {};
  }
});

test("of two loads at once one keeps what it loads", async () => {
  const session = await manual();
  const loads = [SITE, SITE].map((site) => session.gpu.embedder(site));
  for (const embedder of await Promise.all(loads)) {
    await works(session, embedder);
  }
  await settled(20);
  assert.deepEqual(server.keptNames(), Object.keys(server.files).sort());
  await load(session);
  assert.deepEqual(server.names(200), []);
});

test("a set that another load replaced is not written over", async () => {
  const session = await manual();
  await load(session);
  const change = (limit) => {
    server.files["sentence_bert_config.json"] = json({ max_seq_length: limit });
  };
  change(5);
  // The slow load has read the old list when the fast one replaces it.
  const { locks } = navigator;
  let first = true;
  let fast;
  server.stub("navigator", {
    locks: {
      async request(...all) {
        if (first) {
          first = false;
          fast = session.gpu.embedder(SITE);
          await fast;
          await settled(20);
        }
        return locks.request(...all);
      },
    },
  });
  const slow = await session.gpu.embedder(SITE);
  await settled(20);
  assert.deepEqual(
    [slow, await fast].map(({ info }) => info.maxTokens),
    [5, 5],
  );
  assert.deepEqual(server.keptNames(), Object.keys(server.files).sort());
  await load(session);
  assert.deepEqual(server.names(200), []);
});

test("what was asked of a folder that is right costs nothing of what is kept", async () => {
  const session = await manual();
  await load(session);
  const kept = server.keptNames();
  chunk.failures.needs = { code: "invalid-input", message: "too many" };
  assert.match((await fails(session)).message, /too many/);
  assert.deepEqual(server.keptNames(), kept);
  await load(session);
  assert.deepEqual(server.names(200), []);
});

test("a kept file that cannot be read is fetched by the next load", async () => {
  const session = await manual();
  await load(session);
  const key = [...server.kept.keys()].find((key) =>
    key.endsWith("tokenizer.json"),
  );
  const { headers, url } = server.kept.get(key);
  const damaged = from(url, breaking(server.files["tokenizer.json"])());
  Object.defineProperty(damaged, "headers", { value: headers });

  server.kept.set(key, damaged);
  assert.match(
    (await fails(session)).message,
    /tokenizer.json could not be read from the browser's cache \(network error\)/,
  );
  assert.equal(server.kept.size, 0);
  await load(session);
  assert.deepEqual(server.names(200), Object.keys(server.files).sort());
  // A set of which a file is lost is none.
  server.kept.delete(
    [...server.kept.keys()].find((key) => key.endsWith(WEIGHTS)),
  );
  await load(session);
  assert.deepEqual(server.names(200), Object.keys(server.files).sort());
  assert.deepEqual(server.keptNames(), Object.keys(server.files).sort());
});
