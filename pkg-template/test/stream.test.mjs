// Streams: order, depth, what they refuse, and pipes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual, module, settled, stateOf } from "./face.mjs";
import { answering, chunk, collect, counter, double } from "./streams.mjs";

const { bytesOf, depthFor } = await module("stream/depth");

const unhandled = [];
const warnings = [];
process.on("warning", (warning) => warnings.push(warning.name));
process.on("unhandledRejection", (reason) => unhandled.push(reason));

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
  assert.equal(await stateOf(later), "pending");
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

test("nothing was rejected without anyone to hear it", async () => {
  await settled(10);
  assert.deepEqual(unhandled, []);
  assert.deepEqual(warnings, []);
});
