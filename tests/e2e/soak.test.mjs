// Thousands of warm frames: nothing grows. And a few seconds of trouble, of which
// `make long` makes minutes.

import assert from "node:assert/strict";
import { BROWSER } from "../../tools/browser.mjs";
import { assertNothingLost } from "../../tools/soak.mjs";
import { chromiumTest, lightTest as test, openSite, times } from "./site.mjs";

const site = openSite();

// A frame takes 3 ms on GPUs in software.
const FRAMES = times(3_000, 10_000);
// Firefox computes some 30 small batches a second, in two sessions at once fewer.
const PER_SECOND = BROWSER === "firefox" ? 100 : 2000;

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
        pipelines: counting.count().created.createComputePipelineAsync,
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

test("losses, calls given up, deadlines and disposal at high rates", (t) =>
  site.page(async (page) => {
    const report = await page.evaluate(async (perSecond) => {
      const gpu = await framebatch.open({ engine: "gpu" });
      return trouble(gpu, { seconds: 3, seed: 1, perSecond });
    }, PER_SECOND);
    t.diagnostic(JSON.stringify(report));
    assertNothingLost(report);
  }));

chromiumTest(
  "sessions that were disposed of are collected, whatever they refused",
  "only its protocol collects garbage when told to",
  () =>
    site.page(async (page) => {
      const protocol = await page.createCDPSession();
      const round = async (sessions) => {
        await page.evaluate(async (sessions) => {
          window.sessions = [];
          for (let i = 0; i < sessions; i++) {
            const gpu = await framebatch.open({ engine: "cpu" });
            const two = new Float32Array(2);
            await gpu.lerp(two, two, new Float32Array([0, NaN])).then(
              () => Promise.reject(new Error("taken")),
              (error) =>
                error.code === "invalid-input" || Promise.reject(error),
            );
            await gpu.lerp(two, two, 0);
            await gpu.dispose();
            window.sessions.push(new WeakRef(gpu));
          }
        }, sessions);
        // Finalizers run between tasks, and free what the next collection finds; the browser
        // lets go of closed message ports some moments later.
        for (let i = 0; i < 3; i++) {
          await protocol.send("HeapProfiler.collectGarbage");
          await page.evaluate(
            () => new Promise((done) => setTimeout(done, 300)),
          );
        }
        const alive = await page.evaluate(
          () => window.sessions.filter((session) => session.deref()).length,
        );
        assert.ok(
          alive <= 1,
          `${alive} of ${sessions} sessions are still there`,
        );
        const { usedSize } = await protocol.send("Runtime.getHeapUsage");
        return usedSize;
      };
      // The engine's own tables grow with the first few hundred.
      await round(500);
      const before = await round(50);
      await round(300);
      const each = ((await round(50)) - before) / 350;
      assert.ok(each < 100, `a session leaves ${each} bytes behind`);
    }),
);
