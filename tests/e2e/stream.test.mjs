// Streams on a real device: right results in order, overlap, and nothing left behind.

import assert from "node:assert/strict";
import { lightTest as test, openSite, times } from "./site.mjs";

const site = openSite();

/** Opens `gpu`, and `chunk(k)`, states that differ for each k; counts unheard rejections. */
const opened = (page, options) =>
  page.evaluate(async (options) => {
    window.unheard = 0;
    addEventListener("unhandledrejection", () => (window.unheard += 1));
    window.gpu = await framebatch.open({ engine: "gpu", ...options });
    window.chunk = (k, states = 64) => workload.bytes(states * 16, k);
    window.gradients = (bytes, { signal }) =>
      gpu.states.gradients(bytes, { signal });
    /** Whether `floats` are those of chunk k, to the bit. */
    window.isRight = async (floats, bytes) => {
      const alone = await gpu.states.gradients(bytes, { flush: "now" });
      return (
        floats.length === alone.length &&
        floats.every((value, i) => Object.is(value, alone[i]))
      );
    };
    window.sources = {
      array: (count, states) =>
        Array.from({ length: count }, (_, k) => chunk(k, states)),
      async *generator(count, states) {
        for (let k = 0; k < count; k += 1) yield chunk(k, states);
      },
      readable(count, states) {
        let k = 0;
        return new ReadableStream({
          pull(to) {
            if (k === count) to.close();
            else to.enqueue(chunk(k++, states));
          },
        });
      },
    };
  }, options);

const quiet = async (page) => {
  const { unheard, pending } = await page.evaluate(async () => {
    // A rejection is reported at the end of its task.
    await new Promise((run) => setTimeout(run, 50));
    return { unheard, pending: gpu.stats().pending };
  });
  assert.deepEqual({ unheard, pending }, { unheard: 0, pending: 0 });
};

for (const engine of ["gpu", "cpu"]) {
  for (const source of ["array", "generator", "readable"]) {
    test(`${engine}, ${source}: results are those of calls made alone, in order`, () =>
      site.page(async (page) => {
        await opened(page, { engine });
        const right = await page.evaluate(async (source) => {
          const right = [];
          const stream = gpu.stream(sources[source](40), gradients);
          for await (const floats of stream)
            right.push(await isRight(floats, chunk(right.length)));
          return right;
        }, source);
        assert.deepEqual(right, new Array(40).fill(true));
        await quiet(page);
      }));
  }
}

test("large chunks of a stream go in several chunks of a batch, and no more of them than the depth", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(
      async (count) => {
        let begun = 0;
        let done = 0;
        let most = 0;
        let right = true;
        const states = 1 << 15;
        const work = async (bytes, context) => {
          begun += 1;
          most = Math.max(most, begun - done);
          return gradients(bytes, context);
        };
        const source = sources.readable(count, states);
        for await (const floats of gpu.stream(source, work, { depth: 3 })) {
          if (done % 5 === 0)
            right &&= await isRight(floats, chunk(done, states));
          done += 1;
        }
        return { done, most, right, stats: gpu.stats() };
      },
      times(12, 400),
    );
    assert.equal(seen.done, times(12, 400));
    assert.ok(seen.right);
    // The next one is begun before the loop looks at a result.
    assert.equal(seen.most, 4);
    assert.ok(seen.stats.subBatches > seen.stats.batches);
    await quiet(page);
  }));

test("a stream does not wait for frames", () =>
  site.page(async (page) => {
    // What waited for frames would see one a chunk on the CPU as well, and that
    // answers within any frame.
    await opened(page, { engine: "cpu" });
    const frames = await page.evaluate(async () => {
      for await (const _ of gpu.stream(sources.array(4), gradients)); // Compiles.
      let frames = 0;
      const count = () => {
        frames += 1;
        handle = requestAnimationFrame(count);
      };
      let handle = requestAnimationFrame(count);
      const before = gpu.stats().batches;
      const source = sources.array(300, 16);
      for await (const _ of gpu.stream(source, gradients, { depth: 1 }));
      cancelAnimationFrame(handle);
      return { frames, batches: gpu.stats().batches - before };
    });
    assert.equal(frames.batches, 300);
    assert.ok(frames.frames < 290, `${frames.frames} frames for 300 chunks`);
  }));

test("a source that throws midway: earlier results stand, its error arrives, memory returns", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      async function* source() {
        for (let k = 0; k < 9; k += 1) yield chunk(k);
        throw new Error("no more");
      }
      const right = [];
      try {
        for await (const floats of gpu.stream(source(), gradients))
          right.push(await isRight(floats, chunk(right.length)));
      } catch (error) {
        return { right, message: error.message };
      }
    });
    assert.deepEqual(seen, {
      right: new Array(9).fill(true),
      message: "no more",
    });
    await quiet(page);
  }));

test("leaving, aborting and failing give up what is on its way", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const endless = () => sources.generator(Infinity);
      const seen = [];
      for await (const floats of gpu.stream(endless(), gradients)) {
        seen.push(floats.length);
        break;
      }
      const controller = new AbortController();
      const { signal } = controller;
      const outcome = async (stream) => {
        try {
          for await (const _ of stream);
        } catch (error) {
          seen.push(error.message ?? error);
        }
      };
      setTimeout(() => controller.abort("enough"), 30);
      await outcome(gpu.stream(endless(), gradients, { signal }));
      const odd = (bytes, context) =>
        context.index === 5
          ? gpu.states.gradients(bytes.subarray(1), { label: "odd" })
          : gradients(bytes, context);
      await outcome(gpu.stream(endless(), odd));
      return seen;
    });
    assert.equal(seen[0], 64 * 32);
    assert.equal(seen[1], "enough");
    assert.match(seen[2], /label 'odd'/);
    await quiet(page);
  }));

test("batches and depths follow the memory budget", () =>
  site.page(async (page) => {
    const memoryBudget = 4 << 20;
    await opened(page, { memoryBudget });
    const seen = await page.evaluate(async () => {
      const sizes = { modelBytes: 1 << 20, bytesPerItem: 1000 };
      const fitting = gpu.optimalBatchSize(sizes);
      let begun = 0;
      let most = 0;
      // A chunk and its result take 1.2 MB: two of them fit.
      const work = (bytes, context) => {
        begun += 1;
        return gradients(bytes, context);
      };
      let done = 0;
      for await (const _ of gpu.stream(sources.array(10, 8192), work)) {
        done += 1;
        most = Math.max(most, begun - done);
      }
      const before = gpu.stats().batches;
      const calls = [1, 2, 3, 4].map((k) => gradients(chunk(k, 4096), {}));
      await Promise.all(calls);
      return { fitting, most, batches: gpu.stats().batches - before };
    });
    assert.equal(
      seen.fitting,
      Math.floor((0.8 * memoryBudget - 2 ** 20) / 1e3),
    );
    assert.equal(seen.most, 2);
    // 839 KB a batch, 590 KB a call.
    assert.equal(seen.batches, 4);
    const refused = await page.evaluate(() =>
      framebatch
        .open({ memoryBudget: 1000 })
        .catch(({ code, message }) => ({ code, message })),
    );
    assert.equal(refused.code, "invalid-input");
    assert.match(refused.message, /memory budget is below 1 MiB/);
  }));

test("pipeThrough: from a response to results, and cancelled from behind", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const seen = { right: [], canceled: undefined };
      for await (const floats of iterate(
        sources.readable(10).pipeThrough(gpu.transform(gradients)),
      ))
        seen.right.push(await isRight(floats, chunk(seen.right.length)));
      let k = 0;
      const reader = new ReadableStream({
        pull: (to) => to.enqueue(chunk(k++)),
        cancel: (reason) => (seen.canceled = reason),
      })
        .pipeThrough(gpu.transform(gradients))
        .getReader();
      await reader.read();
      await reader.cancel("enough");
      await new Promise((run) => setTimeout(run, 20));
      return seen;

      // Some browsers do not iterate over a ReadableStream.
      async function* iterate(stream) {
        const reader = stream.getReader();
        for (;;) {
          const { done, value } = await reader.read();
          if (done) return;
          yield value;
        }
      }
    });
    assert.deepEqual(seen, {
      right: new Array(10).fill(true),
      canceled: "enough",
    });
    await quiet(page);
  }));
