// Arrays that are made before their results: fresh all the same, whatever becomes of
// the call, and not kept.

import assert from "node:assert/strict";
import { chromiumTest, lightTest as test, openSite } from "./site.mjs";

const site = openSite();

/**
 * Opens `gpu`, `batch()`: some calls of every kind of result with what they should
 * come to, and `made`: the arrays that were made by their length, from now on.
 */
async function opened(page) {
  await page.evaluate(async () => {
    window.gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
    const { Float32Array } = window;
    window.made = new Set();
    window.Float32Array = new Proxy(Float32Array, {
      construct(target, args) {
        const array = new target(...args);
        if (typeof args[0] === "number") made.add(array);
        return array;
      },
    });
    const lerp = (length, seed, options) => {
      const [a, b] = [workload.floats(length, seed), workload.floats(length)];
      return {
        right: Float32Array.from(a, (x, i) => x + (b[i] - x) * 0.5),
        promise: gpu.lerp(a, b, 0.5, options),
      };
    };
    const states = (count, seed) => {
      const bytes = workload.bytes(count * 16, seed);
      return { right: bytes, promise: gpu.states.lerp(bytes, bytes, 0.5) };
    };
    const read = (length, seed) => {
      const floats = workload.floats(length, seed);
      const promise = gpu.tensor(floats).scale(2).read();
      return { right: floats.map((x) => x * 2), promise };
    };
    window.batch = (options) => [
      ...Array.from({ length: 200 }, (_, i) => lerp(64, i, options)),
      ...Array.from({ length: 20 }, (_, i) => states(8, i)),
      ...Array.from({ length: 20 }, (_, i) => read(50, i)),
      ...[1, 16, 17, 5000, 300_000].map((length) => lerp(length, 7, options)),
    ];
    /** Lets what waits for a task make arrays; the GPU has not answered yet, or has. */
    window.tasks = async (count = 5) => {
      for (let n = 0; n < count; n++) {
        await new Promise((run) => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = run;
          port2.postMessage(null);
        });
      }
    };
    /** What is wrong with the results of these calls, and their memory. */
    window.wrong = async (calls, buffers = new Set()) => {
      const wrong = [];
      for (const [i, { right, promise }] of calls.entries()) {
        const result = await promise;
        const bound = right instanceof Uint8Array ? 0 : 1e-6;
        const isRight =
          result.length === right.length &&
          result.every((x, k) => Math.abs(x - right[k]) <= bound);
        if (!isRight) wrong.push(`${i} is not right`);
        if (buffers.has(result.buffer)) wrong.push(`${i} shares its memory`);
        if (result.buffer.byteLength !== result.byteLength)
          wrong.push(`${i} is a view`);
        buffers.add(result.buffer);
      }
      return wrong;
    };
  });
}

test("batch after batch: right results, no memory shared, and some were made before", () =>
  site.page(async (page) => {
    await opened(page);
    const { problems, early, results } = await page.evaluate(async () => {
      const buffers = new Set();
      const problems = [];
      let [early, results] = [0, 0];
      for (let n = 0; n < 6; n++) {
        const calls = batch();
        made.clear();
        gpu.flush();
        await tasks();
        const before = new Set(made);
        problems.push(...(await wrong(calls, buffers)));
        const answers = await Promise.all(calls.map(({ promise }) => promise));
        results += answers.length;
        early += answers.filter((answer) => before.has(answer)).length;
        // What was answered is the caller's: nobody else writes to it.
        for (const answer of answers)
          answer.fill(answer instanceof Uint8Array ? 1 : 0.1);
        await new Promise((run) => setTimeout(run, 20));
        if (!answers.every((answer) => answer.every((x) => x > 0)))
          problems.push("written to afterwards");
      }
      return { problems, early, results };
    });
    assert.deepEqual(problems, []);
    assert.ok(
      early > 0,
      `none of ${results} arrays was made before its result`,
    );
  }));

test("given up while its array is there: rejected, and its neighbors are right", () =>
  site.page(async (page) => {
    await opened(page);
    const { outcomes, problems } = await page.evaluate(async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const outcomes = [];
      const problems = [];
      for (let n = 0; n < 3; n++) {
        const calls = batch();
        const given = batch({ signal });
        const others = given.filter((_, i) => i >= 200 && i < 240);
        const lost = given.filter((call) => !others.includes(call));
        const settled = lost.map(({ promise }) => workload.outcome(promise));
        // No answer comes before they are given up, however fast the GPU is.
        const { mapAsync } = GPUBuffer.prototype;
        let answer;
        const held = new Promise((run) => (answer = run));
        GPUBuffer.prototype.mapAsync = function (...range) {
          const mapped = mapAsync.apply(this, range);
          return held.then(() => mapped);
        };
        gpu.flush();
        await tasks(1);
        controller.abort("given up");
        GPUBuffer.prototype.mapAsync = mapAsync;
        answer();
        outcomes.push(...(await Promise.all(settled)));
        problems.push(...(await wrong([...calls, ...others])));
      }
      return { outcomes, problems };
    });
    assert.deepEqual(problems, []);
    assert.equal(outcomes.length, 3 * 205);
    const late = outcomes.filter(({ message }) => message !== "given up");
    assert.deepEqual(late, []);
  }));

test("lost while the arrays are there: every call is answered once more, rightly", () =>
  site.page(async (page) => {
    await opened(page);
    const problems = await page.evaluate(async () => {
      const problems = [];
      const buffers = new Set();
      for (let n = 0; n < 2; n++) {
        const restored = new Promise((run) => gpu.on("restored", run));
        const calls = batch();
        gpu.flush();
        await tasks(1);
        gpu.device.destroy();
        problems.push(...(await wrong(calls, buffers)));
        await restored;
      }
      return problems;
    });
    assert.deepEqual(problems, []);
  }));

test("disposed while the arrays are there: every call rejects", () =>
  site.page(async (page) => {
    await opened(page);
    const codes = await page.evaluate(async () => {
      const calls = batch();
      const outcomes = calls.map(({ promise }) => workload.outcome(promise));
      gpu.flush();
      const disposed = tasks(1).then(() => gpu.dispose());
      const all = await Promise.all(outcomes);
      await disposed;
      return all.map(({ code, value }) => code ?? (value ? "answered" : "?"));
    });
    // A fast GPU answers some of them first.
    const rest = codes.filter((code) => code !== "answered");
    assert.deepEqual([...new Set(rest)].join(), rest.length ? "disposed" : "");
  }));

chromiumTest(
  "what was kept ready for the next batch is let go when none comes",
  "memory of arrays is asked for by its own protocol",
  () =>
    site.page(async (page) => {
      await opened(page);
      const client = await page.createCDPSession();
      const bytes = async () => {
        await client.send("HeapProfiler.collectGarbage");
        return (await client.send("Runtime.getHeapUsage")).backingStorageSize;
      };
      const run = (batches) =>
        page.evaluate(async (batches) => {
          for (let n = 0; n < batches; n++) {
            const calls = Array.from({ length: 1000 }, () =>
              gpu.lerp(new Float32Array(200), new Float32Array(200), 0),
            );
            gpu.flush();
            await Promise.all(calls);
            await new Promise((run) => setTimeout(run, 20));
          }
          made.clear();
        }, batches);
      await run(3);
      const kept = await bytes();
      await new Promise((run) => setTimeout(run, 2500));
      const idle = await bytes();
      assert.ok(
        kept - idle > 400_000,
        `${kept} bytes right after a batch, ${idle} when idle`,
      );
      await run(5);
      await new Promise((run) => setTimeout(run, 2500));
      const later = await bytes();
      assert.ok(later - idle < 100_000, `${idle} bytes became ${later}`);
    }),
);
