// Priorities in a page: what is answered first, and in how many batches low work goes.

import assert from "node:assert/strict";
import { lightTest as test, openSite, times } from "./site.mjs";

const site = openSite();

for (const engine of ["gpu", "cpu"]) {
  test(`the more urgent is answered first, each rightly: ${engine}`, () =>
    site.page(async (page) => {
      const { order, wrong, batches } = await page.evaluate(async (engine) => {
        const gpu = await framebatch.open({ engine, flush: "eager" });
        const ask = (value, priority) =>
          gpu.lerp(new Float32Array([value]), new Float32Array([value]), 0.5, {
            priority,
          });
        await ask(0); // Kernels are compiled by now.
        const before = gpu.stats().batches;
        const order = [];
        const note = (name, call) => call.then(() => order.push(name));
        const low = Array.from({ length: 300 }, (_, i) => ask(i, "low"));
        await Promise.all([
          note("low", Promise.all(low)),
          note("normal", ask(1)),
          note("high", ask(2, "high")),
        ]);
        const values = (await Promise.all(low)).map(([value]) => value);
        const wrong = values.filter((value, i) => value !== i).length;
        const batches = gpu.stats().batches - before;
        await gpu.dispose();
        return { order, wrong, batches };
      }, engine);
      assert.deepEqual(order.at(-1), "low");
      assert.equal(wrong, 0);
      // One of high and one of normal priority; the first slice is one call, and each at
      // most four times as large as the largest before.
      assert.ok(batches >= 7, `${batches} batches`);
    }));
}

test("high waits for no flush by hand, and low for one", () =>
  site.page(async (page) => {
    const states = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const value = new Float32Array([1]);
      const settled = { low: false, normal: false, high: false };
      const calls = Object.keys(settled).map((priority) =>
        gpu
          .lerp(value, value, 0, { priority })
          .then(() => (settled[priority] = true)),
      );
      await calls[2];
      const before = { ...settled };
      gpu.flush();
      await Promise.all(calls);
      await gpu.dispose();
      return { before, after: settled };
    });
    assert.deepEqual(states, {
      before: { low: false, normal: false, high: true },
      after: { low: true, normal: true, high: true },
    });
  }));

test("a page draws its frames beside low work on the CPU", () =>
  site.page(async (page) => {
    const { frames, sum } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "cpu" });
      let frames = 0;
      let isOver = false;
      const draw = () => {
        frames += 1;
        if (!isOver) requestAnimationFrame(draw);
      };
      requestAnimationFrame(draw);
      const states = new Uint8Array(16 * 2000).fill(0x80);
      const calls = Array.from({ length: 400 }, () =>
        gpu.states.gradients(states, { priority: "low" }),
      );
      const results = await Promise.all(calls);
      isOver = true;
      await gpu.dispose();
      return { frames, sum: results.reduce((n, { length }) => n + length, 0) };
    });
    assert.equal(sum, 400 * 2000 * 32);
    assert.ok(frames >= 2, `${frames} frames`);
  }));
