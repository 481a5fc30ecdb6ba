// What is told of batches on a real device, against what is seen from outside.

import assert from "node:assert/strict";
import { lightTest as test, longTest, openSite } from "./site.mjs";

const site = openSite();

/** Opens `gpu`, and `heavy`, a call of some milliseconds on a software GPU. */
const opened = (page, options) =>
  page.evaluate(async (options) => {
    window.gpu = await framebatch.open({ engine: "gpu", ...options });
    window.heavy = (options) =>
      gpu.states.gradients(workload.bytes(16 << 12, 1), {
        field: "sin(rho) * cos(theta) + exp(rho / 8) * sin(theta * 3)",
        ...options,
      });
    window.small = (options) =>
      gpu.lerp(new Float32Array([0]), new Float32Array([1]), 0.5, options);
  }, options);

test("facts agree with what reached WebGPU and with the page's clock", () =>
  site.page(async (page) => {
    await opened(page);
    const { facts, outside, counts, hasTimestamps } = await page.evaluate(
      async () => {
        await Promise.all([heavy(), small()]); // Compiles.
        const told = new Promise((tell) => gpu.on("batch", tell));
        const before = gpu.stats();
        const start = performance.now();
        await Promise.all([heavy(), heavy(), small({ flush: "now" })]);
        const facts = await told;
        const outside = performance.now() - start;
        const after = gpu.stats();
        const counts = {};
        const all = ["calls", "subBatches", "submits", "bytesUp", "bytesDown"];
        for (const name of all) counts[name] = after[name] - before[name];
        const hasTimestamps = gpu.info.features.includes("timestamp-query");
        return { facts, outside, counts, hasTimestamps };
      },
    );
    for (const [name, count] of Object.entries(counts))
      assert.equal(facts[name], count, name);
    assert.equal(facts.engine, "gpu");
    assert.deepEqual(
      [facts.items, facts.failed],
      [(2 * (16 << 12)) / 16 + 1, 0],
    );
    assert.ok(facts.memoryBytes > 0 && Number.isInteger(facts.id));
    assert.ok(facts.wallMs > 0 && facts.wallMs <= outside + 1);
    for (const name of ["waitMs", "encodeMs", "transferMs", "readMs"])
      assert.ok(facts[name] >= 0 && facts[name] <= outside + 1, name);
    const bytes = facts.bytesUp + facts.bytesDown;
    const rate = (bytes / facts.wallMs) * 1000;
    assert.ok(Math.abs(facts.bytesPerSecond / rate - 1) < 1e-9);
    assert.ok(hasTimestamps, "both browsers of these tests have them");
    const { gpuMs, transferMs, readMs, wallMs, resolutionMs } = facts;
    assert.ok(resolutionMs > 0 && resolutionMs < 1, `${resolutionMs} ms`);
    assert.ok(gpuMs > 0, `${gpuMs} ms`);
    assert.ok(gpuMs <= wallMs + facts.subBatches * resolutionMs);
    const steps = gpuMs / resolutionMs;
    assert.ok(Math.abs(steps - Math.round(steps)) < 1e-3, `${steps} steps`);
    const efficiency = gpuMs / (gpuMs + transferMs + readMs);
    assert.ok(Math.abs(facts.kernelEfficiency - efficiency) < 1e-9);
    assert.ok(Math.abs(facts.utilization - gpuMs / wallMs) < 1e-9);
  }));

test("results are the same bits, measured or not, alone and in chunks", () =>
  site.page(async (page) => {
    await opened(page);
    const same = await page.evaluate(async () => {
      const states = workload.bytes(16 << 15, 9);
      const plain = await gpu.states.gradients(states);
      const off = gpu.on("batch", () => {});
      const measured = await gpu.states.gradients(states);
      const { subBatches, batches } = gpu.stats();
      off();
      const after = await gpu.states.gradients(states);
      const is = (other) => plain.every((v, i) => Object.is(v, other[i]));
      return [is(measured), is(after), subBatches > batches];
    });
    assert.deepEqual(same, [true, true, true]);
  }));

test("unmeasured batches cost nothing, and their times are unknown", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const start = counting.count();
      const times = () => {
        const { transferMs, gpuMs, readMs, kernelEfficiency, utilization } =
          gpu.stats();
        return [transferMs, gpuMs, readMs, kernelEfficiency, utilization];
      };
      await small();
      await small();
      const before = [
        counting.since(start).created.createQuerySet ?? 0,
        times(),
      ];
      await small({ onMetrics: () => {} });
      await heavy({ onMetrics: () => {} });
      const buffers = [
        gpu.stats().pool.buffers,
        counting.since(start).liveBuffers,
      ];
      return { before, after: times(), buffers };
    });
    const [held, live] = seen.buffers;
    assert.equal(held, live);
    assert.deepEqual(seen.before, [0, [null, null, null, null, null]]);
    assert.ok(
      seen.after.every((time) => time >= 0 && time !== null),
      `${seen.after}`,
    );
  }));

test("on the CPU kernels' time is unknown, and the rest is told", () =>
  site.page(async (page) => {
    await opened(page, { engine: "cpu" });
    const facts = await page.evaluate(async () => {
      let facts;
      await heavy({ onMetrics: (told) => (facts = told) });
      return facts;
    });
    assert.equal(facts.engine, "cpu");
    assert.equal(facts.calls, 1);
    assert.ok(facts.wallMs > 0);
    for (const name of [
      "gpuMs",
      "resolutionMs",
      "kernelEfficiency",
      "utilization",
    ])
      assert.equal(facts[name], null, name);
  }));

test("devtools: the timeline has an entry for each batch", () =>
  site.page(async (page) => {
    await opened(page, { devtools: true });
    const entries = await page.evaluate(async () => {
      await Promise.all([small(), small()]);
      await small();
      return performance
        .getEntriesByName("framebatch batch")
        .map(({ startTime, duration, detail }) => ({
          startTime,
          duration,
          detail,
        }));
    });
    assert.deepEqual(
      entries.map(({ detail }) => detail.calls),
      [2, 1],
    );
    for (const { startTime, duration, detail } of entries) {
      assert.ok(Math.abs(startTime - detail.startTime) < 1e-3);
      assert.ok(Math.abs(duration - detail.wallMs) < 1e-3);
    }
  }));

test("profile: what a run takes", () =>
  site.page(async (page) => {
    await opened(page);
    const told = await page.evaluate(() =>
      gpu.profile(() => Promise.all([heavy(), small()]), { iterations: 4 }),
    );
    assert.deepEqual([told.iterations, told.batches, told.calls], [4, 1, 2]);
    assert.ok(told.gpuMs.min > 0 && told.gpuMs.max <= told.runMs.max + 1);
    assert.equal(told.items, (16 << 12) / 16 + 1);
    assert.ok(told.kernelEfficiency > 0 && told.kernelEfficiency <= 1);
  }));

longTest(
  "profile: operations and bytes of kernels are those counted by hand",
  () =>
    site.page(async (page) => {
      await opened(page);
      const told = await page.evaluate(async () => {
        const ones = (...dims) =>
          gpu.tensor(
            new Float32Array(dims.reduce((a, b) => a * b)).fill(1),
            dims,
          );
        const [a, b, m, n] = [
          ones(1000),
          ones(1000),
          ones(30, 20),
          ones(20, 50),
        ];
        const kernel = (flops) =>
          gpu.kernel({
            name: "fused",
            inputs: { x: "f32", y: "f32" },
            output: "f32",
            code: "fn element(x: f32, y: f32) -> f32 { return x * y + 1.0; }",
            flops,
          });
        const [counted, unknown] = [kernel(2), kernel(undefined)];
        const told = [];
        for (const record of [
          () => a.add(b),
          () => m.matmul(n),
          () => a.exp().mul(b).add(a),
          () => counted({ x: a, y: b }).add(a),
          () => unknown({ x: a, y: b }),
        ]) {
          const { flops, kernelBytes, gpuMs, flopsPerSecond } =
            await gpu.profile(() => record().read(), { iterations: 2 });
          // Kernels this small may take less than a clock can tell.
          const rate = gpuMs && flops && (flops / gpuMs.mean) * 1000;
          told.push([flops, kernelBytes, flopsPerSecond === rate]);
        }
        return told;
      });
      assert.deepEqual(told, [
        // 1000 sums of two vectors.
        [1000, 12_000, true],
        // A product and a sum for each of 30 x 20 x 50 pairs.
        [60_000, 4 * (600 + 1000 + 1500), true],
        // An exponential, a product and a sum of each element.
        [3000, 12_000, true],
        // Two operations of the kernel, and a sum behind it, in one pass.
        [3000, 12_000, true],
        [null, 12_000, true],
      ]);
    }),
);
