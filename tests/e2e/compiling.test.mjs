// Kernels are compiled once, beside the page, and only those wait who need them.
//
// The test holds compilers back, so that it can look at what goes on meanwhile.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const site = openSite();

/** A `gpu` whose compilers end when the test says `compile()`, and calls of two kernels. */
const opened = (page) =>
  page.evaluate(async () => {
    window.gpu = await framebatch.open({ engine: "gpu" });
    const { createComputePipelineAsync } = GPUDevice.prototype;
    let held = [];
    GPUDevice.prototype.createComputePipelineAsync = async function (desc) {
      const made = createComputePipelineAsync.call(this, desc);
      made.catch(() => {});
      await new Promise((run) => held.push(run));
      return made;
    };
    window.compiling = () => held.length;
    window.compile = () => {
      for (const run of held) run();
      held = [];
    };
    const quaternion = new Float32Array([0, 0, 0, 1]);
    window.lerp = async (value, options) => {
      const to = new Float32Array([2 * value]);
      return (await gpu.lerp(new Float32Array(1), to, 0.5, options))[0];
    };
    window.slerp = async (options) =>
      (await gpu.slerp(quaternion, quaternion, 0.5, options))[3];
    window.sleep = (ms) => new Promise((run) => setTimeout(run, ms));
    window.state = async (promise) => {
      const nothing = sleep(0).then(() => "waiting");
      const code = promise.then(
        () => "answered",
        (error) => error.code ?? String(error),
      );
      return Promise.race([code, nothing]);
    };
    // A compiler of its own for lerp, so that there is something ready.
    const warm = gpu.warmup(() => lerp(1).catch(() => {}));
    await Promise.resolve();
    window.compile();
    await warm;
  });

test("batches that need the same kernel wait for one compiler", () =>
  site.page(async (page) => {
    await opened(page);
    const { values, created, again, submits } = await page.evaluate(
      async () => {
        const before = counting.count();
        const calls = [1, 2, 3].map(() => slerp({ flush: "now" }));
        const submits = counting.since(before).submits;
        compile();
        const values = await Promise.all(calls);
        const { created } = counting.since(before);
        await Promise.all([slerp(), lerp(1)]);
        const { counts } = await counting.during(() =>
          Promise.all([slerp(), lerp(2)]),
        );
        return { values, created, again: counting.lasting(counts), submits };
      },
    );
    assert.deepEqual(values, [1, 1, 1]);
    assert.equal(submits, 0);
    assert.equal(created.createComputePipelineAsync, 1);
    assert.equal(created.createComputePipeline, 0);
    assert.equal(created.createShaderModule, 1);
    assert.deepEqual(again, {});
  }));

test("what is ready does not wait for what is not", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const news = slerp();
      const frames = [];
      for (let frame = 1; frame <= 5; frame++) frames.push(await lerp(frame));
      const meanwhile = [await state(news), compiling()];
      compile();
      return { frames, meanwhile, value: await news };
    });
    assert.deepEqual(seen, {
      frames: [1, 2, 3, 4, 5],
      meanwhile: ["waiting", 1],
      value: 1,
    });
  }));

test("a call that waits for a compiler is given up, late, or disposed of", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const controller = new AbortController();
      const aborted = slerp({ signal: controller.signal });
      const late = slerp({ deadlineMs: 30 });
      const stays = slerp();
      for (const call of [aborted, late, stays]) call.catch(() => {});
      gpu.flush();
      controller.abort("given up");
      const codes = [await state(aborted)];
      await sleep(60);
      codes.push(await state(late), await state(stays));
      const warm = gpu.warmup(() => slerp().catch(() => {}));
      warm.catch(() => {});
      await gpu.dispose();
      codes.push(await state(stays), await state(warm));
      compile();
      await sleep(30);
      return codes;
    });
    const end = ["waiting", "disposed", "disposed"];
    assert.deepEqual(seen, ["given up", "timeout", ...end]);
  }));

test("readers of a write that is given up while it compiles wait for nothing else", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const clip = gpu.clip({ tracks: [{ times: [0], values: [8] }] });
      const pose = gpu.tensor(new Float32Array(16_384).fill(3));
      const read = async () => (await pose.mul(2).read())[0];
      const warm = read();
      await sleep(50);
      compile();
      const values = [await warm];
      const times = new Float32Array(16_384);
      const options = [
        () => {
          const controller = new AbortController();
          setTimeout(() => controller.abort("given up"), 100);
          return { signal: controller.signal };
        },
        () => ({ deadlineMs: 100 }),
      ];
      for (const option of options) {
        const write = state(clip.sampleTo(pose, times, option()));
        gpu.flush();
        const reader = read();
        gpu.flush();
        const meanwhile = await state(reader);
        values.push(meanwhile, await reader, compiling());
        await write;
      }
      return values;
    });
    assert.deepEqual(seen, [6, "waiting", 6, 1, "waiting", 6, 1]);
  }));

test("a device lost while it compiles costs no call", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const restored = new Promise((run) => gpu.on("restored", run));
      const calls = [slerp(), slerp()];
      const warm = gpu.warmup(() => slerp().catch(() => {}));
      gpu.flush();
      await sleep(0);
      gpu.device.destroy();
      await restored;
      // The new device compiles all anew; what the old one still does is not heard.
      const over = Promise.all([...calls, lerp(5), warm]);
      while ((await state(over)) === "waiting") compile();
      return over;
    });
    assert.deepEqual(seen.slice(0, 3), [1, 1, 5]);
  }));

test("a kernel that does not compile fails its own calls, and a warm-up", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const { createShaderModule } = GPUDevice.prototype;
      GPUDevice.prototype.createShaderModule = function (desc) {
        return createShaderModule.call(this, {
          ...desc,
          code: desc.code.replace("fn main", "fn nothing"),
        });
      };
      const uncaptured = [];
      gpu.device.addEventListener("uncapturederror", ({ error }) =>
        uncaptured.push(error.message),
      );
      const codes = async () => {
        const calls = [slerp(), lerp(3), slerp()];
        const warm = gpu.warmup(() => slerp().catch(() => {}));
        warm.catch(() => {});
        gpu.flush();
        compile();
        await Promise.allSettled([...calls, warm]);
        return Promise.all([...calls, warm].map(state));
      };
      const broken = await codes();
      GPUDevice.prototype.createShaderModule = createShaderModule;
      // What did not compile is tried again.
      await state(slerp({ flush: "now" }));
      compile();
      const mended = await codes();
      return { broken, mended, uncaptured };
    });
    assert.deepEqual(seen, {
      broken: ["shader", "answered", "shader", "shader"],
      mended: Array(4).fill("answered"),
      uncaptured: [],
    });
  }));

test("warmup compiles and sends nothing; the first call then creates no pipeline", () =>
  site.page(async (page) => {
    await opened(page);
    const { warm, first } = await page.evaluate(async () => {
      const warm = await counting.during(async () => {
        const warm = gpu.warmup(() => slerp().catch(() => {}));
        await Promise.resolve();
        compile();
        await warm;
      });
      const first = await counting.during(() => slerp());
      return { warm: warm.counts, first: first.counts };
    });
    assert.equal(warm.submits, 0);
    assert.equal(warm.created.createComputePipelineAsync, 1);
    assert.equal(first.submits, 1);
    assert.equal(first.created.createComputePipelineAsync, 0);
    assert.equal(first.created.createComputePipeline, 0);
  }));

for (const engine of ["gpu", "cpu"]) {
  test(`calls made behind a warm-up in its task have their own operands, on the ${engine}`, () =>
    site.page(async (page) => {
      const answers = await page.evaluate(async (engine) => {
        const gpu = await framebatch.open({ engine, flush: "manual" });
        const ask = (x) =>
          gpu.lerp(new Float32Array([x]), new Float32Array([x + 2]), 0.5);
        const plan = () => void ask(100);
        const warm = [gpu.warmup(plan)];
        const calls = [ask(1), ask(2)]; // The first of the session.
        warm.push(gpu.warmup(plan));
        calls.push(ask(3)); // Beside others that wait.
        gpu.flush();
        await Promise.all(warm);
        const answers = (await Promise.all(calls)).map(([x]) => x);
        await gpu.dispose();
        return answers;
      }, engine);
      assert.deepEqual(answers, [2, 3, 4]);
    }));
}

test("the page's own pipelines are its own, and so is what it has put on the device", () =>
  site.page(async (page) => {
    await opened(page);
    const seen = await page.evaluate(async () => {
      const { device } = gpu;
      const mine = function (desc) {
        return GPUDevice.prototype.createComputePipeline.call(this, desc);
      };
      device.createComputePipeline = mine;
      const call = slerp({ flush: "now" });
      const module = device.createShaderModule({
        code: "@compute @workgroup_size(1) fn main() {}",
      });
      const pipeline = () =>
        device.createComputePipeline({ layout: "auto", compute: { module } });
      const kept = [device.createComputePipeline === mine];
      kept.push(pipeline() instanceof GPUComputePipeline);
      compile();
      await call;
      kept.push(device.createComputePipeline === mine);
      delete device.createComputePipeline;
      kept.push(pipeline() instanceof GPUComputePipeline);
      return kept;
    });
    assert.deepEqual(seen, [true, true, true, true]);
  }));
