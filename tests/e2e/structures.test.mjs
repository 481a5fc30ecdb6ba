// Structures without end: a page whose shapes, formulas and chains never repeat takes
// no more memory than one that has a thousand of them.

import assert from "node:assert/strict";
import {
  chromiumTest,
  lightTest as test,
  longTest,
  openSite,
} from "./site.mjs";

const site = openSite();

/** Reads parts of 128 floats: the ones of these numbers, each from and to another place. */
const ask = async (gpu, from, to) => {
  const parts = [];
  for (let end = 1; end <= 128; end++) {
    for (let start = 0; start < end; start++) parts.push([start, end]);
  }
  const x = Float32Array.from({ length: 128 }, (_, i) => i);
  let wrong = 0;
  for (let next = from; next < to; next += 100) {
    const asked = parts.slice(next, next + 100).map(async ([start, end]) => {
      const y = await gpu.tensor(x).slice([start, end]).scale(2).read();
      if (y.length !== end - start || y[0] !== 2 * start) wrong++;
    });
    gpu.flush();
    await Promise.all(asked);
  }
  return wrong;
};

chromiumTest(
  "5,000 shapes more take no memory",
  "it collects garbage on demand",
  () =>
    site.page(async (page) => {
      const client = await page.createCDPSession();
      await page.evaluate(async (ask) => {
        window.ask = new Function(`return ${ask}`)();
        window.gpu = await framebatch.open({ engine: "cpu", flush: "manual" });
      }, ask.toString());
      const after = async (from, to) => {
        const wrong = await page.evaluate(
          (from, to) => ask(gpu, from, to),
          from,
          to,
        );
        assert.equal(wrong, 0);
        for (let i = 0; i < 3; i++) {
          await client.send("HeapProfiler.collectGarbage");
        }
        const heap = await client.send("Runtime.getHeapUsage");
        const wasm = await page.evaluate(() => counting.wasmBytes());
        return { wasm, heap: heap.usedSize };
      };
      const warm = await after(0, 2500);
      const later = await after(2500, 7500);
      // A page of it at most, which holes may take: each shape has hundreds of bytes.
      const pages = (later.wasm - warm.wasm) / 65_536;
      assert.ok(pages <= 1, `WebAssembly's memory grew by ${pages} pages`);
      const grown = later.heap - warm.heap;
      assert.ok(grown < 100_000, `the heap grew by ${grown} bytes`);
      // The structures of the beginning are forgotten, and as good as new.
      assert.equal(await page.evaluate(() => ask(gpu, 0, 200)), 0);
    }),
);

test("widths without end are answered", () =>
  site.page(async (page) => {
    const wrong = await page.evaluate(async () => {
      // Compiling 300 kernels takes Firefox its time, which is no stall. A session keeps 256.
      const options = { flush: "manual", stallMs: 120_000 };
      const gpu = await framebatch.open({ engine: "gpu", ...options });
      let wrong = 0;
      for (const from of [5, 305, 5]) {
        const asked = Array.from({ length: 300 }, async (_, i) => {
          const width = from + i;
          const b = new Float32Array(2 * width).fill(width);
          const t = new Float32Array([0, 1]);
          const y = await gpu.lerp(new Float32Array(2 * width), b, t, {
            width,
          });
          if (y[0] !== 0 || y.at(-1) !== width) wrong++;
        });
        gpu.flush();
        await Promise.all(asked);
      }
      return wrong;
    });
    assert.equal(wrong, 0);
  }));

longTest("pipelines that were not used for long make room", () =>
  site.page(async (page) => {
    const { wrong, compiled } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      let wrong = 0;
      const compiled = async (formulas) => {
        const before = gpu.stats().pipelines.compiled;
        const asked = formulas.map(async (k) => {
          const state = new Uint8Array(16).fill(0x91);
          const field = `rho * ${k}`;
          const [slope] = await gpu.states.gradients(state, { field });
          if (Math.abs(slope - k) > 0.01 * k) wrong++;
        });
        gpu.flush();
        await Promise.all(asked);
        return gpu.stats().pipelines.compiled - before;
      };
      const counts = [await compiled([1, 2]), await compiled([1])];
      for (let k = 3; k < 283; k += 40) {
        const others = Array.from({ length: 40 }, (_, i) => k + i);
        counts.push(await compiled([2, ...others]));
      }
      counts.push(await compiled([2]), await compiled([1]));
      return { wrong, compiled: counts };
    });
    assert.equal(wrong, 0);
    assert.deepEqual(compiled, [2, 0, 40, 40, 40, 40, 40, 40, 40, 0, 1]);
  }),
);
