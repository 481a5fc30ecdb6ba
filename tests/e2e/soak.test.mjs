// Thousands of warm frames: nothing grows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BROWSER } from "../../tools/browser.mjs";
import { openSite } from "./site.mjs";

const site = openSite();

// Firefox takes 3 ms a frame on lavapipe.
const FRAMES = BROWSER === "firefox" ? 3000 : 10_000;

test(`${FRAMES} frames hold what 1,000 held`, { timeout: 120_000 }, () =>
  site.page(async (page) => {
    const { early, late, wrong } = await page.evaluate(async (frames) => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const components = workload.lerps(16, 64);
      const turn = [workload.quaternions(4, 1), workload.quaternions(4, 2)];
      const expected = components.map(({ a, b, t }) => oracle.lerp(a, b, t));
      const held = () => ({
        liveBuffers: counting.count().liveBuffers,
        poolBytes: gpu.stats().pool.bytes,
        poolBuffers: gpu.stats().pool.buffers,
        wasmBytes: counting.wasmBytes(),
        pipelines: counting.count().created.createComputePipeline,
        modules: counting.count().created.createShaderModule,
        bindGroups: counting.count().created.createBindGroup,
      });
      let early;
      let wrong = 0;
      for (let frame = 1; frame <= frames; frame++) {
        const calls = components.map(({ a, b, t }) => gpu.lerp(a, b, t));
        calls.push(gpu.slerp(...turn, (frame % 100) / 100));
        gpu.flush();
        const results = await Promise.all(calls);
        const which = frame % components.length;
        if (oracle.error(results[which], expected[which]) > 3e-7) wrong++;
        if (frame === 1000) early = held();
      }
      const late = held();
      await gpu.dispose();
      return { early, late, wrong };
    }, FRAMES);
    assert.equal(wrong, 0);
    for (const [what, before] of Object.entries(early)) {
      assert.ok(before > 0, `${what} is not counted`);
      const growth = Math.abs(late[what] - before) / before;
      assert.ok(growth <= 0.01, `${what}: ${before}, then ${late[what]}`);
    }
  }),
);
