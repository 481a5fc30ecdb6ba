// A model's folder that changes on its server while the browser keeps an older version.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, settled } from "./face.mjs";
import { json, TOKENIZER } from "./folder.mjs";
import { fails, load, server, WEIGHTS } from "./web-model.mjs";
import { SITE } from "./web-server.mjs";

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
  // The server is asked again about what was fetched, before it is believed.
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
