// Sessions in a worker, from a page that has no other: the same answers as in a session of
// the page's own, the messages that they take, and what becomes of losses and ends.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { BROWSER } from "../../tools/browser.mjs";
import { openSite, testOn } from "./site.mjs";

const site = openSite();
const pages = (use, options) =>
  site.page(use, { path: "/in-worker/", ...options });

// Lavapipe under Firefox computes some 30 small batches a second.
const PER_SECOND = BROWSER === "firefox" ? 200 : 1000;

/** Counts what of WebAssembly the page itself does. */
const watch = () => {
  window.compiled = 0;
  for (const method of ["compile", "compileStreaming", "instantiate"]) {
    WebAssembly[method] = () => (window.compiled += 1);
  }
  WebAssembly.instantiateStreaming = WebAssembly.compile;
};

test("the page loads no WebAssembly, and no script of the core", () =>
  pages(
    async (page) => {
      const loaded = await page.evaluate(async () => {
        const gpu = await framebatch.open();
        await gpu.lerp(new Float32Array(4), new Float32Array(4), 0.5);
        const { device, info } = gpu;
        const names = performance
          .getEntriesByType("resource")
          .map(({ name }) => new URL(name).pathname)
          .filter((name) => name.startsWith("/pkg/"));
        await gpu.dispose();
        const isOnCpu = info.engine === "cpu";
        return { names, device: String(device), isOnCpu, compiled };
      });
      const { names, ...rest } = loaded;
      const expected = { device: "undefined", isOnCpu: true, compiled: 0 };
      assert.deepEqual(rest, expected);
      // Browsers may count to the page what its worker's script imports.
      const ofWorker = /worker-script\.js$|wasm\/framebatch\.js$/;
      const own = names.filter((name) => !ofWorker.test(name)).sort();
      assert.deepEqual(own, ["/pkg/dist/shared.js", "/pkg/dist/worker.js"]);
      for (const name of own) {
        const text = readFileSync(name.slice(1), "utf8");
        assert.doesNotMatch(text, /from ?["'][^"']*\/wasm\//, name);
      }
    },
    { prepare: watch },
  ));

test("1,000 calls of a frame are one message each way, and one submission", () =>
  pages(async (page) => {
    const rounds = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "frame" });
      const inputs = workload.lerps(1000, 200);
      const rounds = [];
      for (let round = 0; round < 4; round += 1) {
        await new Promise((frame) => requestAnimationFrame(frame));
        const [before, { submits }] = [{ ...messages }, gpu.stats()];
        const error = await workload.lerpFrame(gpu, inputs);
        rounds.push({
          error,
          sent: messages.sent - before.sent,
          received: messages.received - before.received,
          submits: gpu.stats().submits - submits,
        });
      }
      await gpu.dispose();
      return rounds;
    });
    // The first round compiles, and may be answered in two.
    for (const { error, ...counts } of rounds.slice(1)) {
      assert.ok(error < 3e-7, `off by ${error}`);
      assert.deepEqual(counts, { sent: 1, received: 1, submits: 1 });
    }
  }));

for (const engine of ["gpu", "cpu"]) {
  testOn(engine)(
    `everything gives the same bits as in the page, on the ${engine}`,
    () =>
      pages(async (page) => {
        const wrong = await page.evaluate(async (engine) => {
          await import("framebatch/animation");
          await import("framebatch/kernels");
          await import("framebatch/search");
          const direct = await import("/pkg/dist/index.js");
          const work = async (gpu) => {
            const { floats, quaternions, bytes } = workload;
            const long = floats(40_000, 3);
            const x = gpu.tensor(floats(600, 1), [20, 30]);
            const held = gpu.tensor(long, [200, 200]);
            const decay = gpu.kernel({
              name: "decay",
              inputs: { height: "f32", speed: "f32" },
              params: { dt: "f32" },
              output: "f32",
              code: "fn element(height: f32, speed: f32) -> f32 { return height * exp(-speed * params.dt); }",
            });
            const step = gpu.fn((a, b) => a.mul(2).sub(b).tanh());
            const clip = gpu.clip({
              tracks: [{ times: [0, 1, 2], values: floats(12, 9) }],
            });
            const index = gpu.index({ dim: 16 });
            index.add(floats(16 * 300, 5));
            const kept = await held.mul(2).softmax().compute();
            await kept.write(floats(50, 8), 100);
            const stream = [];
            const chunks = [1, 2, 3, 4].map((seed) => bytes(160, seed));
            for await (const part of gpu.stream(chunks, (chunk) =>
              gpu.states.gradients(chunk),
            )) {
              stream.push(part);
            }
            const found = await index.search(floats(16, 6), 5);
            const arrays = await Promise.all([
              gpu.lerp(floats(100, 1), floats(100, 2), 0.3),
              gpu.slerp(quaternions(50, 1), quaternions(50, 2), floats(50, 4)),
              gpu.states.slerp(bytes(160, 1), bytes(160, 2), 0.25),
              gpu.states.sequence(bytes(16, 1), bytes(16, 2), 7, "slerp"),
              x.softmax().read(),
              x.matmul(x.transpose()).read(),
              held.sum(1).read(),
              kept.read(),
              step(x, x).read(),
              ...(engine === "gpu"
                ? [decay({ height: x, speed: x }, { dt: 0.1 }).read()]
                : []),
              clip.sample(new Float32Array([0.25, 1.5])),
              gpu.lerp(long, long, 0.5, { priority: "high" }),
              gpu.lerp(floats(64, 1), floats(64, 2), 0.1, { priority: "low" }),
            ]);
            return [...arrays, ...stream, JSON.stringify(found)];
          };
          const options = { engine };
          const [here, there] = [
            await direct.open(options),
            await framebatch.open(options),
          ];
          const [own, others] = [await work(here), await work(there)];
          const text = (result) =>
            typeof result === "string"
              ? result
              : `${result.constructor.name} ${new Uint8Array(result.buffer, result.byteOffset, result.byteLength)}`;
          const wrong = own
            .map((result, at) => [at, text(result), text(others[at])])
            .filter(([, mine, other]) => mine !== other)
            .map(([at, mine, other]) => [
              at,
              mine.slice(0, 80),
              other.slice(0, 80),
            ]);
          await Promise.all([here.dispose(), there.dispose()]);
          return { wrong, count: others.length };
        }, engine);
        assert.deepEqual(wrong.wrong, []);
        assert.ok(wrong.count > 15);
      }),
  );
}

test("errors have the codes and words of a session of the page's own", () =>
  pages(async (page) => {
    const outcomes = await page.evaluate(async () => {
      await import("framebatch/kernels");
      const direct = await import("/pkg/dist/index.js");
      const work = async (gpu) => {
        const f32 = (...values) => new Float32Array(values);
        const given = new AbortController();
        const gone = gpu.lerp(f32(1), f32(1), 0, { signal: given.signal });
        given.abort(new Error("enough"));
        const kernel = gpu.kernel({
          name: "alone",
          inputs: { x: "f32" },
          output: "f32",
          code: "fn element(x: f32) -> f32 { return x; }",
        });
        const calls = [
          gone,
          gpu.lerp(f32(1), f32(1, 2), 0),
          gpu.states.gradients(new Uint8Array(16), { field: "m0 +" }),
          gpu
            .tensor(f32(1, 2))
            .matmul(gpu.tensor(f32(1, 2)))
            .read(),
          kernel({ x: f32(1) }).read(),
          gpu.lerp(f32(1), f32(1), 0, { engine: "gpu" }),
        ];
        const settled = await Promise.allSettled(
          calls.map(async (call) => call),
        );
        return settled.map(({ reason }) => [reason?.code, reason?.message]);
      };
      const outcomes = [];
      for (const { open } of [direct, framebatch]) {
        const gpu = await open({ engine: "cpu" });
        outcomes.push(await work(gpu).catch((error) => String(error)));
        await gpu.dispose();
      }
      return outcomes;
    });
    assert.deepEqual(outcomes[1], outcomes[0]);
    assert.ok(outcomes[0].filter(([, message]) => message).length > 4);
  }));

test("compilers' errors name the kernel's own line, as in the page", () =>
  pages(
    async (page) => {
      const [own, other] = await page.evaluate(async () => {
        await import("framebatch/kernels");
        const direct = await import("/pkg/dist/index.js");
        const outcomes = [];
        for (const { open } of [direct, framebatch]) {
          const gpu = await open({ engine: "gpu" });
          const kernel = gpu.kernel({
            name: "wrong",
            inputs: { x: "f32" },
            output: "f32",
            code: "fn element(x: f32) -> f32 {\n  let whole: i32 = x;\n  return x;\n}",
          });
          const call = kernel({ x: new Float32Array([1]) }).read();
          outcomes.push(
            await call.catch(({ code, message }) => [code, message]),
          );
          await gpu.dispose();
        }
        return outcomes;
      });
      assert.deepEqual(other, own);
      assert.match(own[1], /wrong:2:/);
    },
    // Browsers tell the console, too.
    { may: /while creating shader module|parsing (error|WGSL)|ShaderModule/ },
  ));

test("what a page asks of a session while it lives", () =>
  pages(async (page) => {
    const found = await page.evaluate(async () => {
      const direct = await import("/pkg/dist/index.js");
      const options = { engine: "gpu", maxBatchSize: 5000 };
      const gpu = await framebatch.open(options);
      const own = await direct.open(options);
      const f32 = new Float32Array(16);
      const plan = (session) =>
        session.explain(() => session.lerp(f32, f32, 0));
      const sizes = [
        { bytesPerItem: 1e6 },
        { modelBytes: 30e6, bytesPerItem: 123_456 },
        { bytesPerItem: 1 },
        { modelBytes: 30e6, sequenceLength: 128, hiddenSize: 384 },
        { sequenceLength: 7, hiddenSize: 12, intermediateSize: 50 },
      ];
      const counts = (session) =>
        sizes.map((size) => session.optimalBatchSize(size));
      await gpu.warmup(() => gpu.slerp(f32, f32, 0));
      const { length } = await gpu.slerp(f32, f32, 0);
      const batches = [];
      const off = gpu.on("batch", ({ calls, startTime, wallMs }) =>
        batches.push([calls, performance.now() - startTime >= wallMs - 5]),
      );
      await Promise.all([gpu.lerp(f32, f32, 0), gpu.lerp(f32, f32, 1)]);
      off();
      const profile = await gpu.profile(() => gpu.lerp(f32, f32, 0));
      const found = {
        isPlan: (await plan(gpu)) === plan(own),
        sizes: JSON.stringify(counts(gpu)) === JSON.stringify(counts(own)),
        ...{ length, batches, calls: profile.calls.mean ?? profile.calls },
        room: gpu.desiredSize === own.desiredSize,
        adapter: gpu.info.adapter === own.info.adapter,
        shared: framebatch.shared() === framebatch.shared(),
      };
      await Promise.all([
        gpu.dispose(),
        own.dispose(),
        framebatch.shared().dispose(),
      ]);
      return found;
    });
    assert.deepEqual(found, {
      isPlan: true,
      sizes: true,
      length: 16,
      batches: [[2, true]],
      calls: 1,
      room: true,
      adapter: true,
      shared: true,
    });
  }));

/** A session in a worker whose device goes when the page says so. */
const frail = (page) =>
  page.evaluate(async () => {
    window.worker = new Worker("/in-worker/frail.js", { type: "module" });
    await new Promise((ready) =>
      worker.addEventListener("message", ready, { once: true }),
    );
    window.gpu = await framebatch.open({ engine: "gpu", worker });
    window.news = [];
    for (const event of ["lost", "restored", "fallback"]) {
      gpu.on(event, ({ type }) => news.push(type));
    }
  });

test("the device is destroyed under load: no answer is lost, and tensors come back", () =>
  pages(async (page) => {
    await frail(page);
    const found = await page.evaluate(async (perSecond) => {
      const kept = gpu.tensor(workload.floats(20_000, 1));
      const computed = await kept.mul(2).compute();
      const right = await kept.mul(2).sum().read();
      const traffic = new Traffic(gpu, { perSecond });
      const sums = [];
      for (let i = 0; i < 4; i += 1) {
        const { right } = traffic;
        while (traffic.right === right)
          await new Promise((run) => setTimeout(run, 5));
        const over = new Promise((run) => gpu.on("restored", run));
        sums.push(computed.sum().read());
        worker.postMessage("destroy");
        sums.push(computed.sum().read());
        await over;
        sums.push(computed.sum().read());
      }
      const report = await traffic.stop();
      const wrong = (await Promise.all(sums)).filter(([x]) => x !== right[0]);
      await gpu.dispose();
      return { report, news, wrong: wrong.length };
    }, PER_SECOND);
    const { made, right, wrong, refused, unsettled, uncaught } = found.report;
    assert.deepEqual(
      { wrong, refused, unsettled, uncaught },
      { wrong: 0, refused: {}, unsettled: 0, uncaught: [] },
    );
    assert.ok(right > 0 && right === made, `${right} right of ${made}`);
    assert.equal(found.wrong, 0, "sums of a computed tensor");
    assert.deepEqual(found.news, Array(4).fill(["lost", "restored"]).flat());
  }));

test("a worker that is terminated ends its sessions, and nothing stays pending", () =>
  pages(async (page) => {
    await frail(page);
    const found = await page.evaluate(async () => {
      const f32 = new Float32Array(4);
      const other = await framebatch.open({ engine: "cpu", worker });
      const calls = [gpu, other].map((session) => session.lerp(f32, f32, 0));
      await Promise.all(calls);
      const index = gpu.tensor(new Float32Array(20_000)).sum().read();
      const late = other.lerp(f32, f32, 0);
      const plan = gpu.explain(() => {}).catch(({ code }) => code);
      worker.terminate();
      const codeOf = (call) =>
        call.then(
          () => "answered",
          ({ code }) => code,
        );
      const codes = await Promise.all([index, late].map(codeOf));
      codes.push(await codeOf(gpu.lerp(f32, f32, 0)));
      codes.push(await codeOf(other.ready));
      const next = await framebatch.open({ engine: "cpu" });
      const [answer] = await next.lerp(f32, f32, 0);
      await next.dispose();
      return { codes, answer, plan: typeof (await plan) };
    });
    assert.deepEqual(found, {
      codes: ["fatal", "fatal", "fatal", "fatal"],
      answer: 0,
      plan: "string",
    });
  }));

test("a worker that cannot be started says so", () =>
  pages(
    async (page) => {
      const outcome = await page.evaluate(() =>
        framebatch
          .open({ worker: "/nowhere.js" })
          .catch(({ code, message }) => `${code}: ${message}`),
      );
      assert.match(outcome, /^unsupported: the worker could not be started/);
    },
    { may: /404|nowhere/ },
  ));
