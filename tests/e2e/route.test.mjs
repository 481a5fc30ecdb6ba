// Two devices in one session: calls that say where they run, and a session that chooses.
//
// Every machine here has a GPU in software, which is never chosen. So a page that is to
// choose is told that its adapter is a real one.

import assert from "node:assert/strict";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

/** Makes every adapter pass for hardware. */
const pretend = () => {
  const { prototype } = GPUDevice;
  const info = { vendor: "some", architecture: "hardware" };
  Object.defineProperty(prototype, "adapterInfo", { get: () => info });
};

test("calls of one frame run where they ask to", () =>
  site.page(async (page) => {
    const { answers, ranOn, batches, plan } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const bias = gpu.tensor(new Float32Array(20_000).fill(2)); // Resident at once.
      const engines = ["cpu", undefined, "gpu", "cpu", "gpu", "cpu"];
      const ask = (engine, i) => [
        gpu.lerp(Float32Array.of(i), Float32Array.of(i + 2), 0.5, { engine }),
        bias.slice([0, 4]).add(i).read({ engine }),
      ];
      const promises = engines.flatMap(ask);
      gpu.flush();
      const answers = (await Promise.all(promises)).map((floats) => [
        ...floats,
      ]);
      const { ranOn, batches } = gpu.stats();
      const plan = gpu.explain(() => engines.forEach(ask));
      await gpu.dispose();
      return { answers, ranOn, batches, plan };
    });
    const expected = [0, 1, 2, 3, 4, 5].flatMap((i) => [
      [i + 1],
      [i + 2, i + 2, i + 2, i + 2],
    ]);
    assert.deepEqual(answers, expected);
    assert.deepEqual(
      { ranOn, batches },
      { ranOn: { gpu: 6, cpu: 6 }, batches: 1 },
    );
    assert.match(plan, /^on the cpu\n[^]*\non the gpu\n/);
  }));

test("what the CPU answers asks nothing of the GPU", () =>
  site.page(async (page) => {
    const { ranOn, asked, late } = await page.evaluate(async () => {
      let asked = 0;
      for (const { prototype } of [GPUDevice, GPUQueue]) {
        for (const name of Object.getOwnPropertyNames(prototype)) {
          const { value } = Object.getOwnPropertyDescriptor(prototype, name);
          if (typeof value !== "function" || name === "constructor") continue;
          prototype[name] = function (...given) {
            asked += 1;
            return value.apply(this, given);
          };
        }
      }
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const ask = async (engine) => {
        const answer = gpu.lerp(Float32Array.of(1), Float32Array.of(3), 0.5, {
          engine,
        });
        gpu.flush();
        await answer;
      };
      // Until it is known how answers are hurried.
      for (let n = 0; n < 40; n++) await ask("gpu");
      await new Promise((resolve) => setTimeout(resolve, 100));
      const before = asked;
      for (let n = 0; n < 40; n++) {
        await ask("cpu");
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      const late = asked - before;
      const { ranOn } = gpu.stats();
      await gpu.dispose();
      return { ranOn, asked: before, late };
    });
    assert.deepEqual(ranOn, { gpu: 40, cpu: 40 });
    assert.ok(asked > 40, `${asked} questions are counted`);
    assert.equal(late, 0);
  }));

test("a device that there is not is an error of the call alone", () =>
  site.page(async (page) => {
    const codes = await page.evaluate(async () => {
      const one = Float32Array.of(1);
      const codeOf = (promise) => promise.catch(({ code }) => code);
      const cpu = await framebatch.open({ engine: "cpu" });
      const gpu = await framebatch.open({ engine: "gpu" });
      const large = gpu.tensor(new Float32Array(300_000));
      const codes = await Promise.all([
        codeOf(cpu.lerp(one, one, 0, { engine: "gpu" })),
        codeOf(large.sum().read({ engine: "cpu" })),
        cpu.lerp(one, one, 0, { engine: "cpu" }).then(String),
        large.sum().read({ engine: "gpu" }).then(String),
      ]);
      // The CPU has what is no longer than 262,144 floats, however it is packed.
      for (const dtype of ["f16", "bf16", "int8"]) {
        for (const floats of [262_144, 262_208]) {
          const packed = gpu.tensor(new Float32Array(floats), undefined, {
            dtype,
          });
          const sum = packed.sum().read({ engine: "cpu" });
          codes.push(await codeOf(sum.then(String)));
        }
      }
      await cpu.dispose();
      await gpu.dispose();
      return codes;
    });
    assert.deepEqual(codes, [
      ...["no-adapter", "invalid-input", "1", "0"],
      ...["0", "invalid-input", "0", "invalid-input", "0", "invalid-input"],
    ]);
  }));

test("calls on the CPU go on while the GPU is away", () =>
  site.page(async (page) => {
    const { early, ranOn } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const ask = (engine) =>
        gpu.lerp(Float32Array.of(1), Float32Array.of(3), 0.5, { engine });
      await ask("gpu");
      let isBack = false;
      gpu.on("restored", () => (isBack = true));
      const lost = new Promise((resolve) => gpu.on("lost", resolve));
      gpu.device.destroy();
      await lost;
      const waiting = Array.from({ length: 5 }, () => ask("gpu"));
      let early = 0;
      for (let i = 0; i < 3; i++) {
        const pair = [ask("gpu"), ask("cpu")];
        waiting.push(pair[0]);
        gpu.flush();
        await pair[1];
        if (!isBack) early++;
      }
      await Promise.all(waiting);
      const { ranOn } = gpu.stats();
      await gpu.dispose();
      return { early, ranOn };
    });
    assert.ok(early > 0, "the GPU was back before the first answer");
    assert.deepEqual(ranOn, { gpu: 9, cpu: 3 });
  }));

test("a session that chooses measures once, remembers it, and answers rightly", () =>
  site.page(
    async (page) => {
      const found = await page.evaluate(async () => {
        localStorage.clear();
        const gpu = await framebatch.open();
        const { engine, routing: before } = gpu.info;
        const inputs = workload.lerps(100, 50);
        const wrong = async () => {
          const answers = await Promise.all(
            inputs.map(({ a, b, t }) => gpu.lerp(a, b, t)),
          );
          return answers.filter((floats, i) => {
            const { a, b, t } = inputs[i];
            const near = (x, k) =>
              Math.abs(x - (a[k] + (b[k] - a[k]) * t)) <= 1e-5;
            return !floats.every(near);
          }).length;
        };
        const sums = [await wrong()];
        // On a busy machine it may be measured again, some time later and after an answer.
        let more = 0;
        while (!gpu.info.routing.calibrated) {
          await new Promise((run) => setTimeout(run, 100));
          const { a, b, t } = inputs[0];
          await gpu.lerp(a, b, t, { engine: "cpu" });
          more += 1;
        }
        const { routing } = gpu.info;
        for (let frame = 0; frame < 5; frame++) sums.push(await wrong());
        const stats = gpu.stats();
        const plan = gpu.explain(() => gpu.lerp(inputs[0].a, inputs[0].b, 0));
        await gpu.dispose();
        const kept = Object.entries(localStorage);
        const next = await framebatch.open();
        const again = next.info.routing;
        await next.dispose();
        const asked = 600 + more;
        return {
          engine,
          before,
          routing,
          sums,
          asked,
          stats,
          plan,
          kept,
          again,
        };
      });
      const { calibrated, ...facts } = found.routing;
      assert.equal(found.engine, "gpu");
      assert.equal(found.before.calibrated, false);
      assert.deepEqual(new Set(found.sums), new Set([0]));
      const { ranOn, settled } = found.stats;
      const { asked } = found;
      assert.deepEqual([settled, ranOn.gpu + ranOn.cpu], [asked, asked]);
      assert.match(found.plan, /^on the (c|g)pu\n/);
      const [[key, text]] = found.kept;
      assert.equal(found.kept.length, 1);
      assert.match(key, /^framebatch \d+\.\d+\.\d+ some hardware hardware 19$/);
      assert.deepEqual(JSON.parse(text).slice(0, 16), Object.values(facts));
      assert.deepEqual(found.again, found.routing);
    },
    { prepare: pretend },
  ));

test("a page that is busy from its start takes its own frames for no device's", () =>
  site.page(
    async (page) => {
      const found = await page.evaluate(async () => {
        localStorage.clear();
        let probes = 0;
        const { mapAsync } = GPUBuffer.prototype;
        GPUBuffer.prototype.mapAsync = function (...given) {
          probes += 1;
          return mapAsync.apply(this, given);
        };
        const gpu = await framebatch.open();
        const before = gpu.info.routing;
        while (probes < 20) {
          const frame = new Promise((run) => requestAnimationFrame(run));
          const answer = gpu.lerp(Float32Array.of(1), Float32Array.of(3), 0.5, {
            engine: "cpu",
          });
          gpu.flush();
          await Promise.all([frame, answer]);
          const start = performance.now();
          while (performance.now() - start < 30);
        }
        const { routing } = gpu.info;
        await gpu.dispose();
        return { before, routing, kept: localStorage.length };
      });
      assert.equal(found.before.calibrated, false);
      assert.deepEqual(found.routing, found.before);
      assert.equal(found.kept, 0);
    },
    { prepare: pretend },
  ));

test("a GPU in software does not take the place of a lost one that was chosen", () =>
  site.page(
    async (page) => {
      const found = await page.evaluate(async () => {
        const { requestDevice } = GPUAdapter.prototype;
        const opened = [];
        GPUAdapter.prototype.requestDevice = async function (options) {
          opened.push(await requestDevice.call(this, options));
          return opened.at(-1);
        };
        const gpu = await framebatch.open();
        const ask = () =>
          gpu.lerp(Float32Array.of(1), Float32Array.of(3), 0.5).then(String);
        const before = [gpu.info.engine, "reason" in gpu.info];
        const news = [];
        const over = new Promise((resolve) => {
          gpu.on("restored", ({ type }) => resolve(news.push(type)));
          gpu.on("fallback", ({ type }) => resolve(news.push(type)));
        });
        delete GPUDevice.prototype.adapterInfo; // What it is shows again.
        Object.defineProperty(GPUDevice.prototype, "adapterInfo", own);
        gpu.device.destroy();
        await over;
        const answer = await ask();
        const { engine, reason } = gpu.info;
        await gpu.dispose();
        // Where one were kept, this would wait for ever.
        await Promise.all(opened.map(({ lost }) => lost));
        const others = opened.length - 1;
        return { before, news, answer, engine, reason, others };
      });
      assert.ok(found.others > 0, "no other was asked for");
      delete found.others;
      assert.deepEqual(found, {
        before: ["gpu", false],
        news: ["fallback"],
        answer: "2",
        engine: "cpu",
        reason: "device-lost",
      });
    },
    {
      prepare: () => {
        const { prototype } = GPUDevice;
        const info = { vendor: "some", architecture: "hardware" };
        window.own = Object.getOwnPropertyDescriptor(prototype, "adapterInfo");
        Object.defineProperty(prototype, "adapterInfo", {
          get: () => info,
          configurable: true,
        });
      },
    },
  ));

test("a session without a GPU in hardware says that it runs on the CPU", () =>
  site.page(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = framebatch.shared();
      const news = new Promise((resolve) => gpu.on("fallback", resolve));
      const { type, message } = await news;
      await gpu.lerp(Float32Array.of(1), Float32Array.of(3), 0.5);
      const { engine, reason } = gpu.info;
      const chooses = "routing" in gpu.info;
      const { ranOn } = gpu.stats();
      await gpu.dispose();
      return { type, message, engine, reason, chooses, ranOn };
    });
    const ranOn = { gpu: 0, cpu: 1 };
    assert.deepEqual(found, {
      type: "fallback",
      message:
        "calls run on the CPU, because the only GPU adapter is a software one",
      engine: "cpu",
      reason: "software-adapter",
      chooses: false,
      ranOn,
    });
  }));
