// Pages that rest: hidden with a worker at work, left and come back to, frozen.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chromiumTest, openSite } from "./site.mjs";

const site = openSite();

/** Opens `gpu`, and `events`, a log of what page and device tell. */
const opened = (page) =>
  page.evaluate(async () => {
    // Firefox takes the device away from a page that is left, and tells nobody: what was pending is
    // missed after so long.
    window.gpu = await framebatch.open({ engine: "gpu", stallMs: 5000 });
    window.events = [];
    addEventListener("pageshow", ({ persisted }) =>
      events.push(persisted ? "kept" : "loaded"),
    );
    for (const type of ["freeze", "resume"]) {
      document.addEventListener(type, () => events.push(type));
    }
    for (const type of ["restored", "fallback"]) {
      gpu.on(type, () => events.push(type));
    }
    window.call = (value) =>
      gpu.lerp(new Float32Array([0]), new Float32Array([value * 2]), 0.5);
  });

/** Firefox may tell of the maps that went with a worker that was ended in the middle of its calls. */
const ENDED = /AbortError: Buffer unmapped/;

test("hidden: a dedicated worker's calls go on at full speed", () => {
  const use = async (page) => {
    await page.evaluate(async () => {
      window.answers = [];
      window.worker = new Worker("/ticking.js", { type: "module" });
      worker.onmessage = ({ data }) => answers.push(data);
      while (answers.length < 20)
        await new Promise((run) => setTimeout(run, 5));
    });
    const other = await site.browser.newPage();
    await other.bringToFront();
    await page.waitForFunction(() => document.hidden, { polling: 50 });
    const took = await page.evaluate(async () => {
      answers.length = 0;
      const start = performance.now();
      const twenty = new Promise((done) =>
        worker.addEventListener("message", () => {
          if (answers.length === 20) done(performance.now() - start);
        }),
      );
      const took = await twenty;
      worker.terminate();
      return took;
    });
    const right = await page.evaluate(() => answers.every((right) => right));
    await other.close();
    assert.ok(right);
    // A worker that waited for throttled timers would answer once a second.
    assert.ok(took < 15_000, `20 answers took ${took} ms`);
  };
  return site.page(use, { may: ENDED });
});

test("a page that is left and come back to answers what was pending, and goes on", () =>
  site.page(async (page) => {
    await opened(page);
    await page.evaluate(() => {
      window.left = Promise.all([call(1), call(2)]);
    });
    await page.goto("about:blank");
    // `goBack` would wait for a load that never comes.
    await page.evaluate(() => setTimeout(() => history.back()));
    const returned = () =>
      window.events?.some((type) => /kept|loaded/.test(type));
    await page.waitForFunction(returned, { polling: 50 });
    const { values, events } = await page.evaluate(async () => {
      const answers = [...(await left), await call(3)];
      return { values: answers.map(([value]) => value), events };
    });
    assert.deepEqual(values, [1, 2, 3]);
    // Chromium keeps the device with the page; Firefox takes it away.
    assert.ok(events.includes("kept"), `${events}`);
    assert.ok(!events.includes("fallback"), `${events}`);
  }));

chromiumTest(
  "a page that is frozen and resumed goes on",
  "WebDriver BiDi has no command for it",
  () =>
    site.page(async (page) => {
      await opened(page);
      const protocol = await page.createCDPSession();
      const become = (state) =>
        protocol.send("Page.setWebLifecycleState", { state });
      await page.evaluate(() => {
        window.frozen = Promise.all([call(1), call(2)]);
      });
      await become("frozen");
      await new Promise((run) => setTimeout(run, 500));
      await become("active");
      const { values, events } = await page.evaluate(async () => {
        const answers = [...(await frozen), await call(3)];
        return { values: answers.map(([value]) => value), events };
      });
      assert.deepEqual(values, [1, 2, 3]);
      assert.deepEqual(events, ["freeze", "resume"]);
    }),
);
