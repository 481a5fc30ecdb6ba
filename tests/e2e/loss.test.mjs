// The device is taken away under load: every call is answered, and service resumes.
//
// The page's Traffic checks every answer; the tests only break things.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BROWSER } from "../../tools/browser.mjs";
import { chromiumTest, lightTest, openSite, times } from "./site.mjs";

const site = openSite();

// Lavapipe under Firefox computes some 30 small batches a second.
const PER_SECOND = BROWSER === "firefox" ? 200 : 2000;

/** The longest time without an answer, asked of an unshared machine only. */
const LONGEST_GAP_MS = times(Infinity, 2000);

/** Makes every adapter pass for hardware: `auto` chooses no other. */
const pretend = () => {
  const { prototype } = GPUDevice;
  const info = { vendor: "some", architecture: "hardware" };
  Object.defineProperty(prototype, "adapterInfo", { get: () => info });
};

/** Opens `gpu`, and `news`, `lose` and `sleep` with it. */
const opened = (page, options) =>
  page.evaluate(async (options) => {
    window.sleep = (ms) => new Promise((run) => setTimeout(run, ms));
    window.gpu = await framebatch.open({ engine: "gpu", ...options });
    window.news = [];
    for (const event of ["lost", "restored", "fallback"]) {
      gpu.on(event, ({ type }) => news.push(type));
    }
    // Destroys the device, and waits for what comes of it.
    window.lose = async (session = gpu) => {
      const { device } = session;
      const over = new Promise((resolve) => {
        session.on("restored", resolve);
        session.on("fallback", resolve);
      });
      device.destroy();
      await over;
      if (session.device === device) throw new Error("the device is the same");
    };
  }, options);

/** Every call was answered rightly; nothing else happened. */
function assertServed(report) {
  const { made, right, wrong, refused, unsettled, longestGap } = report;
  assert.deepEqual({ wrong, unsettled }, { wrong: 0, unsettled: 0 });
  assert.deepEqual(refused, {}, Object.values(report.reasons).join("\n"));
  assert.ok(right > 0 && right === made, `${right} right of ${made}`);
  assert.ok(longestGap <= LONGEST_GAP_MS, `no answer for ${longestGap} ms`);
  assert.deepEqual(report.uncaught, []);
}

const DESTROYED = times(6, 50);

test(`the device is destroyed ${DESTROYED} times under load`, (t) =>
  site.page(async (page) => {
    await opened(page);
    const { report, news, engine, after } = await page.evaluate(
      async (destroyed, perSecond) => {
        const moments = workload.random(7);
        const traffic = new Traffic(gpu, { perSecond });
        for (let i = 0; i < destroyed; i++) {
          // Without an answer in between, losses would be held against a batch and the GPU.
          const { right } = traffic;
          while (traffic.right === right) await sleep(5);
          // Calls whose kernels are compiled anew each time are given up after six losses.
          if (i % 4 === 3) await traffic.answers();
          await sleep(moments() * 200);
          await lose();
        }
        const { right } = traffic;
        // A slow machine takes its time; one that has no answer at all runs into the patience.
        const until = performance.now() + 60_000;
        while (traffic.right === right && performance.now() < until) {
          await sleep(20);
        }
        const report = await traffic.stop();
        const after = traffic.right - right;
        return { report, news, engine: gpu.info.engine, after };
      },
      DESTROYED,
      PER_SECOND,
    );
    t.diagnostic(`longest gap ${report.longestGap.toFixed(0)} ms`);
    assertServed(report);
    assert.ok(after > 0, "service did not resume");
    assert.equal(engine, "gpu");
    const pairs = Array(DESTROYED).fill(["lost", "restored"]).flat();
    assert.deepEqual(news, pairs);
  }));

const CRASHED = times(2, 5);

chromiumTest(
  `the GPU process crashes ${CRASHED} times under load`,
  "WebDriver BiDi has no command for it",
  (t) =>
    site.page(async (page) => {
      await opened(page);
      const browser = await site.browser.target().createCDPSession();
      await page.evaluate(() => (window.traffic = new Traffic(gpu)));
      for (let crash = 1; crash <= CRASHED; crash++) {
        await page.evaluate(async () => {
          // Without an answer in between, losses would be held against a batch and the GPU.
          const { right } = traffic;
          while (traffic.right === right) await sleep(5);
          await sleep(400);
        });
        await browser.send("Browser.crashGpuProcess");
        await page.waitForFunction(
          (crash) =>
            news.filter((type) => type === "restored").length === crash,
          { polling: 50 },
          crash,
        );
      }
      const { report, engine } = await page.evaluate(async () => {
        await sleep(400);
        return { report: await traffic.stop(), engine: gpu.info.engine };
      });
      await browser.detach();
      t.diagnostic(`longest gap ${report.longestGap.toFixed(0)} ms`);
      assertServed(report);
      assert.equal(engine, "gpu");
    }),
);

test("of two sessions, the one whose device stays hears and loses nothing", () =>
  site.page(async (page) => {
    await opened(page);
    const { kept, lost, news, same } = await page.evaluate(
      async (perSecond) => {
        // A busy machine may leave it without an answer for the usual ten seconds.
        const other = await framebatch.open({
          engine: "gpu",
          stallMs: 120_000,
        });
        const { device } = other;
        const news = [];
        for (const event of ["lost", "restored", "fallback"]) {
          other.on(event, ({ type }) => news.push(type));
        }
        const streams = [gpu, other].map(
          (session) => new Traffic(session, { perSecond: perSecond / 2 }),
        );
        const moments = workload.random(11);
        for (let i = 0; i < 3; i++) {
          // Without an answer in between, losses would be held against a batch and the GPU.
          const { right } = streams[0];
          while (streams[0].right === right) await sleep(5);
          await sleep(200 + moments() * 200);
          await lose(gpu);
        }
        const [lost, kept] = await Promise.all(streams.map((s) => s.stop()));
        return { kept, lost, news, same: other.device === device };
      },
      PER_SECOND,
    );
    assertServed(kept);
    assertServed(lost);
    assert.deepEqual(news, []);
    assert.ok(same, "the other's device changed");
  }));

const SESSIONS = times(6, 600);
const AT_A_TIME = times(6, 12);

test(`${SESSIONS} sessions at every load lose devices at every moment, and leave nothing waiting`, () =>
  site.page(
    async (page) => {
      let calls = 0;
      // One answer of a page may take minutes, but not many.
      for (let first = 1; first <= SESSIONS; first += AT_A_TIME) {
        const report = await page.evaluate(
          async (first, count) => {
            const { losingOften } = await import("/losing.js");
            return losingOften({ first, count, engines: ["auto", "gpu"] });
          },
          first,
          AT_A_TIME,
        );
        assert.deepEqual(report.bad, []);
        calls += report.calls;
      }
      assert.ok(calls > SESSIONS, `only ${calls} calls`);
    },
    { prepare: pretend },
  ));

test("a device that never stays: the CPU takes over, until there is one again", () =>
  site.page(async (page) => {
    await opened(page, { flush: "manual" });
    const seen = await page.evaluate(async () => {
      const { requestAdapter } = GPU.prototype;
      // There is no adapter for a while once the CPU has taken over.
      gpu.on("fallback", () => {
        GPU.prototype.requestAdapter = async () => null;
      });
      // Nothing is answered between the losses.
      while (gpu.device !== undefined) await lose();
      const served = async () => {
        const traffic = new Traffic(gpu);
        await sleep(200);
        const report = await traffic.stop();
        return { report, engine: gpu.info.engine, device: typeof gpu.device };
      };
      const meanwhile = await served();
      // What the CPU alone has seen.
      const once = gpu.tensor(new Float32Array(20_000).fill(3), undefined, {
        keep: false,
      });
      const half = gpu.tensor(new Float32Array(64).fill(5), undefined, {
        dtype: "f16",
        keep: false,
      });
      const before = [...news];
      const restored = new Promise((resolve) => gpu.on("restored", resolve));
      GPU.prototype.requestAdapter = requestAdapter;
      await restored;
      const sums = [once.mul(2).sum(), half.sum()].map((sum) => sum.read());
      gpu.flush();
      const values = (await Promise.all(sums)).map(([value]) => value);
      const shown = once.gpuBuffer() !== undefined;
      return { meanwhile, before, news, values, shown, after: await served() };
    });
    const { meanwhile, before, news, values, shown, after } = seen;
    for (const { report } of [meanwhile, after]) assertServed(report);
    assert.deepEqual(
      [meanwhile.engine, meanwhile.device],
      ["cpu", "undefined"],
    );
    assert.equal(before.at(-1), "fallback");
    assert.deepEqual([after.engine, after.device], ["gpu", "object"]);
    assert.deepEqual(news, [...before, "restored"]);
    assert.deepEqual([values, shown], [[120_000, 320], true]);
  }));

lightTest(
  "devices that had nothing to do are replaced as often as they go, whatever the CPU does",
  () =>
    site.page(async (page) => {
      await opened(page);
      const losses = 6; // More in a row than a GPU is given.
      const { report, news } = await page.evaluate(async (losses) => {
        const options = () => ({ engine: "cpu" });
        const traffic = new Traffic(gpu, { options });
        for (let loss = 0; loss < losses; loss++) {
          await sleep(1500);
          await lose();
        }
        return { report: await traffic.stop(), news };
      }, losses);
      assertServed(report);
      assert.deepEqual(news, Array(losses).fill(["lost", "restored"]).flat());
    }),
);

test("calls made as the device goes are answered, whether or not anything is compiled", () =>
  site.page(async (page) => {
    await opened(page);
    const reports = await page.evaluate(async () => {
      const reports = [];
      for (let round = 0; round < 2; round++) {
        const traffic = new Traffic(gpu);
        traffic.pause();
        const over = lose();
        for (let call = 0; call < 500; call++) traffic.call();
        await over;
        reports.push(await traffic.stop());
      }
      return reports;
    });
    reports.forEach(assertServed);
  }));

test("results that went with the device before anybody took them are computed again", () =>
  site.page(async (page) => {
    await opened(page, { flush: "manual" });
    const { values, news } = await page.evaluate(async () => {
      // The kernels are compiled; what is left to create are larger buffers, and a launch that
      // creates any waits for what its error scopes caught.
      const first = gpu.lerp(new Float32Array(1), new Float32Array(1), 1);
      gpu.flush();
      await first;
      const { device } = gpu;
      const { getMappedRange } = GPUBuffer.prototype;
      const { popErrorScope } = GPUDevice.prototype;
      const mapped = Promise.withResolvers();
      GPUBuffer.prototype.getMappedRange = function (...range) {
        mapped.resolve();
        return getMappedRange.apply(this, range);
      };
      GPUDevice.prototype.popErrorScope = async function () {
        const caught = popErrorScope.call(this);
        if (this !== device) return caught;
        await mapped.promise;
        device.destroy();
        return null;
      };
      const over = new Promise((resolve) => gpu.on("restored", resolve));
      const zeros = new Float32Array(50_000);
      const calls = [1, 2, 3].map((value) =>
        gpu.lerp(zeros, new Float32Array(50_000).fill(value), 1),
      );
      gpu.flush();
      const values = (await Promise.all(calls)).map(([value]) => value);
      await over;
      Object.assign(GPUBuffer.prototype, { getMappedRange });
      Object.assign(GPUDevice.prototype, { popErrorScope });
      return { values, news };
    });
    assert.deepEqual(values, [1, 2, 3]);
    assert.deepEqual(news, ["lost", "restored"]);
  }));

test("a batch that brings every device down is refused, and the others keep the GPU", () =>
  site.page(async (page) => {
    await opened(page, { flush: "manual" });
    const { refused, value, news, engine } = await page.evaluate(async () => {
      const call = (to) => {
        const call = gpu.lerp(new Float32Array([0]), new Float32Array([to]), 1);
        gpu.flush();
        return call;
      };
      let { device } = gpu;
      gpu.on("restored", () => (device = gpu.device));
      const { submit } = GPUQueue.prototype;
      GPUQueue.prototype.submit = function (buffers) {
        submit.call(this, buffers);
        if (buffers.length > 0) device.destroy();
      };
      const refused = await workload.outcome(call(1));
      GPUQueue.prototype.submit = submit;
      const [value] = await call(2);
      return { refused, value, news, engine: gpu.info.engine };
    });
    assert.equal(refused.code, "device-lost");
    assert.equal(value, 2);
    assert.equal(engine, "gpu");
    assert.ok(news.length > 2 && !news.includes("fallback"), news.join());
  }));

test("a GPU that answers nothing for stallMs is lost, and its calls are answered", () =>
  site.page(async (page) => {
    await opened(page, { stallMs: 2000 });
    const { values, news, waited } = await page.evaluate(async () => {
      const { mapAsync } = GPUBuffer.prototype;
      GPUBuffer.prototype.mapAsync = () => new Promise(() => {});
      const calls = [1, 2, 3].map((value) =>
        gpu.lerp(new Float32Array([0]), new Float32Array([value]), 1),
      );
      gpu.flush();
      const start = performance.now();
      gpu.on("lost", () => (GPUBuffer.prototype.mapAsync = mapAsync));
      const values = (await Promise.all(calls)).map(([value]) => value);
      return { values, news, waited: performance.now() - start };
    });
    assert.deepEqual(values, [1, 2, 3]);
    assert.deepEqual(news, ["lost", "restored"]);
    assert.ok(waited >= 2000 && waited < 60_000, `it took ${waited} ms`);
  }));

test("deadlineMs: a call that waits too long rejects, its neighbours are answered", () =>
  site.page(async (page) => {
    await opened(page, { flush: "manual" });
    const { late, value, pending } = await page.evaluate(async () => {
      const one = new Float32Array([1]);
      const late = gpu.lerp(one, one, 0, { deadlineMs: 30, label: "door" });
      const patient = gpu.lerp(one, one, 0);
      const outcome = await workload.outcome(late);
      gpu.flush();
      const [value] = await patient;
      return { late: outcome, value, pending: gpu.stats().pending };
    });
    assert.equal(late.code, "timeout");
    assert.match(late.message, /door.*30 ms/);
    assert.equal(value, 1);
    assert.equal(pending, 0);
  }));

test("a failed opening is not remembered", () =>
  site.page(async (page) => {
    const { first, second } = await page.evaluate(async () => {
      const { requestAdapter } = GPU.prototype;
      GPU.prototype.requestAdapter = async () => null;
      const call = () =>
        framebatch
          .shared({ engine: "gpu" })
          .lerp(new Float32Array([2]), new Float32Array([4]), 0.5);
      const first = await workload.outcome(call());
      GPU.prototype.requestAdapter = requestAdapter;
      return { first, second: await workload.outcome(call()) };
    });
    assert.equal(first.code, "no-adapter");
    assert.ok(first.known, "not a FramebatchError");
    assert.deepEqual(second, { value: [3] });
  }));
