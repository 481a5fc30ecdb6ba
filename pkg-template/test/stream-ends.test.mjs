// Streams that end early: errors, leaving, signals, and what becomes of everything then.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, settled, stateOf } from "./face.mjs";
import { answering, chunk, counter, double, untilError } from "./streams.mjs";

const unhandled = [];
const warnings = [];
process.on("warning", (warning) => warnings.push(warning.name));
process.on("unhandledRejection", (reason) => unhandled.push(reason));

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

test("a chunk that rejects ends the iterator that gave it", async () => {
  const { gpu } = await answering();
  let isOver = false;
  function* source() {
    try {
      yield chunk(0);
      yield Promise.reject(new Error("chunk"));
    } finally {
      isOver = true;
      throw new Error("nobody hears of it");
    }
  }
  const { seen, error } = await untilError(gpu.stream(source(), double(gpu)));
  assert.deepEqual([seen, error.message, isOver], [[0], "chunk", true]);
});

const WAYS_TO_LEAVE = {
  "by return": (results) => results.return(),
  "by its signal": (_, controller) => controller.abort("enough"),
  "by an error of another chunk": (results, _, fail) => {
    fail(new Error("chunk"));
    return results.next().catch(() => {});
  },
};
for (const [way, leave] of Object.entries(WAYS_TO_LEAVE)) {
  test(`a stream that is left ${way} while its function never settles: calls wait for their frame again`, async () => {
    const { gpu, core } = await manual();
    const controller = new AbortController();
    const { signal } = controller;
    let fail;
    const broken = new Promise((_, reject) => (fail = reject));
    // The first chunk is handed over, one may fail, and the others never end.
    const works = [1, broken, new Promise(() => {}), new Promise(() => {})];
    const work = (_, { index }) => works[index];
    const results = gpu.stream([0, 1, 2, 3], work, { depth: 4, signal });
    await results.next();
    await settled();
    const during = gpu.lerp(chunk(1), chunk(1), 0);
    await settled();
    assert.equal(core.queued.length, 0, "meanwhile no call waits for a frame");
    await leave(results, controller, fail);
    await settled();
    const after = gpu.lerp(chunk(1), chunk(1), 0);
    await settled();
    assert.equal(core.queued.length, 1);
    // Whatever ends late counts no chunk twice.
    fail(new Error("late"));
    const next = gpu.stream([0], () => new Promise(() => {}));
    void next.next();
    await settled();
    gpu.lerp(chunk(1), chunk(1), 0);
    await settled();
    assert.equal(core.queued.length, 0);
    while (core.flights.length > 0) core.answer();
    await Promise.all([during, after]);
    await next.return();
  });
}

test("a result whose size cannot be told is handed over all the same", async () => {
  const { gpu } = await answering();
  const odd = {
    get bytes() {
      throw new Error("getter");
    },
  };
  const seen = [];
  for await (const result of gpu.stream([odd, odd], (chunk) => chunk))
    seen.push(result);
  assert.deepEqual([seen.length, seen[0] === odd], [2, true]);
});

test("a signal between a chunk and its turn is no good end", async () => {
  const { gpu } = await answering();
  for (let steps = 0; steps < 8; steps += 1) {
    const controller = new AbortController();
    const { signal } = controller;
    async function* source() {
      yield chunk(0);
      for (let i = 0; i < steps; i += 1) await undefined;
      controller.abort("stop");
      yield chunk(1);
    }
    const results = gpu.stream(source(), double(gpu), { signal });
    const { error } = await untilError(results);
    assert.equal(error, "stop", `after ${steps} steps`);
  }
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
