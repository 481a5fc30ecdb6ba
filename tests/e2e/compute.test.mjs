// Results that stay on the device, in real browsers: their values, what reaches WebGPU, and
// losses in the middle.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chromiumTest, lightTest, openSite, testOn, times } from "./site.mjs";

const site = openSite();

/** In the page: what all tests use. */
const tools = () => {
  /** Settles what is asked for, and sends whatever that takes. */
  window.settle = async (gpu, asked) => {
    let isOver = false;
    const over = Promise.all(asked).finally(() => (isOver = true));
    while (!isOver) {
      gpu.flush();
      await new Promise((run) => setTimeout(run, 2));
    }
    return over;
  };
  window.codeOf = (promise) =>
    promise.then(
      () => "answered",
      ({ code, message }) => `${code}: ${message}`,
    );
  /** Destroys the device, and resolves to what `restored` or `fallback` tells. */
  window.lose = (gpu) =>
    new Promise((resolve) => {
      const offs = ["restored", "fallback"].map((event) =>
        gpu.on(event, (news) => {
          for (const off of offs) off();
          resolve(news.lostTensors.map(({ label }) => label));
        }),
      );
      gpu.device.destroy();
    });
  window.wave = (length, seed = 1) =>
    Float32Array.from({ length }, (_, i) => Math.sin(seed * i + 0.5) * 2);
};

const onPage = (use) => site.page(use, { prepare: tools });

for (const engine of ["gpu", "cpu"]) {
  testOn(engine)(
    `what is computed is what would be read, on the ${engine}`,
    () =>
      onPage(async (page) => {
        const { wrong, count } = await page.evaluate(async (engine) => {
          const gpu = await framebatch.open({ engine, flush: "manual" });
          const [rows, columns] = [40, 24];
          const x = gpu.tensor(wave(rows * columns), [rows, columns]);
          const y = gpu.tensor(wave(columns, 3), [columns]);
          const f16 = gpu.tensor(wave(columns, 3), [columns], { dtype: "f16" });
          const asked = {
            copy: x,
            packed: f16,
            map: x.mul(y).add(0.5).tanh(),
            fold: x.sum(1),
            rows: x.softmax(),
            transposed: x.transpose(),
            indexes: x.argmax(1),
            product: x.transpose().matmul(x).relu(),
            gather: x.gather(x.argmax(0)),
            slice: x.slice([1, undefined, 3]),
            number: x.mean(),
            attention: x.attention(x.scale(0.5), x, { heads: 3 }),
            none: x.slice([rows]),
          };
          const names = Object.keys(asked);
          const expected = await settle(
            gpu,
            Object.values(asked).map((value) => value.read()),
          );
          const bits = (array) =>
            new Uint32Array(array.buffer, 0, array.length).join();
          const wrong = [];
          let count = 0;
          const compare = async (how, tensors) => {
            const results = await settle(gpu, [gpu.readAll(tensors)]);
            results[0].forEach((result, i) => {
              count += 1;
              if (bits(result) !== bits(expected[i])) {
                wrong.push(`${how}: ${names[i]}`);
              }
            });
          };
          const each = await settle(
            gpu,
            Object.values(asked).map((value) => value.compute()),
          );
          await compare("compute", each);
          const [all] = await settle(gpu, [
            gpu.computeAll(Object.values(asked)),
          ]);
          await compare("computeAll", all);
          await settle(
            gpu,
            Object.values(asked).map((value, i) => value.computeInto(all[i])),
          );
          await compare("computeInto", all);
          // From what was computed goes on what would from the recorded.
          const [sums] = await settle(gpu, [
            all[2].matmul(all[5]).sum(0).read(),
          ]);
          const [own] = await settle(gpu, [
            asked.map.matmul(asked.transposed).sum(0).read(),
          ]);
          if (bits(sums) !== bits(own)) wrong.push("goes on");
          return { wrong, count };
        }, engine);
        assert.deepEqual(wrong, []);
        assert.equal(count, 3 * 13);
      }),
  );

  const add = engine === "gpu" ? test : lightTest;
  add(`steps in place follow float64, awaited and not, on the ${engine}`, () =>
    onPage(async (page) => {
      const { wrong, submits } = await page.evaluate(async (engine) => {
        const gpu = await framebatch.open({ engine, flush: "manual" });
        const length = 1000;
        const position = wave(length);
        const speed = wave(length, 2);
        const expected = [
          Float64Array.from(position),
          Float64Array.from(speed),
        ];
        const p = gpu.tensor(position);
        const v = gpu.tensor(speed);
        const step = () => {
          const [a, b] = expected;
          for (let i = 0; i < length; i += 1) b[i] -= 0.01 * a[i];
          for (let i = 0; i < length; i += 1) a[i] += 0.01 * b[i];
          return [
            v.sub(p.scale(0.01)).computeInto(v),
            p.add(v.scale(0.01)).computeInto(p),
          ];
        };
        await settle(gpu, step());
        for (let i = 1; i < 200; i += 1) {
          const asked = step();
          gpu.flush();
          await Promise.all(asked);
        }
        const before = gpu.stats().submits;
        for (let i = 200; i < 1000; i += 1) step();
        const results = await settle(gpu, [p.read(), v.read()]);
        const wrong = results.map((values, k) =>
          Math.max(...values.map((x, i) => Math.abs(x - expected[k][i]))),
        );
        return { wrong, submits: gpu.stats().submits - before };
      }, engine);
      for (const off of wrong) assert.ok(off < 1e-3, `off by ${off}`);
      if (engine === "gpu") assert.ok(submits >= 1, `${submits} submissions`);
    }),
  );
}

lightTest(
  "computing and reading in one frame is one submission, and only reading comes down",
  () =>
    onPage(async (page) => {
      const { both, steps, lasting } = await page.evaluate(async () => {
        const { during, lasting } = await import("/counting.js");
        const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
        const s = gpu.tensor(wave(1000));
        const x = gpu.tensor(wave(1000, 2));
        const frame = () => [
          s.add(x).computeInto(s),
          s.mul(2).compute(),
          s.sum().read(),
        ];
        const [, warm] = await settle(gpu, frame());
        warm.dispose();
        const run = async (make) => {
          const asked = make();
          gpu.flush();
          return Promise.all(asked);
        };
        for (let i = 0; i < 3; i += 1) (await run(frame))[1].dispose();
        const both = await during(() => run(frame));
        both.value[1].dispose();
        const step = () => [s.add(x).computeInto(s)];
        await settle(gpu, step());
        await run(step);
        const steps = await during(async () => {
          for (let i = 0; i < 20; i += 1) await run(step);
        });
        return {
          both: both.counts,
          steps: steps.counts,
          lasting: lasting(steps.counts),
        };
      });
      assert.equal(both.submits, 1);
      assert.equal(both.readMaps, 1);
      assert.equal(steps.submits, 20);
      assert.equal(steps.readMaps, 0, "nothing is read back");
      assert.deepEqual(lasting, {}, "nothing is made from the second step on");
    }),
);

lightTest("write: any part of a tensor, between steps", () =>
  onPage(async (page) => {
    const wrong = await page.evaluate(async () => {
      const wrong = [];
      for (const engine of ["gpu", "cpu"]) {
        const gpu = await framebatch.open({ engine, flush: "manual" });
        for (const length of [7, 1000, 40_000]) {
          const expected = wave(length);
          const s = gpu.tensor(expected.slice());
          const asked = [];
          for (const [at, count] of [
            [0, 1],
            [3, 4],
            [1, 5],
            [length - 1, 1],
            [0, length],
            [2, length - 2],
          ]) {
            const data = wave(count, at + 2);
            expected.set(data, at);
            asked.push(s.write(data, at), s.neg().computeInto(s));
            data.fill(99);
            expected.forEach((x, i) => (expected[i] = -x));
          }
          const [values] = await settle(gpu, [s.read(), ...asked]);
          if (values.join() !== expected.join()) wrong.push([engine, length]);
        }
        const places = gpu.tensor(new Uint32Array([5, 6, 7]));
        places.write(new Uint32Array([1]), 1);
        const [read] = await settle(gpu, [places.read()]);
        if (read.join() !== "5,1,7") wrong.push([engine, "places"]);
      }
      return wrong;
    });
    assert.deepEqual(wrong, []);
  }),
);

lightTest(
  "a thousand tensors computed and let go of leave no memory behind",
  () =>
    onPage(async (page) => {
      const { bytes, before } = await page.evaluate(async () => {
        const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
        let s = gpu.tensor(wave(20_000));
        const step = async () => {
          const [next] = await settle(gpu, [s.scale(0.999).compute()]);
          s.dispose();
          s = next;
        };
        // A tensor is given back when the step that read it is over, as it is behind a reading.
        const after = async (steps) => {
          for (let i = 0; i < steps; i += 1) await step();
          await settle(gpu, [s.slice([0, 1]).read()]);
          return gpu.stats();
        };
        const before = await after(20);
        const later = await after(1000);
        const bytes = [before, later].map(({ tensors, pool }) => [
          tensors.bytes,
          pool.bytes,
        ]);
        return { bytes, before: before.tensors };
      });
      assert.deepEqual(bytes[1], bytes[0], JSON.stringify(before));
    }),
);

chromiumTest(
  "ten thousand steps take no memory, with a computed tensor for each",
  "it collects garbage on demand",
  () =>
    onPage(async (page) => {
      const client = await page.createCDPSession();
      await page.evaluate(async () => {
        window.gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
        window.state = gpu.tensor(new Float32Array(256));
        window.steps = async (count) => {
          for (let step = 0; step < count; step += 100) {
            const asked = [];
            for (let i = 0; i < 100; i += 1) {
              asked.push(state.scale(0.5).add(1).computeInto(state));
              const next = state.sub(2).compute();
              asked.push(next.then((tensor) => tensor.dispose()));
            }
            await settle(gpu, asked);
          }
          return (await settle(gpu, [state.read()]))[0][0];
        };
      });
      const after = async (count) => {
        const value = await page.evaluate((count) => steps(count), count);
        assert.equal(value, 2); // What all steps lead to.
        for (let i = 0; i < 3; i += 1) {
          await client.send("HeapProfiler.collectGarbage");
        }
        const heap = await client.send("Runtime.getHeapUsage");
        const { wasm, gpuBytes } = await page.evaluate(() => {
          const { pool, tensors } = gpu.stats();
          const wasm = counting.wasmBytes();
          return { wasm, gpuBytes: [pool.bytes, tensors.bytes] };
        });
        return { wasm, gpuBytes, heap: heap.usedSize };
      };
      const warm = await after(1000);
      const rounds = [];
      for (let round = 0; round < 5; round += 1) rounds.push(await after(2000));
      const later = rounds.at(-1);
      assert.deepEqual(later.gpuBytes, warm.gpuBytes);
      // How much is in flight at once differs from round to round, and its memory is kept for
      // the next batches; memory that steps left behind would grow in every round.
      const sizes = rounds.map(({ wasm }) => wasm);
      const isFlat = sizes.some((size, i) => size === sizes[i - 1]);
      assert.ok(isFlat, `WebAssembly's memory had ${sizes} bytes`);
      const grown = later.heap - warm.heap;
      assert.ok(grown < 200_000, `the heap grew by ${grown} bytes`);
    }),
);

const LOSSES = times(8, 50);

test(`${LOSSES} losses in the middle: no wrong value, no step twice, all of it typed`, (t) =>
  onPage(async (page) => {
    const report = await page.evaluate(async (losses) => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const x = gpu.tensor(wave(2000));
      const kept = await x.scale(2).compute({ label: "kept" });
      const deep = await kept.add(1).compute({ label: "deep" });
      const alone = await x.scale(3).compute({ label: "alone", keep: false });
      // A tensor that was collected computes nothing again.
      window.held = { x };
      const report = { wrong: [], codes: [], named: [], steps: 0, ends: 0 };
      const s = gpu.tensor(new Float32Array(2000), [2000], { label: "state" });
      let steps = 0;
      const check = (what, values, of) => {
        const at = values.findIndex((value, i) => value !== of(i));
        if (at >= 0) report.wrong.push([what, at, values[at], of(at)]);
      };
      const data = wave(2000);
      const f32 = Math.fround;
      for (let loss = 0; loss < losses; loss += 1) {
        await s.write(new Float32Array(2000));
        steps = 0;
        // Steps go on while the device is lost under them.
        let isOver = false;
        const told = (async () => {
          await new Promise((run) => setTimeout(run, 60 + 17 * loss));
          const named = await lose(gpu);
          isOver = true;
          return named;
        })();
        while (!isOver) {
          const asked = [s.add(1).computeInto(s), s.read(), deep.read()];
          const [step, state, other] = await Promise.allSettled(asked);
          report.steps += 1;
          if (step.status === "fulfilled") steps += 1;
          for (const { status, reason } of [step, state, other]) {
            if (status === "rejected") report.codes.push(reason.code);
          }
          // What is read is the state after some whole number of steps, the same everywhere.
          if (state.status === "fulfilled") {
            check("state", state.value, () => steps);
          }
          if (other.status === "fulfilled") {
            check("deep", other.value, (i) => f32(f32(2 * data[i]) + 1));
          }
          if (step.status === "rejected") break;
        }
        report.named.push(await told);
        report.ends += 1;
        const after = [kept.read(), deep.read()].map((read) =>
          read.catch((error) => [`${error.code}: ${error.message}`]),
        );
        const again = await Promise.all(after);
        check("kept again", again[0], (i) => f32(2 * data[i]));
        check("deep again", again[1], (i) => f32(f32(2 * data[i]) + 1));
        report.codes.push((await codeOf(alone.read())).slice(0, 30));
        report.codes.push((await codeOf(s.read())).slice(0, 30));
      }
      return report;
    }, LOSSES);
    t.diagnostic(`${report.steps} steps`);
    assert.deepEqual(report.wrong, []);
    assert.equal(report.ends, LOSSES);
    assert.deepEqual(report.named[0], ["alone", "state"]);
    for (const named of report.named.slice(1))
      assert.deepEqual(named, ["state"]);
    for (const code of report.codes) assert.match(code, /^device-lost/);
  }));

test("what is asked for while there is no device is computed on the next one", () =>
  onPage(async (page) => {
    const { sums, named } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const x = gpu.tensor(new Float32Array(1000).fill(1));
      const [y] = await settle(gpu, [x.scale(2).compute()]);
      const lost = new Promise((resolve) => gpu.on("lost", resolve));
      // None of these is sent before the device is lost.
      const asked = [y.sum().read(), x.scale(10).computeInto(x)];
      const told = lose(gpu);
      await lost;
      asked.push(y.add(x).compute());
      const named = await told;
      const [before, , z] = await settle(gpu, asked);
      const after = await settle(gpu, [y.sum().read(), z.sum().read()]);
      const sums = [before, ...after];
      return { sums: sums.map(([sum]) => sum), named };
    });
    assert.deepEqual(named, []);
    assert.deepEqual(sums, [2000, 2000, 12_000]);
  }));
