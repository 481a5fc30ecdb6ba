// What is tuned to the load on a real device: told, kept for the next visit, and never what
// was given. How values follow from what batches take is tested in the core.

import assert from "node:assert/strict";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

test("values are tuned by batches, and the next session begins with them", () =>
  site.page(async (page) => {
    const found = await page.evaluate(async () => {
      localStorage.clear();
      const gpu = await framebatch.open({ engine: "gpu" });
      const { tuning: before } = gpu.info;
      const [{ a, b, t }] = workload.lerps(1, 1000);
      for (let batch = 0; batch < 320; batch += 1) await gpu.lerp(a, b, t);
      const { tuning } = gpu.info;
      const plan = gpu.explain(() => gpu.lerp(a, b, t));
      await gpu.dispose();
      const kept = Object.entries(localStorage);
      const next = await framebatch.open({ engine: "gpu" });
      const { tuning: again } = next.info;
      await next.dispose();
      localStorage.setItem(kept[0]?.[0], '[1,"long",null]');
      const spoiled = await framebatch.open({ engine: "gpu" });
      const { tuning: anew } = spoiled.info;
      await spoiled.dispose();
      return { before, tuning, plan, kept, again, anew };
    });
    const { before, tuning, plan, kept, again, anew } = found;
    assert.deepEqual(before, {
      waitMs: 16,
      batchBytes: before.batchBytes,
      fixedMs: 0,
      msPerMegabyte: 0,
      encodeMs: 0,
      batches: 0,
    });
    assert.ok(tuning.batches >= 256, `${tuning.batches}`);
    assert.ok(tuning.waitMs < 16 && tuning.waitMs >= 1, `${tuning.waitMs}`);
    assert.ok(tuning.fixedMs > 0);
    assert.match(plan, /^tuned .* waits of \d+ us by \d+ batches$/m);
    assert.equal(kept.length, 1);
    const [[key, text]] = kept;
    assert.match(key, /^framebatch \d+\.\d+\.\d+ .* 3$/);
    assert.deepEqual(JSON.parse(text), [1, tuning.waitMs, tuning.batchBytes]);
    assert.deepEqual(
      [again.waitMs, again.batchBytes, again.batches],
      [tuning.waitMs, tuning.batchBytes, 0],
    );
    assert.deepEqual(anew, before);
  }));

const CASES = [
  [{ targetLatencyMs: 8 }, 4, true],
  [{ targetLatencyMs: 8, preset: "balanced" }, 4, true],
  [{ targetLatencyMs: 8, maxWaitMs: 3 }, null, true],
  [{ targetLatencyMs: 8, maxBatchSize: 3 }, 4, false],
  [{ maxWaitMs: 3 }, null, true],
  [{ flush: "frame" }, null, true],
  [{ preset: "latency" }, null, false],
];

test("what is given is not tuned", () =>
  site.page(async (page) => {
    for (const [options, waitMs, hasBytes] of CASES) {
      const tuning = await page.evaluate(async (options) => {
        const gpu = await framebatch.open(options);
        const { tuning } = gpu.info;
        await gpu.dispose();
        return tuning;
      }, options);
      const about = JSON.stringify(options);
      assert.equal(tuning.waitMs, waitMs, about);
      assert.equal(tuning.batchBytes !== null, hasBytes, about);
    }
  }));

const WRONG = [
  [{ targetLatencyMs: 0 }, /target latency is not above 0/],
  [{ targetLatencyMs: -1 }, /targetLatencyMs is -1/],
  [
    { targetLatencyMs: 5, maxWaitMs: 1, maxBatchSize: 9 },
    /both are given; leave one of them out/,
  ],
];

test("a target that tunes nothing is refused", () =>
  site.page(async (page) => {
    for (const [options, message] of WRONG) {
      const refused = await page.evaluate(async (options) => {
        try {
          await framebatch.open(options);
        } catch ({ code, message }) {
          return { code, message };
        }
      }, options);
      assert.equal(refused?.code, "invalid-input", JSON.stringify(options));
      assert.match(refused.message, message);
    }
  }));

test("texts of a batch are counted by the core's formula", () =>
  site.page(async (page) => {
    const texts = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "cpu", memoryBudget: 100e6 });
      const sizes = { modelBytes: 30e6, sequenceLength: 128, hiddenSize: 384 };
      return gpu.optimalBatchSize(sizes);
    });
    assert.equal(texts, 28);
  }));
