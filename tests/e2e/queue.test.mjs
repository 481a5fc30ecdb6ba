// A bounded queue and one settlement a call: overflow, flush now, abort, disposal.

import assert from "node:assert/strict";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

/** Opens `gpu` with `options`, and `call(value, options)`: a lerp whose answer is [value]. */
async function opened(page, options) {
  await page.evaluate(async (options) => {
    window.gpu = await framebatch.open({ engine: "gpu", ...options });
    window.call = (value, options) =>
      gpu.lerp(
        new Float32Array([value]),
        new Float32Array([value + 1]),
        0,
        options,
      );
    window.outcomes = (promises) => Promise.all(promises.map(workload.outcome));
  }, options);
}

const codes = (outcomes) => outcomes.map(({ code, value }) => code ?? value[0]);

test("overflow reject: the call too many is refused, the others are answered", () =>
  site.page(async (page) => {
    await opened(page, {
      flush: "manual",
      queueCapacity: 3,
      overflow: "reject",
    });
    const { results, after } = await page.evaluate(async () => {
      const calls = [call(1), call(2), call(3), call(4), call(5)];
      const results = outcomes(calls);
      gpu.flush();
      await results;
      const later = call(6);
      gpu.flush();
      return { results: await results, after: (await later)[0] };
    });
    assert.deepEqual(codes(results), [1, 2, 3, "queue-full", "queue-full"]);
    assert.ok(results[3].known, "the error is a FramebatchError");
    assert.equal(after, 6);
  }));

test("overflow latest: a full queue keeps the newest call of a key", () =>
  site.page(async (page) => {
    await opened(page, {
      flush: "manual",
      queueCapacity: 2,
      overflow: "latest",
    });
    const results = await page.evaluate(async () => {
      const results = outcomes([
        call(1, { key: "a" }),
        call(2, { key: "b" }),
        call(3, { key: "a" }),
        call(4, { key: "a" }),
      ]);
      gpu.flush();
      return results;
    });
    assert.deepEqual(codes(results), ["superseded", 2, "superseded", 4]);
  }));

test("overflow wait: every call is accepted, ready and desiredSize tell producers", () =>
  site.page(async (page) => {
    await opened(page, {
      flush: "manual",
      queueCapacity: 4,
      overflow: "wait",
    });
    const seen = await page.evaluate(async () => {
      const sizes = [gpu.desiredSize];
      const calls = [];
      for (let i = 0; i < 10; i++) calls.push(call(i));
      sizes.push(gpu.desiredSize);
      let hadRoom = false;
      const ready = gpu.ready.then(() => (hadRoom = true));
      await Promise.resolve();
      const early = hadRoom;
      gpu.flush();
      const values = (await Promise.all(calls)).map(([value]) => value);
      await ready;
      sizes.push(gpu.desiredSize);
      return { sizes, early, values };
    });
    assert.deepEqual(seen.values, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert.equal(seen.early, false, "ready before there was room");
    assert.equal(seen.sizes[0], 4);
    assert.ok(seen.sizes[1] <= 0, `desiredSize ${seen.sizes[1]} when full`);
    assert.equal(seen.sizes[2], 4);
  }));

test("flush now sends the batch with this call, before the method returns", () =>
  site.page(async (page) => {
    await opened(page, { flush: "manual" });
    const { early, submits, values } = await page.evaluate(async () => {
      await call(0, { flush: "now" }); // The first one waits for its kernel.
      const before = counting.count();
      const waiting = call(1);
      const early = counting.since(before).submits;
      const now = call(2, { flush: "now" });
      const { submits } = counting.since(before);
      const values = [(await waiting)[0], (await now)[0]];
      return { early, submits, values };
    });
    assert.equal(early, 0);
    assert.equal(submits, 1);
    assert.deepEqual(values, [1, 2]);
  }));

test("eager: an idle GPU gets a task's calls as one batch, without a frame", () =>
  site.page(
    async (page) => {
      await opened(page, { flush: "eager" });
      const { value, counts } = await page.evaluate(() =>
        counting.during(async () =>
          (await Promise.all([call(1), call(2), call(3)])).map(([x]) => x),
        ),
      );
      assert.deepEqual(value, [1, 2, 3]);
      assert.equal(counts.submits, 1);
    },
    {
      prepare: () => {
        window.requestAnimationFrame = () => {
          throw new Error("eager asked for a frame");
        };
      },
    },
  ));

test("a function decides: it is handed flush once a batch", () =>
  site.page(async (page) => {
    const seen = await page.evaluate(async () => {
      const flushes = [];
      const gpu = await framebatch.open({
        engine: "gpu",
        flush: (flush) => flushes.push(flush),
      });
      const zero = new Float32Array(1);
      const calls = [gpu.lerp(zero, zero, 0), gpu.lerp(zero, zero, 0)];
      const asked = [flushes.length];
      const { counts } = await counting.during(() => {
        flushes[0]();
        return Promise.all(calls);
      });
      const last = gpu.lerp(zero, zero, 0);
      asked.push(flushes.length);
      flushes[1]();
      await last;
      await gpu.dispose();
      return { asked, submits: counts.submits };
    });
    assert.deepEqual(seen, { asked: [1, 2], submits: 1 });
  }));

test("into receives the result, and inputs may be overwritten at once", () =>
  site.page(async (page) => {
    await opened(page, { flush: "manual" });
    const { same, values } = await page.evaluate(async () => {
      const a = new Float32Array([1, 2, 3]);
      const b = new Float32Array([3, 4, 5]);
      const into = new Float32Array(3);
      const answer = gpu.lerp(a, b, 0.5, { into });
      a.fill(99);
      b.fill(99);
      gpu.flush();
      const result = await answer;
      return { same: result === into, values: Array.from(into) };
    });
    assert.ok(same);
    assert.deepEqual(values, [2, 3, 4]);
  }));

test("abort: the call rejects with the signal's reason, its neighbours are answered", () =>
  site.page(async (page) => {
    await opened(page, { flush: "manual" });
    const { queued, flying, values, stats } = await page.evaluate(async () => {
      const reason = (promise) => promise.catch((error) => error);
      const first = new AbortController();
      const second = new AbortController();
      const calls = [
        call(1),
        reason(call(2, { signal: first.signal })),
        reason(call(3, { signal: second.signal })),
        call(4),
      ];
      first.abort("while queued");
      gpu.flush();
      second.abort("in flight");
      const [a, queued, flying, d] = await Promise.all(calls);
      return { queued, flying, values: [a[0], d[0]], stats: gpu.stats() };
    });
    assert.equal(queued, "while queued");
    assert.equal(flying, "in flight");
    assert.deepEqual(values, [1, 4]);
    assert.equal(stats.pending, 0);
    assert.equal(stats.calls, stats.settled + stats.rejected);
  }));

test("dispose settles everything once, and destroys what the GPU holds", () =>
  site.page(async (page) => {
    await opened(page, { flush: "manual" });
    const seen = await page.evaluate(async () => {
      const done = call(1);
      gpu.flush();
      await done;
      const flying = call(2);
      gpu.flush();
      const queued = [call(3), call(4)];
      let settlements = 0;
      for (const promise of [flying, ...queued]) {
        const once = () => settlements++;
        promise.then(once, once);
      }
      await gpu.dispose();
      await gpu.dispose();
      const ended = await outcomes([flying, ...queued, call(5)]);
      const stats = gpu.stats();
      // A buffer on its way goes when the browser lets go of its map.
      const live = () => counting.count().liveBuffers;
      const until = performance.now() + 10_000;
      while (live() > 0 && performance.now() < until) {
        await new Promise((run) => setTimeout(run, 20));
      }
      return { ended, settlements, stats, live: live() };
    });
    assert.deepEqual(codes(seen.ended), Array(4).fill("disposed"));
    assert.equal(seen.settlements, 3);
    assert.equal(seen.stats.pending, 0);
    assert.equal(seen.live, 0, "buffers left alive");
  }));
