// A text in and a vector out: who shares what, and what is refused. Many texts at once are
// in embed-many.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { chunk, fake, manual, settled, stateOf } from "./face.mjs";
import { answer, made } from "./embedder-session.mjs";
import { folder, json, vector } from "./folder.mjs";

test("texts of any lengths are one batch, each with its own vector", async () => {
  const { gpu, core, embedder } = await made();
  const { flushes, submits } = core.counts;
  const texts = { a: [4], "b c": [5, 6], "": [], "d d d": [7, 7, 7] };
  const vectors = Object.keys(texts).map((text) => embedder.embed(text));
  answer({ gpu, core });
  for (const [i, ids] of Object.values(texts).entries()) {
    assert.deepEqual(await vectors[i], vector(2, ...ids, 3));
  }
  assert.equal(core.counts.flushes - flushes, 1);
  assert.equal(core.counts.submits - submits, 4);
  // A call counts for its tokens.
  const ids = await Promise.all([
    embedder.embedIds([2, 4, 3]),
    embedder.embedIds(Uint32Array.of(2, 3)),
    embedder.embedIds(Int32Array.of(7)),
    (answer({ gpu, core }), 0),
  ]);
  assert.deepEqual(ids.slice(0, 3), [vector(2, 4, 3), vector(2, 3), vector(7)]);
});

test("tokens and files may be of another realm", async () => {
  const realm = runInNewContext(
    "({ Uint32Array, Int32Array, Uint8Array, Map, Array })",
  );
  const files = new realm.Map();
  for (const [name, bytes] of Object.entries(folder())) {
    const own = realm.Uint8Array.from(bytes);
    files.set(name, name === "tokenizer.json" ? own.buffer : own);
  }
  files.set("config.json", new File([folder()["config.json"]], "config.json"));
  const { gpu, core } = await manual();
  const embedder = await gpu.embedder(files);
  const calls = [
    embedder.embedIds(realm.Uint32Array.of(2, 4, 3)),
    embedder.embedIds(realm.Int32Array.of(7)),
    embedder.embedIds(realm.Array.of(2, 3)),
  ];
  answer({ gpu, core });
  assert.deepEqual(await Promise.all(calls), [
    vector(2, 4, 3),
    vector(7),
    vector(2, 3),
  ]);
});

test("a length is asked for once, and given up after many others", async () => {
  const { core, gpu, embedder } = await made({
    "sentence_bert_config.json": json({ max_seq_length: 16 }),
  });
  const { length } = chunk.asked;
  for (const text of ["a", "b", "a b", "c"]) {
    void embedder.embed(text);
    answer({ gpu, core });
  }
  assert.deepEqual(chunk.asked.slice(length), [3, 4]);
  const known = () => core.structures.filter(Boolean).length;
  // One more call: loading compiled the kernels by it.
  assert.equal(known(), 3);
  embedder.dispose();
  assert.equal(known(), 0);
});

test("calls carry their tokens as what they count for", async () => {
  const { core, embedder } = await made();
  void embedder.embed("a b c");
  void embedder.embedIds([1]);
  assert.deepEqual(
    core.queued.map(({ rows }) => rows),
    [5, 1],
  );
});

test("equal texts are computed once, and each caller has its own array", async () => {
  const { gpu, core, embedder } = await made();
  const into = new Float32Array(4);
  const first = embedder.embed("a");
  const others = [
    embedder.embed("a", { label: "mine" }),
    embedder.embed("a", { into }),
    embedder.embed("a", { priority: "normal" }),
  ];
  // What may differ, or be told of by itself, is a call of its own.
  const own = [
    embedder.embed("a", { engine: "cpu" }),
    embedder.embed("a", { onMetrics: () => {} }),
    embedder.embed("a ", {}),
  ];
  assert.equal(core.queued.length, 4);
  const spoiled = first.then((array) => array.fill(0));
  answer({ gpu, core });
  await spoiled;
  const arrays = await Promise.all([...others, ...own]);
  for (const array of arrays) assert.deepEqual(array, vector(2, 4, 3));
  assert.equal(arrays[1], into);
  assert.equal(new Set(arrays).size, 6);
  // What was answered is not kept.
  void embedder.embed("a");
  assert.equal(core.queued.length, 1);
});

test("an urgent text does not wait for an equal one that is less so", async () => {
  const { gpu, core, embedder } = await made();
  const asked = [{ priority: "low" }, {}, { priority: "high" }];
  const calls = [...asked, ...asked].map((options) =>
    embedder.embed("a", options),
  );
  const { low, queued, high } = core;
  assert.deepEqual(
    [low, queued, high].map(({ length }) => length),
    [1, 1, 1],
  );
  await settled();
  answer({ gpu, core });
  core.answer();
  core.answer();
  for (const array of await Promise.all(calls))
    assert.deepEqual(array, vector(2, 4, 3));
});

test("who gives up takes nothing from those who asked the same", async () => {
  const { gpu, core, embedder } = await made();
  const [leader, follower] = [new AbortController(), new AbortController()];
  const calls = [leader, follower].map(({ signal }) =>
    embedder.embed("a", { signal }),
  );
  const third = embedder.embed("a");
  follower.abort("not me");
  await assert.rejects(calls[1], (reason) => reason === "not me");
  leader.abort("nor me");
  await assert.rejects(calls[0], (reason) => reason === "nor me");
  answer({ gpu, core });
  assert.deepEqual(await third, vector(2, 4, 3));
  const late = embedder.embed("a", { signal: leader.signal });
  await assert.rejects(late, (reason) => reason === "nor me");
});

test("an into that is gone when its text is answered rejects its caller alone", async () => {
  const { gpu, core, embedder } = await made();
  const lost = new Float32Array(4);
  const grown = new Float32Array(new ArrayBuffer(16, { maxByteLength: 64 }));
  const calls = [
    embedder.embed("a"),
    embedder.embed("a", { into: lost, label: "mine" }),
    embedder.embed("a", { into: grown }),
    embedder.embed("a"),
  ];
  structuredClone(lost.buffer, { transfer: [lost.buffer] });
  grown.buffer.resize(32);
  answer({ gpu, core });
  const states = await Promise.all(calls.map(stateOf));
  const message =
    "into was detached or resized while the call was pending; keep it until the promise settles";
  assert.deepEqual(
    states.map(({ value, reason }) => reason?.message ?? value),
    [
      vector(2, 4, 3),
      `embed (label 'mine'): ${message}`,
      `embed: ${message}`,
      vector(2, 4, 3),
    ],
  );
  assert.equal(states[1].reason.code, "invalid-input");
});

test("what fails fails for each who asked", async () => {
  const { gpu, core, embedder } = await made();
  const calls = [embedder.embed("a"), embedder.embed("a")];
  calls.forEach((call) => call.catch(() => {}));
  gpu.flush();
  core.answer({ failure: { code: "out-of-memory", message: "full" } });
  await assert.rejects(calls[0], { code: "out-of-memory" });
  // The second one asked again, by itself.
  gpu.flush();
  core.answer({ failure: { code: "limit-exceeded", message: "no" } });
  await assert.rejects(calls[1], { code: "limit-exceeded" });
});

test("a plan is made of texts, whoever waits for them", async () => {
  const { gpu, core, embedder } = await made();
  const waiting = embedder.embed("a");
  const text = gpu.explain(() => {
    embedder.embed("a").catch(() => {});
    embedder.embed("a").catch(() => {});
  });
  assert.equal(text, "chain 3\nchain 3");
  await settled();
  assert.equal(core.queued.length, 1);
  answer({ gpu, core });
  await waiting;
});

const LIMITED = "the text has 7 tokens, but the model takes 6; split it";

test("texts and tokens that are wrong are refused in a sentence", async () => {
  const { core, embedder } = await made({
    "config_sentence_transformers.json": json({ prompts: { query: "a " } }),
  });
  const half = "half of a surrogate pair";
  const list =
    "ids must be a Uint32Array, an Int32Array or an array of numbers";
  const cases = [
    [["embed"], "embed: a text must be a string, got undefined"],
    [["embed", ["a"]], "embed: a text must be a string, got Array"],
    [["embed", "a\ud800"], half],
    [
      ["embed", "\udc00\ud800 a", { label: "x" }],
      `embed (label 'x'): the text has ${half}`,
    ],
    [["embed", "a a a a a", { truncate: false }], LIMITED],
    [["embed", "a a a a", { truncate: false, prompt: "query" }], LIMITED],
    [
      ["embed", "a", { truncate: 1 }],
      "truncate must be true or false, got number",
    ],
    [
      ["embed", "a", { prompt: "passage" }],
      "prompt must be one of the model's (query), got 'passage'",
    ],
    [
      ["embed", "a", { priority: "urgent" }],
      "priority must be 'high', 'normal' or 'low', got 'urgent'",
    ],
    [
      ["embed", "a", { speed: 1 }],
      "there is no option 'speed'; the options are prompt, truncate, signal",
    ],
    [["embed", "a", null], "options must be an object, got null"],
    [
      ["embed", "a", { deadlineMs: "x" }],
      "deadlineMs must be a number from 0, got x",
    ],
    [
      ["embed", "a", { into: new Float32Array(3) }],
      "into has 3 elements, but the result has 4",
    ],
    [["embed", "a", { into: [] }], "into must be a Float32Array, got Array"],
    [["embedIds", "1 2"], `${list}, got string`],
    [["embedIds", new Float32Array(2)], `${list}, got Float32Array`],
    [["embedIds", []], "a text has 1 to 6 tokens for this model, got 0"],
    [
      ["embedIds", [1, 2, 3, 4, 5, 6, 7]],
      "a text has 1 to 6 tokens for this model, got 7",
    ],
    [["embedIds", [1, 8]], "ids[1] must be a whole number below 8, got 8"],
    [
      ["embedIds", Int32Array.of(-1)],
      "ids[0] must be a whole number below 8, got -1",
    ],
    [["embedIds", [0.5]], "ids[0] must be a whole number below 8, got 0.5"],
    [["embedIds", [1], { prompt: "query" }], "there is no option 'prompt'"],
  ];
  for (const [[method, ...args], message] of cases) {
    const call = embedder[method](...args);
    await assert.rejects(call, (error) => {
      assert.equal(error.code, "invalid-input");
      assert.ok(error.message.startsWith(method), error.message);
      assert.ok(error.message.includes(message), error.message);
      return true;
    });
  }
  assert.equal(core.queued.length, 0);
  // A caller that shares another caller's answer may not write to it either.
  embedder.embed("a").catch(() => {});
  const signal = embedder.embed("a", { signal: "x" });
  await assert.rejects(signal, /signal must be an AbortSignal, got string/);
});

test("a text is cut as the model says, and has the prompt that it is given", async () => {
  const { gpu, core, embedder } = await made({
    "config_sentence_transformers.json": json({
      prompts: { query: "a ", passage: "b " },
      default_prompt_name: "passage",
    }),
  });
  assert.deepEqual(embedder.info.prompts, ["query", "passage"]);
  const calls = [
    embedder.embed("c c c c c c c"),
    embedder.embed("c", { prompt: "query" }),
    embedder.embed("c"),
  ];
  answer({ gpu, core });
  assert.deepEqual(await Promise.all(calls), [
    vector(2, 5, 6, 6, 6, 3),
    vector(2, 4, 6, 3),
    vector(2, 5, 6, 3),
  ]);
});

test("the ids of a text are those that embedding takes", async () => {
  const { core, embedder } = await made({
    "config_sentence_transformers.json": json({
      prompts: { query: "a " },
    }),
  });
  assert.deepEqual(embedder.ids("c"), Uint32Array.of(2, 6, 3));
  const prompted = embedder.ids("c d d d d d", { prompt: "query" });
  assert.deepEqual(prompted, Uint32Array.of(2, 4, 6, 7, 7, 3));
  assert.equal(core.queued.length, 0);
  const cases = [
    [["a a a a a", { truncate: false }], `ids: ${LIMITED}`],
    [[5], "ids: a text must be a string, got number"],
    [["a", { prompt: "passage" }], "ids: prompt must be one of the model's"],
    [["a", { label: "x" }], "ids: there is no option 'label'"],
    [["a", null], "ids: options must be an object, got null"],
  ];
  for (const [args, message] of cases) {
    assert.throws(
      () => embedder.ids(...args),
      (error) =>
        error.code === "invalid-input" && error.message.startsWith(message),
    );
  }
  embedder.dispose();
  assert.throws(() => embedder.ids("a"), { code: "disposed" });
});

test("an embedder that is disposed of answers what was asked", async () => {
  const { gpu, core, embedder } = await made();
  const { freed } = chunk;
  const pending = embedder.embed("a");
  embedder.dispose();
  embedder.dispose();
  assert.equal(core.tensors.size, 3);
  answer({ gpu, core });
  assert.deepEqual(await pending, vector(2, 4, 3));
  assert.equal(core.tensors.size, 0);
  assert.equal(chunk.freed - freed, 2);
  for (const call of [embedder.embed("a"), embedder.embedIds([1])]) {
    await assert.rejects(call, {
      code: "disposed",
      message: /the embedder is disposed; make it anew/,
    });
  }
  assert.throws(() => embedder.embedMany([]), { code: "disposed" });
});

test("what still waits to be called when an embedder is disposed of rejects", async () => {
  const { gpu, core, embedder } = await made();
  const { freed } = chunk;
  const leader = new AbortController();
  const calls = [
    embedder.embed("a", { signal: leader.signal }),
    embedder.embed("a"),
  ];
  for (const call of calls) call.catch(() => {});
  const pending = embedder.embed("c");
  await settled();
  embedder.dispose();
  leader.abort("enough");
  answer({ gpu, core });
  assert.deepEqual(await pending, vector(2, 6, 3));
  const [first, ...others] = await Promise.all(calls.map(stateOf));
  assert.equal(first.reason, "enough");
  for (const { reason } of others) {
    assert.equal(reason?.code, "disposed");
    assert.match(reason.message, /^embed\w*: the embedder is disposed/);
  }
  assert.deepEqual([core.tensors.size, chunk.freed - freed], [0, 2]);
});

test("a session that ends ends its embedders' calls", async () => {
  const { gpu, embedder } = await made();
  const calls = [embedder.embed("a"), embedder.embed("a")];
  await gpu.dispose();
  for (const call of [...calls, embedder.embed("b")]) {
    await assert.rejects(call, { code: "disposed" });
  }
  embedder.dispose();
});

test("an embedder says where it runs", async () => {
  for (const engine of ["gpu", "cpu"]) {
    fake.device = { engine, software: true };
    const { embedder } = await made();
    assert.equal(embedder.info.engine, engine);
    assert.equal(await stateOf(embedder.embed("a")), "pending");
  }
  fake.device = undefined;
});
