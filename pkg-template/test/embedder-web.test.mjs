// Folders on the web: what is asked of servers, and what is told of their answers. What is
// kept of a folder is in embedder-cache.test.mjs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { manual } from "./face.mjs";
import { folder, json, WORDS } from "./folder.mjs";
import {
  breaking,
  fails,
  load,
  server,
  status,
  WEIGHTS,
} from "./web-model.mjs";
import { SITE } from "./web-server.mjs";

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
  /** A page sees the length of a file of another origin, but not how it is compressed. */
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
  // What is refused leaves nothing behind on the caller's signal.
  const { signal } = new AbortController();
  let listeners = 0;
  signal.addEventListener = () => (listeners += 1);
  signal.removeEventListener = () => (listeners -= 1);
  for (const source of ["http://", {}, 5]) {
    await assert.rejects(gpu.embedder(source, { signal }));
    assert.equal(listeners, 0, String(source));
  }
  // A query is no part of a folder's address.
  await gpu.embedder(`${SITE}?version=2#top`);
});
