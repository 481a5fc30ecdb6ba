// How soon answers come, in a browser that looks for them only every 100 ms.
//
// Firefox is such a browser, Chromium is not; the test asks neither's name, but
// measures a plain read-back first. What it prints compares the two.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const site = openSite();

/** A read-back as slow as this, in milliseconds, was waited for by polling. */
const POLLED = 50;

test("1,000 calls of a frame are answered without waiting for the poll", (t) =>
  site.page(async (page) => {
    const { plain, batches, nudges, error } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const time = async (work) => {
        const start = performance.now();
        await work();
        return performance.now() - start;
      };
      const times = async (amount, work) => {
        const took = [];
        for (let i = 0; i < amount; i++) took.push(await work());
        return took;
      };

      const { device } = gpu;
      const bytes = { size: 256 };
      const from = device.createBuffer({
        ...bytes,
        usage: GPUBufferUsage.COPY_SRC,
      });
      const to = device.createBuffer({
        ...bytes,
        usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ,
      });
      const plain = await times(3, () =>
        time(async () => {
          const encoder = device.createCommandEncoder();
          encoder.copyBufferToBuffer(from, 0, to, 0, 256);
          device.queue.submit([encoder.finish()]);
          await to.mapAsync(GPUMapMode.READ);
          to.unmap();
        }),
      );

      const inputs = workload.lerps(1000, 50);
      let error = 0;
      const before = counting.count();
      const batches = await times(15, async () => {
        const calls = inputs.map(({ a, b, t }) => gpu.lerp(a, b, t));
        let results;
        const took = await time(async () => {
          gpu.flush();
          results = await Promise.all(calls);
        });
        for (const [i, { a, b, t }] of inputs.entries()) {
          const expected = oracle.lerp(a, b, t);
          error = Math.max(error, oracle.error(results[i], expected));
        }
        return took;
      });
      const { nudges } = counting.since(before);
      await gpu.dispose();
      return { plain, batches, nudges, error };
    });
    const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
    const [poll, batch] = [median(plain), median(batches)];
    t.diagnostic(
      `a plain read-back ${poll.toFixed(1)} ms; flush to the last of 1,000 ` +
        `${batch.toFixed(1)} ms, ${(nudges / batches.length).toFixed(1)} nudges`,
    );
    assert.ok(error <= 3e-7, `largest error ${error}`);
    if (poll >= POLLED) {
      assert.ok(batch < poll * 0.8, `flush to last took ${batch} ms`);
      // How many each needs is found out meanwhile.
      assert.ok(nudges > 0, "nobody asked");
    }
  }));
