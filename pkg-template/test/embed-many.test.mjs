// Many texts in and their vectors out: in order, by slices, from any source, and the more
// urgent first.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module, settled } from "./face.mjs";
import { answer, made } from "./embedder-session.mjs";
import { vector } from "./folder.mjs";

const { SliceSize, MOST_TOKENS } = await module("embeddings/priorities");

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
  for (const priority of ["low", "normal", "high"]) {
    let vectors;
    embedder.embedMany(texts.slice(0, 4), { priority }).then((all) => {
      vectors = all;
    });
    await microtasks();
    assert.equal(core.flights.length, 1, priority);
    core.answer();
    await microtasks();
    assert.equal(vectors?.length, 4, priority);
  }
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

test("what is less urgent is begun when nothing more urgent waits", async () => {
  const { gpu, core, embedder } = await made();
  const finished = [];
  const note = (name, promise) => promise.then(() => finished.push(name));
  const urgent = note("high", embedder.embed("a", { priority: "high" }));
  const many = note("low", embedder.embedMany(["b"], { priority: "low" }));
  const normal = note("normal", embedder.embedMany(["c"]));
  await settled();
  const waiting = () =>
    [...core.queued, ...core.flights.flat()].map(({ ticket }) => ticket).length;
  assert.equal(waiting(), 1);
  answer({ gpu, core });
  await urgent;
  await settled();
  assert.equal(waiting(), 1);
  core.answer();
  await normal;
  await settled();
  assert.equal(waiting(), 1);
  core.answer();
  await many;
  assert.deepEqual(finished, ["high", "normal", "low"]);
});

test("slices of low priority get as large as fits a frame or two", () => {
  const size = new SliceSize();
  let now = 0;
  const after = (perToken) => {
    const { tokens } = size;
    const sent = now;
    now += tokens * perToken;
    size.took(tokens, sent, now);
    return size.tokens;
  };
  // 1 M tokens a second: from few on four times as many, until 25 ms or the largest batch.
  const sizes = [size.tokens, ...[0, 1, 2, 3, 4].map(() => after(0.001))];
  assert.deepEqual(sizes, [64, 256, 1024, 4096, MOST_TOKENS, MOST_TOKENS]);
  // A slow device: at once as few as it needs.
  assert.equal(after(1), 25);
  // One that hardly moves still gets a text at a time.
  for (let i = 0; i < 5; i += 1) after(100);
  assert.equal(size.tokens, 1);
  // Two on their way: the second one's time begins with the first one's end.
  const two = new SliceSize();
  two.took(1024, 0, 10);
  two.took(1024, 0, 20);
  assert.equal(two.tokens, 2560);
});
