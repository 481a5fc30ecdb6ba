// Traced functions in real browsers: bit for bit what the chain gives, merged, on both engines,
// with kernels of one's own, and after a lost device.

import assert from "node:assert/strict";
import { lightTest as test, openSite, testOn } from "./site.mjs";

const site = openSite();

for (const engine of ["gpu", "cpu"]) {
  testOn(engine)(
    `calls of many callers are one batch, bit for bit as the chain, on the ${engine}`,
    () =>
      site.page(async (page) => {
        const found = await page.evaluate(async (engine) => {
          const gpu = await framebatch.open({ engine, flush: "manual" });
          const floats = (count, seed) =>
            Float32Array.from(
              { length: count },
              (_, i) => Math.sin(i * 7 + seed) * 3,
            );
          const bias = gpu.tensor(floats(64, 5));
          const network = (x, w, t) => {
            const hidden = x.matmul(w).add(bias).relu().mul(t);
            return { hidden, best: hidden.softmax().argmax(1) };
          };
          let traces = 0;
          const traced = gpu.fn((x, w, t) => {
            traces += 1;
            return network(x, w, t);
          });
          const weights = gpu.tensor(floats(32 * 64, 1), [32, 64]);
          const rows = Array.from({ length: 60 }, (_, i) => 1 + (i % 7));
          const data = rows.map((count, i) => floats(count * 32, i));
          const run = async (call) => {
            const before = gpu.stats();
            const reads = data.map((own, i) => {
              const x = gpu.tensor(own, [rows[i], 32]);
              const { hidden, best } = call(x, weights, i / 8);
              return Promise.all([hidden.read(), best.read()]);
            });
            gpu.flush();
            const got = await Promise.all(reads);
            const { batches } = gpu.stats();
            return {
              got: got.map(([hidden, best]) => [
                ...new Uint32Array(
                  hidden.buffer,
                  hidden.byteOffset,
                  hidden.length,
                ),
                ...best,
              ]),
              batches: batches - before.batches,
            };
          };
          const plain = await run((x, w, t) => network(x, w, t));
          const first = await run(traced);
          const second = await run(traced);
          const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
          gpu.dispose();
          return {
            traces,
            isSame: same(plain.got, first.got) && same(plain.got, second.got),
            batches: [first.batches, second.batches],
          };
        }, engine);
        assert.deepEqual(found, {
          traces: 1,
          isSame: true,
          batches: [1, 1],
        });
      }),
  );
}

test("a function goes on after a lost device, with kernels and results that stay", () =>
  site.page(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const decay = gpu.kernel({
        name: "decay",
        inputs: { x: "f32" },
        params: { dt: "f32" },
        output: "f32",
        code: "fn element(x: f32) -> f32 { return x * (1.0 - params.dt); }",
      });
      const step = gpu.fn((x, dt) => decay({ x }, { dt }).add(1));
      const state = gpu.tensor(new Float32Array(3).fill(8));
      const scale = gpu.tensor(new Float32Array(20_000).fill(2));
      const scaled = gpu.fn((x) => x.mul(scale));
      const got = [];
      for (let i = 0; i < 3; i += 1) step(state, 0.5).computeInto(state);
      got.push([...(await state.read())]);
      got.push((await scaled([3]).read())[19_999]);
      const restored = new Promise((done) => gpu.on("restored", done));
      gpu.device.destroy();
      const pending = scaled([4]).read();
      await restored;
      got.push((await pending)[19_999]);
      got.push([...(await step([2, 4], 0.25).read())]);
      gpu.dispose();
      return got;
    });
    assert.deepEqual(found, [[2.75, 2.75, 2.75], 6, 8, [2.5, 4]]);
  }));
