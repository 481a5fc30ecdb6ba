// When a batch is sent, on real frames: armed, idle, hidden, missing, and in a worker.
//
// Each test keeps a log of what happened in the page, in order, submissions
// included, and compares it with what should have happened.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const site = openSite();

/** Opens a session whose submissions are logged, as `gpu`, `log`, `call`, `note` and `frame`. */
async function logging(page, flush = "frame") {
  await page.evaluate(async (flush) => {
    window.log = [];
    window.note = (what) => log.push(what);
    window.gpu = await framebatch.open({ engine: "gpu", flush });
    const one = new Float32Array(1);
    await gpu.warmup(() => gpu.lerp(one, one, 0)); // What is ready goes at once.
    const { submit } = GPUQueue.prototype;
    GPUQueue.prototype.submit = function (buffers) {
      if (buffers.length > 0) note("submit");
      return submit.call(this, buffers);
    };
    window.call = (what) => {
      note(what);
      return gpu.lerp(new Float32Array([0]), new Float32Array([8]), 0.5);
    };
    window.frame = () => new Promise((run) => requestAnimationFrame(run));
    window.sleep = (ms) => new Promise((run) => setTimeout(run, ms));
  }, flush);
}

test("armed: calls of a timer, an event and two frame callbacks are one submission", () =>
  site.page(async (page) => {
    await logging(page);
    // Every frame, a timer that makes a call and asks for two callbacks of the next
    // frame; and, when the test clicks, an event.
    await page.evaluate(async () => {
      await call("warm");
      log.length = 0;
      const button = document.querySelector("button");
      button.addEventListener("click", () => call("event"));
      const start = () => {
        note("start");
        requestAnimationFrame(start);
        setTimeout(() => {
          call("timer");
          requestAnimationFrame(() => call("frame"));
          requestAnimationFrame(() => call("frame"));
        }, 3);
      };
      start();
    });
    const whole = ["timer", "event", "start", "frame", "frame"].join();
    for (let clicks = 1; ; clicks++) {
      await page.click("button");
      const log = await page.evaluate(async () => {
        for (let i = 0; i < 4; i++) await frame();
        return log;
      });
      const batches = log
        .join()
        .split(",submit")
        .slice(0, -1)
        .map((batch) => batch.replace(/^,?(start,)*/, ""));
      if (batches.includes(whole)) break;
      assert.ok(clicks < 20, `never ${whole}: ${batches.join(" | ")}`);
    }
  }));

test("idle: one submission at the end of the coming frame, and then rest", () =>
  site.page(async (page) => {
    await logging(page);
    const { first, resting } = await page.evaluate(async () => {
      let first = [];
      const whole = "task,task,frame,submit,next frame";
      // A frame that a busy machine draws too late is not waited for: another try.
      for (let tries = 0; tries < 5 && first.join() !== whole; tries++) {
        await sleep(1300);
        log.length = 0;
        requestAnimationFrame((start) => {
          call("frame");
          // Firefox draws twice when it wakes up, the second time at once.
          requestAnimationFrame(function next(now) {
            if (now - start < 8) requestAnimationFrame(next);
            else note("next frame");
          });
        });
        await Promise.all([call("task"), call("task")]);
        while (!log.includes("next frame")) await frame();
        first = log.slice();
      }

      await sleep(1300);
      const { requestAnimationFrame: original } = window;
      let resting = 0;
      window.requestAnimationFrame = (run) => {
        resting++;
        return original(run);
      };
      await sleep(300);
      window.requestAnimationFrame = original;
      return { first, resting };
    });
    assert.deepEqual(first, ["task", "task", "frame", "submit", "next frame"]);
    assert.equal(resting, 0, "frames asked for by an idle clock");
  }));

test("hidden: batches go on without frames, one a task", () =>
  site.page(async (page) => {
    await logging(page);
    const other = await site.browser.newPage();
    await other.bringToFront();
    await page.waitForFunction(() => document.hidden, { polling: 50 });
    // Chromium draws no frame now, and Firefox a few.
    await page.evaluate(withholdFrames);
    const { log, values, hidden } = await page.evaluate(async () => {
      log.length = 0;
      const values = [];
      for (let task = 0; task < 3; task++) {
        const calls = [call("call"), call("call")];
        values.push(...(await Promise.all(calls)).map(([value]) => value));
      }
      releaseFrames();
      return { log, values, hidden: document.hidden };
    });
    assert.ok(hidden, "the page was shown");
    assert.deepEqual(values, Array(6).fill(4));
    const batch = ["call", "call", "submit"];
    assert.deepEqual(log, [...batch, ...batch, ...batch]);

    await page.bringToFront();
    await other.close();
    // A frame that a busy machine draws too late is not waited for: another try.
    const back = await page.evaluate(async () => {
      for (let tries = 0; tries < 10 && log.at(-2) !== "frame"; tries++) {
        await frame();
        log.length = 0;
        requestAnimationFrame(() => note("frame"));
        await call("task");
      }
      return log;
    });
    assert.deepEqual(back, ["task", "frame", "submit"]);
  }));

// A page whose frames come only when the test lets them.
const withholdFrames = () => {
  const real = window.requestAnimationFrame.bind(window);
  const held = [];
  window.requestAnimationFrame = (run) => held.push(run);
  window.releaseFrames = () => {
    window.requestAnimationFrame = real;
    for (const run of held) real(run);
  };
};

test("going hidden sends at once", () =>
  site.page(
    async (page) => {
      await logging(page);
      const log = await page.evaluate(async () => {
        const answer = call("call");
        Object.defineProperty(document, "hidden", { get: () => true });
        document.dispatchEvent(new Event("visibilitychange"));
        note("hidden");
        await answer;
        return log;
      });
      assert.deepEqual(log, ["call", "submit", "hidden"]);
    },
    { prepare: withholdFrames },
  ));

test("missing frames: a timer once, then tasks, until frames return", () =>
  site.page(
    async (page) => {
      await logging(page);
      const { waits, values, log } = await page.evaluate(async () => {
        const waits = [];
        const values = [];
        for (let i = 0; i < 6; i++) {
          const start = performance.now();
          const answer = call("call");
          while (log.at(-1) !== "submit") await sleep(1);
          waits.push(performance.now() - start);
          values.push((await answer)[0]);
        }
        releaseFrames();
        // A frame that a busy machine draws too late is not waited for: another try.
        for (let tries = 0; tries < 10 && log[1] !== "frame"; tries++) {
          await frame();
          await frame();
          // A task between two frames.
          await sleep(1);
          log.length = 0;
          requestAnimationFrame(() => note("frame"));
          values.push((await call("call"))[0]);
        }
        return { waits, values, log };
      });
      assert.ok(values.length > 6 && values.every((value) => value === 4));
      const [first, ...later] = waits;
      assert.ok(first >= 95, `the first waited ${first} ms`);
      // Waiting for the timer, each of them would take 100.
      assert.ok(Math.min(...later) < 80, `the later ones waited ${later} ms`);
      assert.deepEqual(log, ["call", "frame", "submit"]);
    },
    { prepare: withholdFrames },
  ));

test("auto: calls that are awaited outside of frames wait for none", () =>
  site.page(
    async (page) => {
      await logging(page, "auto");
      const { values, log } = await page.evaluate(async () => {
        log.length = 0;
        const values = [];
        for (let i = 0; i < 5; i++) {
          const calls = [call("call"), call("call")];
          for (const [value] of await Promise.all(calls)) values.push(value);
        }
        return { values, log };
      });
      assert.deepEqual(values, Array(10).fill(4));
      const batch = ["call", "call", "submit"];
      assert.deepEqual(log, Array(5).fill(batch).flat());
    },
    { prepare: withholdFrames },
  ));

for (const first of [true, false]) {
  const order = first ? "before" : "behind";
  test(`auto: callbacks asked for ${order} the clock's make a page animate, with one submission a frame`, () =>
    site.page(async (page) => {
      await logging(page, "auto");
      await page.evaluate((first) => {
        const animate = (frames) =>
          new Promise((done) => {
            const step = () => {
              if (frames-- === 0) return done();
              // Each callback asks for the next one before or after its calls do.
              if (first) requestAnimationFrame(step);
              note("frame");
              call("callback");
              requestAnimationFrame(() => call("other"));
              if (!first) setTimeout(() => requestAnimationFrame(step));
            };
            requestAnimationFrame(step);
          });
        // What 30 frames of a page that animates logged.
        window.animated = async () => {
          const event = setInterval(() => call("event"), 3);
          await animate(4);
          log.length = 0;
          await animate(30);
          clearInterval(event);
          await call("last");
          return log.join().split("frame,").slice(1, -1);
        };
      }, first);

      // A frame that a busy machine draws too late may have two submissions or none: where many are
      // late, another try.
      for (let tries = 1; ; tries++) {
        const frames = await page.evaluate(() => animated());
        const counts = frames.map((frame) => frame.split("submit").length - 1);
        const submits = counts.reduce((sum, count) => sum + count, 0);
        // Far fewer than calls, whatever the machine does.
        const calls = frames.join().match(/event|callback|other/g).length;
        assert.ok(submits <= frames.length * 2, `${submits} of ${calls} calls`);
        const single = counts.filter((count) => count === 1).length;
        if (single >= counts.length * 0.7) break;
        assert.ok(tries < 5, counts.join(" "));
      }
    }));
}

test("a dedicated worker batches a task's calls", () =>
  site.page(async (page) => {
    const { error, submits, readMaps, engine } = await page.evaluate(
      () =>
        new Promise((resolve, reject) => {
          const worker = new Worker("/worker.js", { type: "module" });
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = ({ message }) => reject(new Error(message));
        }),
    );
    assert.ok(error < 3e-7, `largest error ${error}`);
    assert.equal(submits, 1);
    assert.equal(readMaps, 1);
    assert.equal(engine, "gpu");
  }));
