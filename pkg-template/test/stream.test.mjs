// Streams: order, depth, and what becomes of everything when one ends early.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual, module, settled } from "./face.mjs";

const { bytesOf, depthFor } = await module("stream/depth");

const unhandled = [];
const warnings = [];
process.on("warning", (warning) => warnings.push(warning.name));
process.on("unhandledRejection", (reason) => unhandled.push(reason));

/** What a promise has come to, after all that is due; undefined while it waits. */
async function stateOf(promise) {
  let state;
  promise.then(
    (value) => (state = { value }),
    (reason) => (state = { reason }),
  );
  await settled();
  return state;
}

/** A session whose core answers inside `flush`, and that never flushes by itself. */
async function answering() {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  return { gpu, core };
}

const chunk = (value, floats = 4) => new Float32Array(floats).fill(value);
const double = (gpu) => (values, context) =>
  gpu.lerp(new Float32Array(values.length), values, 2, {
    signal: context.signal,
  });

async function collect(results) {
  const seen = [];
  for await (const result of results) seen.push(result[0]);
  return seen;
}

/** What a stream gives until it throws, and what it throws. */
async function untilError(results) {
  const seen = [];
  try {
    for await (const result of results) seen.push(result[0] ?? result);
  } catch (error) {
    return { seen, error };
  }
  return { seen };
}

/** Chunks 0, 1, 2 … and what the loop over them did. */
function counter(end = Infinity) {
  const log = { pulled: 0, returned: 0, canceled: undefined };
  const next = () => {
    if (log.pulled === end) return { done: true, value: undefined };
    log.pulled += 1;
    return { done: false, value: chunk(log.pulled - 1) };
  };
  const finish = () => {
    log.returned += 1;
    return { done: true, value: undefined };
  };
  const sync = { next, return: finish, [Symbol.iterator]: () => sync };
  const async = {
    next: async () => next(),
    return: async () => finish(),
    [Symbol.asyncIterator]: () => async,
  };
  const readable = () =>
    new ReadableStream(
      {
        pull(to) {
          const { done, value } = next();
          if (done) to.close();
          else to.enqueue(value);
        },
        cancel(reason) {
          log.returned += 1;
          log.canceled = { reason };
        },
      },
      { highWaterMark: 0 },
    );
  return { log, sync, async, readable };
}

const SOURCES = [
  ["an array", () => [0, 1, 2, 3, 4].map((value) => chunk(value))],
  ["promises", () => [0, 1, 2, 3, 4].map(async (value) => chunk(value))],
  ["an iterable", () => counter(5).sync],
  ["an async iterable", () => counter(5).async],
  ["a ReadableStream", () => counter(5).readable()],
];
for (const [name, source] of SOURCES) {
  for (const depth of [undefined, 1, 3, 100]) {
    test(`${name}, depth ${depth}: every result, in order`, async () => {
      const { gpu, core } = await answering();
      const results = gpu.stream(source(), double(gpu), { depth });
      assert.deepEqual(await collect(results), [0, 2, 4, 6, 8]);
      assert.deepEqual(await results.next(), { done: true, value: undefined });
      assert.equal(core.counts.submits, 5);
      assert.equal(core.counts.aborts, 0);
    });
  }
}

test("no chunks, no results", async () => {
  const { gpu } = await answering();
  assert.deepEqual(await collect(gpu.stream([], double(gpu))), []);
});

test("results that come out of order are handed over in order", async () => {
  const { gpu } = await answering();
  const waits = [30, 1, 20, 5];
  const seen = [];
  const work = async (value, { index }) => {
    await new Promise((done) => setTimeout(done, waits[index]));
    seen.push(value);
    return value;
  };
  const results = gpu.stream([0, 1, 2, 3], work, { depth: 4 });
  const given = [];
  for await (const value of results) given.push(value);
  assert.deepEqual(given, [0, 1, 2, 3]);
  assert.notDeepEqual(seen, given);
});

test("a function may return a plain value, or several calls", async () => {
  const { gpu } = await answering();
  const plain = gpu.stream([1, 2], (value, { index }) => [value * 10 + index]);
  assert.deepEqual(await collect(plain), [10, 21]);
  const several = gpu.stream([chunk(1), chunk(2)], async (values, context) => {
    const [a, b] = await Promise.all([
      double(gpu)(values, context),
      double(gpu)(values, context),
    ]);
    return [a[0] + b[0]];
  });
  assert.deepEqual(await collect(several), [4, 8]);
});

test("nothing is taken before it is asked for, and never more than the depth", async () => {
  const { gpu, core } = await manual();
  const source = counter();
  const results = gpu.stream(source.async, double(gpu), { depth: 3 });
  await settled();
  assert.equal(source.log.pulled, 0);
  const first = results.next();
  await settled();
  assert.equal(source.log.pulled, 3);
  for (const batch of [...core.flights]) core.answer(batch);
  assert.equal((await first).value[0], 0);
  await settled();
  assert.equal(source.log.pulled, 4, "one was handed over");
  await results.return();
  assert.equal(source.log.returned, 1);
});

test("without a depth two are begun, then as many as hold 16 MiB", async () => {
  const { gpu, core } = await manual();
  const source = counter();
  const results = gpu.stream(source.sync, double(gpu));
  const first = results.next();
  await settled();
  assert.equal(source.log.pulled, 2);
  core.answer();
  await first;
  await settled();
  assert.equal(
    source.log.pulled,
    65,
    "64 of 32 bytes, and the one handed over",
  );
  await results.return();
});

test("what depths come to", () => {
  const plenty = () => Infinity;
  const MiB = 1 << 20;
  assert.equal(depthFor(undefined, plenty), 2);
  assert.equal(depthFor(0, plenty), 3);
  assert.equal(depthFor(32, plenty), 64);
  assert.equal(depthFor(MiB, plenty), 16);
  assert.equal(depthFor(100 * MiB, plenty), 3);
  assert.equal(
    depthFor(100 * MiB, () => 2),
    2,
  );
  assert.equal(
    depthFor(100 * MiB, () => 0),
    1,
  );
  const { buffer } = new Float32Array(4);
  assert.equal(bytesOf(new Float32Array(3)), 12);
  assert.equal(bytesOf(buffer), 16);
  assert.equal(bytesOf([buffer, new Uint8Array(3), "x"]), 19);
  assert.equal(bytesOf({ a: buffer, b: 1, c: null }), 16);
  for (const other of [null, undefined, 3, "text"])
    assert.equal(bytesOf(other), 0);
});

test("calls of a stream wait for no frame, and those after it do", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  await collect(gpu.stream([chunk(1), chunk(2)], double(gpu)));
  const flushes = core.counts.flushes;
  const later = gpu.lerp(chunk(0), chunk(1), 0.5);
  assert.equal(await stateOf(later), undefined);
  assert.equal(core.counts.flushes, flushes);
  gpu.flush();
  await later;
});

test("small chunks of one task are one batch, a large one is sent at once", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  const small = [1, 2, 3, 4].map((value) => chunk(value));
  await collect(gpu.stream(small, double(gpu), { depth: 4 }));
  assert.equal(core.counts.flushes, 1);
  const large = [1, 2, 3, 4].map((value) => chunk(value, 1 << 18));
  await collect(gpu.stream(large, double(gpu), { depth: 4 }));
  assert.equal(core.counts.flushes, 5);
});

test("a session that is still opening streams as soon as it is open", async () => {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const gpu = face.shared({ flush: "manual" });
  const results = collect(gpu.stream([chunk(1), chunk(2)], double(gpu)));
  await settled();
  open();
  await gpu.ready;
  fake.core.answersAtOnce = true;
  assert.deepEqual(await results, [2, 4]);
  await gpu.dispose();
  fake.opening = Promise.resolve();
});

test("progress: what was handed over, of how many, in bytes", async () => {
  const { gpu } = await answering();
  const heard = [];
  const onProgress = (progress) => heard.push(progress);
  const chunks = [chunk(1, 4), chunk(2, 8)];
  await collect(gpu.stream(chunks, double(gpu), { onProgress }));
  assert.deepEqual(heard, [
    { done: 1, total: 2, bytes: 16 },
    { done: 2, total: 2, bytes: 48 },
  ]);
  heard.length = 0;
  await collect(gpu.stream(counter(1).async, double(gpu), { onProgress }));
  assert.deepEqual(heard, [{ done: 1, total: undefined, bytes: 16 }]);
});

test("an error of the progress listener ends the stream", async () => {
  const { gpu } = await answering();
  const source = counter();
  const onProgress = () => {
    throw new Error("listener");
  };
  const results = gpu.stream(source.async, double(gpu), { onProgress });
  const { seen, error } = await untilError(results);
  assert.deepEqual(seen, []);
  assert.equal(error.message, "listener");
  assert.equal(source.log.returned, 1);
});

const failing = {
  "a generator": function* () {
    yield* [chunk(0), chunk(1), chunk(2)];
    throw new Error("source");
  },
  "an async generator": async function* () {
    yield* [chunk(0), chunk(1), chunk(2)];
    throw new Error("source");
  },
  "a ReadableStream": () => {
    let next = 0;
    return new ReadableStream(
      {
        pull(to) {
          if (next === 3) to.error(new Error("source"));
          else to.enqueue(chunk(next));
          next += 1;
        },
      },
      { highWaterMark: 0 },
    );
  },
};
for (const [name, source] of Object.entries(failing)) {
  for (const depth of [1, 2, 9]) {
    test(`${name} throws midway, depth ${depth}: earlier results stand, then its error`, async () => {
      const { gpu, core } = await answering();
      const results = gpu.stream(source(), double(gpu), { depth });
      const { seen, error } = await untilError(results);
      assert.deepEqual(seen, [0, 2, 4]);
      assert.equal(error.message, "source");
      assert.equal((await results.next()).done, true);
      assert.equal(core.queued.length + core.flights.length, 0);
    });
  }
}

for (const how of ["throws", "rejects"]) {
  for (const depth of [1, 2, 9]) {
    test(`fn ${how}, depth ${depth}: earlier results stand, then its error; the source is cancelled`, async () => {
      const { gpu, core } = await answering();
      const source = counter();
      const work = (values, context) => {
        if (context.index < 2) return double(gpu)(values, context);
        const error = new Error(`chunk ${context.index}`);
        if (how === "throws") throw error;
        return Promise.reject(error);
      };
      const results = gpu.stream(source.async, work, { depth });
      const { seen, error } = await untilError(results);
      assert.deepEqual(seen, [0, 2]);
      assert.equal(error.message, "chunk 2");
      assert.equal(source.log.returned, 1);
      assert.ok(source.log.pulled <= 2 + depth);
      await settled();
      assert.equal(core.queued.length + core.flights.length, 0);
    });
  }
}

test("a call that fails in a batch rejects at its place", async () => {
  const { gpu, core } = await manual();
  const results = gpu.stream([chunk(1), chunk(2), chunk(3)], double(gpu), {
    depth: 3,
  });
  const outcome = untilError(results);
  await settled();
  const second = core.flights[0][1];
  core.answer({
    failure: { code: "out-of-memory", message: "full" },
    only: (call) => call === second,
  });
  const { seen, error } = await outcome;
  assert.deepEqual(seen, [2]);
  assert.equal(error.code, "out-of-memory");
});

for (const make of ["sync", "async", "readable"]) {
  test(`leaving the loop cancels the source (${make}) and gives calls up`, async () => {
    const { gpu, core } = await manual();
    const source = counter();
    const from = make === "readable" ? source.readable() : source[make];
    const results = gpu.stream(from, double(gpu), { depth: 3 });
    const loop = (async () => {
      for await (const result of results) return result[0];
    })();
    await settled();
    core.answer({});
    assert.equal(await loop, 0);
    assert.equal(source.log.returned, 1);
    assert.equal((await results.next()).done, true);
    await settled();
    assert.equal(core.queued.length, 0, "what was queued is given up");
    if (make === "readable") assert.equal(from.locked, false);
  });
}

test("a signal rejects at once, cancels the source with its reason and gives calls up", async () => {
  const { gpu, core } = await manual();
  const source = counter();
  const controller = new AbortController();
  const { signal } = controller;
  const results = gpu.stream(source.readable(), double(gpu), {
    signal,
    depth: 3,
  });
  const next = results.next();
  await settled();
  assert.equal(core.flights.flat().length, 3);
  const reason = new Error("enough");
  controller.abort(reason);
  assert.deepEqual(await stateOf(next), { reason });
  assert.deepEqual(await stateOf(results.next()), { reason });
  assert.equal(source.log.canceled.reason, reason);
  assert.equal(core.counts.aborts, 3);
});

test("a signal also ends a wait for a source that says nothing", async () => {
  const { gpu } = await manual();
  const silent = {
    next: () => new Promise(() => {}),
    [Symbol.asyncIterator]: () => silent,
  };
  const controller = new AbortController();
  const results = gpu.stream(silent, double(gpu), {
    signal: controller.signal,
  });
  const next = results.next();
  await settled();
  controller.abort("enough");
  assert.deepEqual(await stateOf(next), { reason: "enough" });
  const another = gpu.stream(silent, double(gpu));
  const waiting = another.next();
  await settled();
  await another.return();
  assert.equal((await waiting).done, true);
});

test("an aborted signal takes nothing", async () => {
  const { gpu } = await answering();
  const source = counter();
  const signal = AbortSignal.abort("before");
  const { seen, error } = await untilError(
    gpu.stream(source.async, double(gpu), { signal }),
  );
  assert.deepEqual([seen, error], [[], "before"]);
  assert.equal(source.log.pulled, 0);
});

test("a disposed session rejects the stream's calls, and streams no more", async () => {
  const { gpu } = await manual();
  const results = gpu.stream(counter().async, double(gpu));
  const next = results.next();
  await settled();
  await gpu.dispose();
  assert.equal((await stateOf(next)).reason.code, "disposed");
  assert.throws(() => gpu.stream([], double(gpu)), { code: "disposed" });
  assert.throws(() => gpu.transform(double(gpu)), { code: "disposed" });
});

test("several next at once are answered in turn", async () => {
  const { gpu } = await answering();
  const results = gpu.stream([chunk(1), chunk(2)], double(gpu));
  const steps = await Promise.all([1, 2, 3].map(() => results.next()));
  assert.deepEqual(
    steps.map(({ done, value }) => done || value[0]),
    [2, 4, true],
  );
});

const WRONG = [
  ["source", [new Float32Array(4), () => 1], /got Float32Array/],
  ["source", ["text", () => 1], /got string/],
  ["source", [{}, () => 1], /got Object/],
  ["source", [null, () => 1], /got null/],
  ["fn", [[], 3], /fn must be a function, got number/],
  ["options", [[], () => 1, 3], /options must be an object, got number/],
  ["a name", [[], () => 1, { deep: 3 }], /there is no option 'deep'/],
  ["depth", [[], () => 1, { depth: 0 }], /depth must be a whole number/],
  ["depth", [[], () => 1, { depth: 1.5 }], /depth must be a whole number/],
  ["signal", [[], () => 1, { signal: 3 }], /signal must be an AbortSignal/],
  [
    "onProgress",
    [[], () => 1, { onProgress: 3 }],
    /onProgress must be a function/,
  ],
];
for (const [what, args, message] of WRONG) {
  test(`a wrong ${what} throws: ${message}`, async () => {
    const { gpu } = await manual();
    const expected = { code: "invalid-input", message };
    assert.throws(() => gpu.stream(...args), expected);
    if (what !== "source")
      assert.throws(() => gpu.transform(...args.slice(1)), expected);
  });
}

test("transform: pipes chunks through, in order", async () => {
  const { gpu } = await answering();
  const piped = counter(5)
    .readable()
    .pipeThrough(gpu.transform(double(gpu)));
  assert.deepEqual(await collect(piped), [0, 2, 4, 6, 8]);
});

test("transform: is backpressured", async () => {
  const { gpu } = await answering();
  const source = counter();
  const reader = source
    .readable()
    .pipeThrough(gpu.transform(double(gpu), { depth: 2 }))
    .getReader();
  await reader.read();
  await settled(10);
  const { pulled } = source.log;
  assert.ok(pulled <= 6, `${pulled} chunks for one result`);
  await reader.read();
  await settled(10);
  assert.equal(source.log.pulled, pulled + 1);
  await reader.cancel();
});

test("transform: cancelling the results cancels the source", async () => {
  const { gpu, core } = await answering();
  const source = counter();
  const piped = source.readable().pipeThrough(gpu.transform(double(gpu)));
  const reader = piped.getReader();
  assert.equal((await reader.read()).value[0], 0);
  await reader.cancel("enough");
  await settled(10);
  assert.equal(source.log.canceled?.reason, "enough");
  assert.equal(core.queued.length + core.flights.length, 0);
});

test("transform: an error of fn breaks both sides, one of the source comes through", async () => {
  const { gpu } = await answering();
  const source = counter();
  const error = new Error("fn");
  const work = (values, context) =>
    context.index === 2 ? Promise.reject(error) : double(gpu)(values, context);
  const outcome = await untilError(
    source.readable().pipeThrough(gpu.transform(work)),
  );
  assert.deepEqual(outcome, { seen: [0, 2], error });
  await settled(10);
  assert.equal(source.log.canceled?.reason, error);
  const broken = failing["a ReadableStream"]();
  const through = await untilError(
    broken.pipeThrough(gpu.transform(double(gpu))),
  );
  assert.equal(through.error.message, "source");
});

test("nothing was rejected without anyone to hear it", async () => {
  await settled(10);
  assert.deepEqual(unhandled, []);
  assert.deepEqual(warnings, []);
});
