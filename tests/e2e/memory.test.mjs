// Memory: streams stay within their budget, a GPU without memory fails no call, and
// what is not needed is given back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assertWithin } from "../../tools/soak.mjs";
import { lightTest, longTest, openSite, times } from "./site.mjs";

const site = openSite();

const BUDGET = 64 * 2 ** 20;

const SECONDS = times(4, 10);

lightTest(
  `${SECONDS} seconds of mixed streams stay under 64 MiB and lose nothing`,
  (t) =>
    site.page(async (page) => {
      const report = await page.evaluate(
        async (memoryBudget, seconds) => {
          const gpu = await framebatch.open({ engine: "gpu", memoryBudget });
          return scarcity.streaming(gpu, { seconds });
        },
        ...[BUDGET, SECONDS],
      );
      t.diagnostic(JSON.stringify(report));
      assertWithin(report, BUDGET);
    }),
);

/** Opens `gpu` and `ask(floats)`, which says whether a lerp of so many is right. */
const opened = (page, options) =>
  page.evaluate(async (options) => {
    window.gpu = await framebatch.open({
      engine: "gpu",
      flush: "manual",
      ...options,
    });
    window.fallbacks = 0;
    gpu.on("fallback", () => fallbacks++);
    window.losses = 0;
    gpu.on("lost", () => losses++);
    window.ask = async (length) => {
      const from = workload.floats(length, length);
      const call = gpu.lerp(
        from,
        from.map((x) => x + 2),
        0.5,
      );
      gpu.flush();
      const result = await call;
      return (
        result.length === length &&
        result.every((x, i) => Math.abs(x - from[i] - 1) < 1e-6)
      );
    };
    window.sleep = (ms) => new Promise((run) => setTimeout(run, ms));
  }, options);

longTest("small frames map little for writing, whatever a large one left", () =>
  site.page(async (page) => {
    await opened(page);
    const frames = await page.evaluate(async () => {
      const { mapAsync, unmap } = GPUBuffer.prototype;
      const mapped = new WeakMap();
      let sent = [];
      GPUBuffer.prototype.mapAsync = function (mode, at = 0, size = this.size) {
        mapped.set(this, mode === GPUMapMode.WRITE ? size : 0);
        return mapAsync.call(this, mode, at, size);
      };
      GPUBuffer.prototype.unmap = function () {
        if (mapped.get(this) > 0) sent.push(mapped.get(this));
        unmap.call(this);
      };
      const frames = [];
      for (const length of [1 << 20, 1 << 15, 1 << 18]) {
        for (let frame = 0; frame < 20; frame++) {
          sent = [];
          const isRight = await ask(length);
          frames.push({ isRight, bytes: 2 * 4 * length, sent });
          await sleep(20); // A buffer is mapped again.
        }
      }
      return frames;
    });
    assert.ok(frames.every(({ isRight }) => isRight));
    for (const at of [19, 39, 59]) {
      const { bytes, sent } = frames[at];
      assert.ok(sent.length > 0, "nothing goes through mapped memory");
      for (const size of sent)
        assert.ok(size <= 2 * bytes, `${size}: ${bytes}`);
    }
  }),
);

// [what is refused, above so many bytes, floats of the call, whether the CPU has to help]
const CASES = [
  ["refuseBuffers", 400_000, 1 << 20, false],
  ["refuseBuffers", 100_000, 1 << 20, false],
  ["refuseBuffers", 4096, 1 << 18, true],
  ["refuseMaps", 400_000, 1 << 20, false],
  ["refuseMaps", 4096, 1 << 18, true],
];

for (const [refuse, most, length, helps] of CASES) {
  test(`${refuse} above ${most} bytes: ${helps ? "the CPU answers" : "chunks are halved"}`, () =>
    site.page(async (page) => {
      await opened(page);
      const seen = await page.evaluate(
        async (refuse, most, length) => {
          const before = await ask(8);
          const end = scarcity[refuse](most);
          const during = await ask(length);
          const refused = end();
          const { fallbacks: counted, ranOn, rejected } = gpu.stats();
          const after = [await ask(8), await ask(length)];
          const { engine } = gpu.info;
          const right = [before, during, ...after];
          return {
            right,
            refused,
            counted,
            ranOn,
            rejected,
            engine,
            fallbacks,
            losses,
          };
        },
        refuse,
        most,
        length,
      );
      const { refused, ...rest } = seen;
      assert.ok(refused > 0, "nothing was refused");
      assert.deepEqual(rest, {
        right: [true, true, true, true],
        counted: Number(helps),
        ranOn: helps ? { gpu: 1, cpu: 1 } : { gpu: 2, cpu: 0 },
        rejected: 0,
        engine: "gpu",
        fallbacks: Number(helps),
        losses: 0,
      });
    }));
}

test("batches behind one that there was no memory for are computed, too", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      /** The sum of all products of numbers that are 1 or 0. */
      const ask = (length, ones) => {
        const some = (every) =>
          Float32Array.from({ length }, (_, i) => Number(i % every < ones));
        const [a, b] = [
          gpu.tensor(some(4), [length, 1], { keep: false }),
          gpu.tensor(some(4), [1, length], { keep: false }),
        ];
        const sum = a.matmul(b).sum().read();
        gpu.flush();
        return sum.then(
          ([sum]) => sum,
          ({ code }) => code,
        );
      };
      // The batches that may be in flight at once: memory for their results is there after that.
      const before = await Promise.all([1, 2, 3].map((ones) => ask(512, ones)));
      const end = scarcity.refuseBuffers(4 << 20);
      const during = await Promise.all(
        [1, 2, 3].map((ones) => ask(2048, ones)),
      );
      const refused = end();
      const after = await ask(2048, 2);
      const { rejected } = gpu.stats();
      return { before, during, after, refused: refused > 0, rejected, losses };
    });
    assert.deepEqual(seen, {
      before: [1, 4, 9].map((part) => (512 * 512 * part) / 16),
      during: [1, 4, 9].map((part) => (2048 * 2048 * part) / 16),
      after: (2048 * 2048 * 4) / 16,
      refused: true,
      rejected: 0,
      losses: 0,
    });
  }));

test("an eager session sends what waited for a batch that nobody wants any more", () =>
  site.page(async (page) => {
    await opened(page, { flush: "eager" });
    const seen = await page.evaluate(async () => {
      const right = [await ask(8)];
      // There is no memory for the results, as turns out late.
      const { mapAsync } = GPUBuffer.prototype;
      GPUBuffer.prototype.mapAsync = async function () {
        GPUBuffer.prototype.mapAsync = mapAsync;
        await sleep(200);
        throw new DOMException("no memory", "OperationError");
      };
      const [a, b] = [new Float32Array([1]), new Float32Array([3])];
      const given = new AbortController();
      const { signal } = given;
      const first = gpu.lerp(a, b, 0.5, { signal, flush: "now" });
      given.abort("enough");
      const reason = await first.catch((reason) => reason);
      // Nobody calls after it. A test that fails is not to hang.
      const second = await Promise.race([gpu.lerp(a, b, 0.25), sleep(30_000)]);
      const { pending, rejected } = gpu.stats();
      return { right, reason, second: second?.[0], pending, rejected };
    });
    assert.deepEqual(seen, {
      right: [true],
      reason: "enough",
      second: 1.5,
      pending: 0,
      rejected: 1,
    });
  }));

test("a call above the budget is cut, or the CPU's, and never refused", () =>
  site.page(async (page) => {
    const memoryBudget = 2 ** 20;
    await opened(page, { memoryBudget });
    const { right, peakBytes, rejected } = await page.evaluate(async () => {
      const right = [await ask(1 << 20), await ask(100), await ask(1 << 18)];
      const { pool, rejected } = gpu.stats();
      return { right, peakBytes: pool.peakBytes, rejected };
    });
    assert.deepEqual(right, [true, true, true]);
    assert.ok(peakBytes <= memoryBudget, `${peakBytes} bytes`);
    assert.equal(rejected, 0);
  }));

test("a tensor beyond the budget is refused, and says what to do", () =>
  site.page(async (page) => {
    await opened(page, { memoryBudget: 2 ** 20 });
    const outcome = await page.evaluate(async () => {
      const beyond = async () => gpu.tensor(new Float32Array(1 << 19));
      return workload.outcome(beyond());
    });
    assert.equal(outcome.code, "out-of-memory");
    assert.match(outcome.message, /memory budget.*raise it/);
  }));

// [floats of a tensor that the GPU has no memory for, whether the CPU has it as well]
for (const [length, isMirrored] of [
  [1 << 17, true],
  [1 << 19, false],
]) {
  test(`the CPU answers what reads a tensor of ${length} floats that the GPU has no memory for`, () =>
    site.page(async (page) => {
      await opened(page);
      const seen = await page.evaluate(async (length) => {
        const before = await ask(8);
        const end = scarcity.refuseBuffers(100_000);
        const data = workload.floats(length, 3);
        const tensor = gpu.tensor(data);
        end();
        const sum = tensor.scale(2).read();
        // In the same batch, and in those behind it.
        const beside = ask(8);
        gpu.flush();
        const right = [before, await beside, await ask(100)];
        const doubled = await sum;
        const isDoubled = doubled.every((x, i) => x === data[i] * 2);
        const again = tensor.scale(2).read();
        gpu.flush();
        const { engine } = gpu.info;
        const { rejected } = gpu.stats();
        right.push(isDoubled, (await again).length === length);
        return { right, rejected, engine, fallbacks, losses };
      }, length);
      assert.deepEqual(seen, {
        right: [true, true, true, true, true],
        rejected: 0,
        engine: isMirrored ? "gpu" : "cpu",
        fallbacks: isMirrored ? 2 : 1,
        losses: isMirrored ? 0 : 1,
      });
    }));
}

test("a source that throws midway: its results stand, and the memory returns", () =>
  site.page(async (page) => {
    await opened(page, { flush: "frame", memoryBudget: BUDGET });
    const seen = await page.evaluate(async () => {
      const states = workload.bytes(16 << 12, 1);
      async function* source() {
        for (let k = 0; k < 5; k++) yield states;
        throw new Error("midway");
      }
      const lengths = [];
      const call = (chunk) => gpu.states.gradients(chunk);
      let message;
      try {
        for await (const result of gpu.stream(source(), call))
          lengths.push(result.length);
      } catch (error) {
        ({ message } = error);
      }
      const busy = gpu.stats().pool.bytes;
      // Memory that is kept for the next batch is given back when none comes.
      const until = performance.now() + 10_000;
      while (gpu.stats().pool.bytes > 0 && performance.now() < until)
        await sleep(100);
      const { pool, pending } = gpu.stats();
      const live = counting.count().liveBuffers;
      return {
        lengths,
        message,
        busy,
        left: pool.bytes,
        live,
        pending,
        again: await ask(8),
      };
    });
    const { busy, ...rest } = seen;
    assert.ok(busy > 0, "nothing was held");
    assert.deepEqual(rest, {
      lengths: Array(5).fill((16 << 12) * 2),
      message: "midway",
      left: 0,
      live: 0,
      pending: 0,
      again: true,
    });
  }));

test("a page that is hidden gives memory back", () =>
  site.page(async (page) => {
    await opened(page);
    assert.ok(await page.evaluate(() => ask(1 << 18)));
    await page.evaluate(() => {
      window.left = new Promise((resolve) =>
        document.addEventListener("visibilitychange", () =>
          resolve({ hidden: document.hidden, bytes: gpu.stats().pool.bytes }),
        ),
      );
    });
    const other = await site.browser.newPage();
    await other.bringToFront();
    const left = await page.evaluate(() => left);
    await other.close();
    assert.deepEqual(left, { hidden: true, bytes: 0 });
    await page.bringToFront();
    assert.ok(await page.evaluate(() => ask(8)));
  }));
