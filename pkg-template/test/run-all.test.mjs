// Runs of many items: what becomes of each, and what stops them.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { manual, module, settled, stateOf } from "./face.mjs";

await module("kernels/index");

const f32 = (...values) => new Float32Array(values);
const half = (gpu, signals) => (item, context) => {
  const { signal } = signals ? context : {};
  return gpu.lerp(f32(0), f32(item), 0.5, { signal });
};

/** A session whose core answers inside `flush`, which comes after each turn. */
async function answering() {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  const pump = async (run) => {
    let outcome;
    void run.then((value) => (outcome = value));
    while (outcome === undefined) {
      gpu.flush();
      await settled(1);
    }
    return outcome;
  };
  return { gpu, core, pump };
}

/** Items that settle when the test says so. */
function held() {
  const items = [];
  const work = (item, context) =>
    new Promise((resolve, reject) =>
      items.push({ item, context, resolve, reject }),
    );
  return { items, work };
}

test("items that begin together are one batch, and each has its result in its place", async () => {
  const { gpu, core, pump } = await answering();
  const { results, ms, ...counts } = await pump(
    gpu.runAll([2, 4, 6], half(gpu)),
  );
  const values = results.map(({ status, value }) => [status, [...value]]);
  assert.deepEqual(values, [
    ["fulfilled", [1]],
    ["fulfilled", [2]],
    ["fulfilled", [3]],
  ]);
  assert.deepEqual(counts, { succeeded: 3, failed: 0, skipped: 0, batches: 1 });
  assert.ok(ms >= 0);
  assert.equal(core.counts.flushes, 1);
});

const ITERABLES = [
  ["no items", [], 0],
  ["a set", new Set([1, 2]), 2],
  ["a typed array", f32(1, 2, 3), 3],
  [
    "a generator",
    (function* () {
      yield 1;
    })(),
    1,
  ],
];
for (const [name, items, count] of ITERABLES) {
  test(`${name}: ${count} succeed`, async () => {
    const { gpu, pump } = await answering();
    const { succeeded, results } = await pump(gpu.runAll(items, half(gpu)));
    assert.deepEqual([succeeded, results.length], [count, count]);
  });
}

test("a function may answer at once, and what it throws is its item's error", async () => {
  const { gpu } = await manual();
  const error = new Error("odd");
  const work = (item, { index }) => {
    if (item % 2 === 1) throw error;
    return [item, index];
  };
  const { results, succeeded, failed } = await gpu.runAll([4, 5, 6], work);
  assert.deepEqual(results, [
    { status: "fulfilled", value: [4, 0] },
    { status: "rejected", reason: error },
    { status: "fulfilled", value: [6, 2] },
  ]);
  assert.deepEqual([succeeded, failed], [2, 1]);
});

test("a call that is refused fails alone", async () => {
  const { gpu, pump } = await answering();
  const work = (item) => gpu.lerp(f32(0), new Float32Array(item), 0);
  const { results } = await pump(gpu.runAll([1, 2, 1], work));
  assert.deepEqual(
    results.map(({ status, reason }) => reason?.code ?? status),
    ["fulfilled", "invalid-input", "fulfilled"],
  );
});

for (const most of [1, 2, 5, undefined]) {
  test(`no more than ${most} items at once, in order`, async () => {
    const { gpu } = await manual();
    const { items, work } = held();
    const run = gpu.runAll([0, 1, 2, 3, 4], work, { maxConcurrent: most });
    let done = 0;
    for (; done < 5; done += 1) {
      await settled(1);
      assert.equal(items.length, Math.min(5, done + (most ?? 5)));
      items[done].resolve(done);
    }
    const { results } = await run;
    assert.deepEqual(
      results.map(({ value }) => value),
      [0, 1, 2, 3, 4],
    );
  });
}

test("at the first error nothing begins any more, and what has begun is told to stop", async () => {
  const { gpu } = await manual();
  const { items, work } = held();
  const run = gpu.runAll([0, 1, 2, 3], work, {
    stopOnFirstError: true,
    maxConcurrent: 3,
  });
  const reason = new Error("the first");
  const { signal } = items[2].context;
  items[1].reject(reason);
  await settled(1);
  assert.equal(items.length, 3);
  assert.equal(signal.aborted, true);
  assert.equal(signal.reason.code, "aborted");
  assert.equal(signal.reason.cause, reason);
  // What ends well nevertheless has ended well.
  items[0].resolve("done");
  assert.equal(await stateOf(run), "pending");
  items[2].reject(signal.reason);
  const { results, succeeded, failed, skipped } = await run;
  assert.deepEqual(results, [
    { status: "fulfilled", value: "done" },
    { status: "rejected", reason },
    { status: "skipped" },
    { status: "skipped" },
  ]);
  assert.deepEqual([succeeded, failed, skipped], [1, 1, 2]);
});

test("after an error the others go on, unless it is to stop", async () => {
  const { gpu } = await manual();
  const work = (item) => {
    if (item === 0) throw new Error("the first");
    return item;
  };
  const { succeeded, failed } = await gpu.runAll([0, 1, 2], work, {
    maxConcurrent: 1,
  });
  assert.deepEqual([succeeded, failed], [2, 1]);
});

for (const [name, isGiven, succeeded] of [
  ["calls with the signal are given up", true, 0],
  ["calls without it are answered", false, 2],
]) {
  test(`a signal stops the run: ${name}`, async () => {
    const { gpu, core } = await manual();
    const controller = new AbortController();
    const run = gpu.runAll([2, 4, 6], half(gpu, isGiven), {
      signal: controller.signal,
      maxConcurrent: 2,
    });
    gpu.flush();
    controller.abort(new Error("enough"));
    await settled();
    if (!isGiven) core.answer();
    const outcome = await run;
    assert.equal(outcome.succeeded, succeeded);
    assert.equal(outcome.failed, 0);
    assert.equal(outcome.skipped, 3 - succeeded);
    assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  });
}

test("a signal that has aborted: everything is skipped, and nothing is called", async () => {
  const { gpu } = await manual();
  const { items, work } = held();
  const signal = AbortSignal.abort();
  const { skipped } = await gpu.runAll([1, 2], work, { signal });
  assert.deepEqual([items.length, skipped], [0, 2]);
});

test("an item that fails by itself after a stop has failed", async () => {
  const { gpu } = await manual();
  const { items, work } = held();
  const controller = new AbortController();
  const run = gpu.runAll([1], work, { signal: controller.signal });
  controller.abort();
  items[0].reject(new Error("its own"));
  const { failed, skipped } = await run;
  assert.deepEqual([failed, skipped], [1, 0]);
});

test("the observer hears of each item that settles, as it does", async () => {
  const { gpu } = await manual();
  const { items, work } = held();
  const heard = [];
  const run = gpu.runAll(["a", "b", "c"], work, {
    onSettled: ({ status }, item, index) => heard.push([status, item, index]),
  });
  items[2].resolve();
  await settled(1);
  items[0].reject(new Error("no"));
  await settled(1);
  assert.deepEqual(heard, [
    ["fulfilled", "c", 2],
    ["rejected", "a", 0],
  ]);
  items[1].resolve();
  await run;
  assert.equal(heard.length, 3);
});

test("an observer that throws is reported, and changes nothing", async () => {
  const { gpu } = await manual();
  const reported = [];
  const listeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", ({ message }) => reported.push(message));
  const onSettled = () => {
    throw new Error("not listening");
  };
  const { succeeded } = await gpu.runAll([1, 2], (x) => x, { onSettled });
  await settled();
  process.removeAllListeners("uncaughtException");
  for (const one of listeners) process.on("uncaughtException", one);
  assert.equal(succeeded, 2);
  assert.deepEqual(reported, ["not listening", "not listening"]);
});

test("a session that is disposed of fails what had begun and what begins", async () => {
  const { gpu } = await manual();
  const run = gpu.runAll([1, 2, 3], half(gpu), { maxConcurrent: 2 });
  await gpu.dispose();
  const { results } = await run;
  const codes = results.map(({ reason }) => reason.code);
  assert.deepEqual(codes, ["disposed", "disposed", "disposed"]);
});

const WRONG = [
  ["no items", [undefined, () => {}], "items"],
  ["a number of items", [3, () => {}], "items"],
  ["no function", [[1]], "fn"],
  ["no object", [[1], () => {}, 3], "options"],
  ["another option", [[1], () => {}, { limit: 3 }], "limit"],
  ["none at once", [[1], () => {}, { maxConcurrent: 0 }], "maxConcurrent"],
  ["a half", [[1], () => {}, { maxConcurrent: 1.5 }], "maxConcurrent"],
  ["a word", [[1], () => {}, { stopOnFirstError: "yes" }], "stopOnFirstError"],
  ["no signal", [[1], () => {}, { signal: {} }], "signal"],
  ["no observer", [[1], () => {}, { onSettled: 1 }], "onSettled"],
];
for (const [name, given, said] of WRONG) {
  test(`refused: ${name}`, async () => {
    const { gpu } = await manual();
    await assert.rejects(gpu.runAll(...given), (error) => {
      assert.equal(error.code, "invalid-input");
      assert.match(error.message, new RegExp(said));
      return true;
    });
  });
}
