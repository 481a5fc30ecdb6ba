// Many texts in and their vectors out: in order, by slices, from any source and of any
// priority.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module, settled } from "./face.mjs";
import { made } from "./embedder-session.mjs";
import { vector } from "./folder.mjs";

const { MOST_TOKENS } = await module("embeddings/embed-many");

test("many texts come back in their order, by slices and with progress", async () => {
  const { core, embedder } = await made();
  core.answersAtOnce = true;
  const texts = Array.from({ length: 10_000 }, (_, i) => "abcd"[i % 4]);
  const heard = [];
  const { flushes } = core.counts;
  const vectors = await embedder.embedMany(texts, {
    onProgress: (progress) => heard.push(progress),
  });
  assert.equal(vectors.length, 10_000);
  vectors.forEach((array, i) =>
    assert.deepEqual(array, vector(2, 4 + (i % 4), 3)),
  );
  // 5,461 texts of 3 tokens are the most that 16,384 tokens hold.
  assert.deepEqual(heard, [
    { done: 5461, total: 10_000, tokens: 16_383 },
    { done: 10_000, total: 10_000, tokens: 30_000 },
  ]);
  assert.ok(core.counts.flushes - flushes >= 2);
});

test("an array of texts waits for no task but its answer's", async () => {
  const { gpu, core, embedder } = await made();
  const texts = Array.from({ length: 64 }, (_, i) => "abcd"[i % 4].repeat(i));
  /** Runs what waits for no task. */
  const microtasks = async () => {
    for (let i = 0; i < 2000; i += 1) await undefined;
  };
  let tasks = 0;
  const count = setInterval(() => (tasks += 1), 0);
  let vectors;
  embedder.embedMany(texts.slice(0, 4)).then((all) => {
    vectors = all;
  });
  await microtasks();
  assert.equal(core.flights.length, 1);
  core.answer();
  await microtasks();
  assert.equal(vectors?.length, 4);
  const all = embedder.embedMany(texts).then();
  await microtasks();
  assert.deepEqual([core.flights.length, tasks], [1, 0]);
  clearInterval(count);
  core.answer();
  assert.equal((await all).length, 64);
  await gpu.dispose();
});

test("texts are taken as vectors are, from any source", async () => {
  const { core, embedder } = await made();
  core.answersAtOnce = true;
  let taken = 0;
  let ended = false;
  async function* source() {
    try {
      for (;;) {
        taken += 1;
        yield "a b c d";
      }
    } finally {
      ended = true;
    }
  }
  let got = 0;
  for await (const array of embedder.embedMany(source())) {
    assert.deepEqual(array, vector(2, 4, 5, 6, 7, 3));
    got += 1;
    if (got === 3000) break;
  }
  await settled();
  assert.ok(ended);
  // A slice that is handed over, and three on their way.
  assert.ok(taken < 6 * (MOST_TOKENS / 6), `${taken} texts were taken`);
  const stream = new Blob(["a"]).stream().pipeThrough(
    new TransformStream({
      transform: (bytes, to) => to.enqueue(new TextDecoder().decode(bytes)),
    }),
  );
  assert.deepEqual(await embedder.embedMany(stream), [vector(2, 4, 3)]);
  assert.deepEqual(await embedder.embedMany([]), []);
});

test("a signal ends a source that is waited for, with its reason", async () => {
  const { embedder } = await made();
  const canceled = [];
  const stalled = new ReadableStream(
    {
      pull: (to) => {
        if (canceled.push("pull") === 1) to.enqueue("a");
        else return new Promise(() => {});
      },
      cancel: (reason) => void canceled.push(reason),
    },
    { highWaterMark: 0 },
  );
  const controller = new AbortController();
  const { signal } = controller;
  const many = embedder.embedMany(stalled, { signal }).then();
  await settled();
  controller.abort("enough");
  await assert.rejects(many, (reason) => reason === "enough");
  assert.deepEqual(canceled, ["pull", "pull", "enough"]);
  assert.equal(stalled.locked, false);
});

test("a text that is wrong rejects at its place, and a signal at once", async () => {
  const { gpu, core, embedder } = await made();
  core.answersAtOnce = true;
  const got = [];
  await assert.rejects(
    async () => {
      for await (const array of embedder.embedMany(["a", "b", 3, "c"]))
        got.push(array);
    },
    {
      code: "invalid-input",
      message: "embedMany: text 2: a text must be a string, got number",
    },
  );
  assert.deepEqual(got, [vector(2, 4, 3), vector(2, 5, 3)]);
  core.answersAtOnce = false;
  const controller = new AbortController();
  const { signal } = controller;
  const many = embedder.embedMany(["a", "b"], { signal }).then();
  await settled();
  assert.equal(core.flights.length, 1);
  controller.abort("enough");
  await assert.rejects(many, (reason) => reason === "enough");
  core.answer();
  const options = [
    [null, "options must be an object, got null"],
    [{ size: 1 }, "there is no option 'size'"],
    [{ priority: 1 }, "priority must be 'high', 'normal' or 'low', got '1'"],
    [{ onProgress: 1 }, "onProgress must be a function, got number"],
  ];
  for (const [wrong, message] of options) {
    assert.throws(() => embedder.embedMany(["a"], wrong), {
      code: "invalid-input",
      message: new RegExp(message),
    });
  }
  assert.throws(() => embedder.embedMany("a"), /source must be an array/);
  await gpu.dispose();
  assert.throws(() => embedder.embedMany(["a"]), { code: "disposed" });
});

test("texts have the priority that was asked for, and slices of low ones need no flush", async () => {
  const { core, embedder } = await made();
  for (const [name, expected] of [
    [undefined, { queued: 0, flights: 1, high: 0, low: 0 }],
    ["high", { queued: 0, flights: 0, high: 2, low: 0 }],
    ["low", { queued: 0, flights: 0, high: 0, low: 2 }],
  ]) {
    const options = name === undefined ? {} : { priority: name };
    const all = embedder.embedMany(["a", "b"], options).then();
    for (let i = 0; i < 200; i += 1) await undefined;
    const found = Object.keys(expected).map((list) => [
      list,
      core[list].length,
    ]);
    assert.deepEqual(Object.fromEntries(found), expected, name);
    await settled();
    core.answer();
    assert.deepEqual(await all, [vector(2, 4, 3), vector(2, 5, 3)]);
  }
});

test("low texts go slice by slice, as the core cuts them", async () => {
  const { core, embedder } = await made();
  core.slice = 2;
  core.answersAtOnce = true;
  const texts = ["a", "b", "c", "a b", "b c"];
  const before = core.batch;
  const vectors = await embedder.embedMany(texts, { priority: "low" });
  assert.deepEqual([vectors.length, core.batch - before], [5, 3]);
});
