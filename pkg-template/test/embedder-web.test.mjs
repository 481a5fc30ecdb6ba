// Folders on the web: what servers answer, and what is kept in the browser's cache.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, mock, test } from "node:test";
import { manual, module, settled } from "./face.mjs";
import { CONFIG, folder, json, TOKENIZER, vector, WORDS } from "./folder.mjs";
import { from, SITE, webServer } from "./web-server.mjs";

await module("embeddings/index");

let server;
beforeEach(() => (server = webServer(folder())));
afterEach(() => server.restore());

const WEIGHTS = "model.safetensors";

/** The page of a server for applications. */
const page = (status = 200) => {
  const headers = { "content-type": "text/html; charset=utf-8" };
  return () => new Response("<!doctype html>", { headers, status });
};
const status = (status) => () => new Response("", { status });
/** A body that ends early. */
const breaking = (bytes) => () => {
  const start = (to) => to.enqueue(bytes.slice(0, 9));
  const pull = (to) => to.error(new TypeError("network error"));
  const how = { highWaterMark: 0 };
  return new Response(new ReadableStream({ start, pull }, how));
};

/** What the embedder says of "a": the model works. */
async function works({ gpu, core }, embedder) {
  const result = embedder.embed("a");
  gpu.flush();
  core.answer();
  const floats = await result;
  assert.equal(floats.length, 4);
  return floats;
}

/** Loads the folder, tries the model, and lets the cache finish. */
async function load(session, options) {
  server.asked = [];
  server.given = [];
  const embedder = await session.gpu.embedder(SITE, options);
  await works(session, embedder);
  await settled(20);
  assert.equal(server.locks.size, 0);
  return embedder;
}

/** The same for a load that fails; its error. */
async function fails(session, options) {
  server.asked = [];
  server.given = [];
  const tensors = session.core.tensors.size;
  const error = await session.gpu.embedder(SITE, options).then(
    () => assert.fail("it loaded"),
    (error) => error,
  );
  await settled(20);
  assert.equal(session.core.tensors.size, tensors);
  assert.equal(server.locks.size, 0);
  assert.equal(error.name, "FramebatchError", error.stack);
  assert.equal(error.code, "invalid-input", error.message);
  return error;
}

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
    const lacks = ["config_sentence_transformers.json"];
    assert.deepEqual(server.names(304), has);
    assert.deepEqual(server.names(404), lacks);
    assert.equal(server.asked.length, has.length + 1);
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
});

test("of another origin the browser's cache asks, and what is unchanged is not read", async () => {
  const session = await manual();
  server.isOwn = false;
  await load(session);
  await load(session);
  for (const { cache, headers } of server.asked) {
    assert.deepEqual([cache, headers], ["no-cache", {}]);
  }
  assert.deepEqual(server.names(200), server.given.sort());
  assert.ok(server.given.includes(WEIGHTS));
});

test("what changed is fetched, and the rest is not", async () => {
  const session = await manual();
  await load(session);
  const had = server.keptNames();
  const before = new Set(server.kept.keys());
  server.files["tokenizer.json"] = json({
    ...TOKENIZER,
    added_tokens: [{ content: "[X]", id: 7 }],
  });
  await load(session);
  assert.deepEqual(server.names(200), ["tokenizer.json"]);
  // What is no longer of the set is gone.
  assert.deepEqual(server.keptNames(), had);
  const fresh = [...server.kept.keys()].filter((key) => !before.has(key));
  assert.equal(fresh.length, 1);
  await load(session);
  assert.deepEqual(server.names(200), []);
});

test("of a new version what has no validator is fetched as well", async () => {
  const session = await manual();
  const bare = (name) => () => new Response(server.files[name]);
  server.answers = { [WEIGHTS]: bare(WEIGHTS) };
  await load(session);
  await load(session);
  assert.deepEqual(server.names(200), []);
  server.files["sentence_bert_config.json"] = json({ max_seq_length: 5 });
  assert.equal((await load(session)).info.maxTokens, 5);
  // And what was fetched is asked for again before it is believed.
  assert.deepEqual(server.names(200), [WEIGHTS, "sentence_bert_config.json"]);
});

test("a new version that is no model leaves the set that was", async () => {
  const session = await manual();
  await load(session);
  const had = [...server.kept.keys()];
  const good = server.files;
  const wrong = [
    { "config.json": json({}) },
    { [WEIGHTS]: good[WEIGHTS].slice(0, -3) },
    { "vocab.txt": undefined, "tokenizer.json": json([]) },
    // A version of which not every file can be had.
    {
      "modules.json": json([
        { type: "Transformer" },
        { type: "Pooling", path: "2_Pooling" },
      ]),
    },
  ];
  for (const change of wrong) {
    server.files = { ...good, ...change };
    await fails(session);
    assert.deepEqual([...server.kept.keys()], had);
  }
  server.answers = { "config.json": new TypeError("offline") };
  await load(session);
});

test("files that change while they are read fail the load, and are not kept", async () => {
  const session = await manual();
  const deploy = () => {
    server.files["tokenizer.json"] = json({ ...TOKENIZER, truncation: null });
  };
  const { answers } = server;
  answers[WEIGHTS] = () => {
    // The weights arrive when the tokenizer was read.
    const start = async (to) => {
      await settled(20);
      deploy();
      to.enqueue(server.files[WEIGHTS].slice());
      to.close();
    };
    return new Response(new ReadableStream({ start }), {
      headers: { etag: '"w"' },
    });
  };
  const { message } = await fails(session);
  assert.equal(
    message,
    `embedder: tokenizer.json changed at ${SITE} while the model was loaded; load it again`,
  );
  assert.equal(server.kept.size, 0);
  server.answers = {};
  await load(session);
  // Where nobody can say so any more, what was read is a model.
  server.kept.clear();
  server.answers = {
    [WEIGHTS]: () => {
      server.answers = { [WEIGHTS]: new TypeError("offline") };
      return new Response(server.files[WEIGHTS], { headers: { etag: '"w"' } });
    },
  };
  await load(session);
  assert.ok(server.keptNames().includes(WEIGHTS));
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

test("what servers answer is told by file and address", async () => {
  const session = await manual();
  const cases = [
    ["config.json", status(404), "config.json is missing"],
    [
      "config.json",
      status(500),
      `config.json: ${SITE}config.json was answered with status 500`,
    ],
    [
      WEIGHTS,
      new TypeError("refused"),
      `${WEIGHTS} could not be fetched from ${SITE}${WEIGHTS} (refused)`,
    ],
  ];
  for (const [name, answer, message] of cases) {
    server.answers = { [name]: answer };
    const error = await fails(session);
    assert.ok(error.message.includes(message), error.message);
    assert.equal(server.kept.size, 0);
  }
});

test("a compressed file of another origin is no truncated one", async () => {
  const session = await manual();
  const whole = server.files[WEIGHTS];
  /** Of another origin how a file is compressed is not to be seen, but its length is. */
  const compressed = (bytes) => () => {
    const response = new Response(bytes, {
      headers: { "content-length": bytes.length >> 1 },
    });
    return Object.defineProperty(response, "type", { value: "cors" });
  };
  server.answers[WEIGHTS] = compressed(whole);
  const heard = [];
  const onProgress = (progress) => heard.push(progress);
  const options = { cache: false, onProgress };
  await load(session, options);
  const { length } = whole;
  assert.deepEqual(heard.at(-1), { loaded: length, total: length });
  server.answers[WEIGHTS] = compressed(whole.slice(0, -3));
  assert.match((await fails(session, options)).message, /it is truncated/);
  server.answers[WEIGHTS] = compressed(Uint8Array.of(...whole, 0));
  assert.match((await fails(session, options)).message, /there is more behind/);
});

test("what breaks off on its way is told so", async () => {
  const session = await manual();
  for (const name of ["tokenizer.json", WEIGHTS]) {
    server.answers = { [name]: breaking(server.files[name]) };
    assert.equal(
      (await fails(session)).message,
      `embedder: ${name} broke off on its way from ${SITE}${name} (network error)`,
    );
    assert.equal(server.kept.size, 0);
  }
});

test("a wrong file ends the request of the others", async () => {
  const session = await manual();
  let stopped = false;
  server.answers[WEIGHTS] = (signal) => {
    const start = (to) =>
      signal.addEventListener("abort", () => {
        stopped = true;
        to.error(signal.reason);
      });
    return new Response(new ReadableStream({ start }));
  };
  server.files["config.json"] = json({});
  assert.match((await fails(session)).message, /model_type must be a string/);
  assert.ok(stopped);
});

test("a file that is read twice is asked for once", async () => {
  const session = await manual();
  const words = new TextEncoder().encode(WORDS.join("\n"));
  server.files["vocab.txt"] = words;
  server.files["tokenizer_config.json"] = json({ model_max_length: 9 });
  for (const name of ["tokenizer.json", "sentence_bert_config.json"]) {
    delete server.files[name];
  }
  const { info } = await load(session);
  assert.equal(info.maxTokens, 9);
  const name = "tokenizer_config.json";
  const whole = server.asked.filter(
    (request) => request.name === name && request.status === 200,
  );
  assert.equal(whole.length, 1);
});

/** The table of the native tests. */
const PATHS = JSON.parse(
  readFileSync(new URL("../../tests/data/paths.json", import.meta.url), "utf8"),
);

test("only addresses below a folder are asked for", async () => {
  const session = await manual();
  const modules = (path) => {
    const kinds = { Transformer: "", Pooling: path };
    return json(Object.entries(kinds).map(([type, path]) => ({ type, path })));
  };
  const name = "1_Pooling/config.json";
  const pooling = server.files[name];
  const options = { cache: false };
  for (const path of PATHS.refused) {
    server.files = folder({ "modules.json": modules(path) });
    const { message } = await fails(session, options);
    assert.ok(
      message.startsWith("embedder: modules.json: [1]: path must"),
      message,
    );
    for (const { address } of server.asked) {
      assert.ok(address.startsWith(SITE), address);
    }
  }
  for (const path of PATHS.taken) {
    server.files = folder({ "modules.json": modules(path), [name]: undefined });
    server.files[`${path}/config.json`] = pooling;
    (await load(session, options)).dispose();
  }
});

test("what is no address of a folder is refused", async () => {
  const { gpu } = await manual();
  for (const source of ["data:application/json,{}", "http://", "mailto:a@b"]) {
    await assert.rejects(gpu.embedder(source), {
      name: "FramebatchError",
      code: "invalid-input",
      message: `embedder: '${source}' is no address of a folder`,
    });
  }
  // A query is no part of a folder's address.
  await gpu.embedder(`${SITE}?version=2#top`);
});
