// Kernels of whole numbers, with shared tensors and with overrides, in real browsers: what they
// give on both devices, merged, stored and traced, and what their loops do.

import assert from "node:assert/strict";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

/** In the page: a hash (PCG) of whole numbers, as a kernel and by hand, and what else tests use. */
const tools = () => {
  window.hashed = (x) => {
    const state = (Math.imul(x, 747796405) + 2891336453) >>> 0;
    const word = Math.imul((state >>> ((state >>> 28) + 4)) ^ state, 277803737);
    return ((word >>> 22) ^ word) >>> 0;
  };
  window.hash = (gpu) =>
    gpu.kernel({
      name: "hash",
      inputs: { x: "u32", salt: "u32" },
      output: "u32",
      code: `fn element(x: u32, salt: u32) -> u32 {
        let state = (x ^ salt) * 747796405u + 2891336453u;
        let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
        return (word >> 22u) ^ word;
      }`,
      cpu: ({ x, salt }) => hashed(x ^ salt),
    });
  /** Bits of NaN, of infinity, of subnormal floats, of negative zero; and the one that marks stopped loops. */
  window.strange = Uint32Array.of(
    0x7fc00001,
    0x7f800000,
    0xff800001,
    1,
    0x80000000,
    0x7fd5c0de,
  );
  window.same = (problems, of, got, want) => {
    const isSame =
      got.constructor === want.constructor &&
      got.length === want.length &&
      got.every((x, i) => Object.is(x, want[i]));
    if (!isSame) problems.push([of, [...got], [...want]]);
  };
};

const onPage = (use, more) => site.page(use, { prepare: tools, ...more });

for (const engine of ["gpu", "cpu"]) {
  test(`whole numbers keep their bits, merged, moved, stored and traced, on the ${engine}`, () =>
    onPage(async (page) => {
      const found = await page.evaluate(async (engine) => {
        const gpu = await framebatch.open({ engine, flush: "manual" });
        const kernel = hash(gpu);
        const problems = [];
        const all = async (...promises) => {
          gpu.flush();
          return Promise.all(promises);
        };
        const grid = gpu.tensor(
          Uint32Array.from([...strange, ...strange]),
          [3, 4],
        );
        const salts = gpu.tensor(strange.slice(0, 3), [3, 1]);
        const [once, columns, moved] = await all(
          kernel({ x: strange, salt: 7 }).read(),
          kernel({ x: grid, salt: salts }).read(),
          kernel({ x: grid.transpose().slice([1, 3]), salt: 0 }).read(),
        );
        const flat = [...strange, ...strange];
        same(
          problems,
          "once",
          once,
          strange.map((x) => hashed(x ^ 7)),
        );
        same(
          problems,
          "columns",
          columns,
          Uint32Array.from(flat, (x, i) => hashed(x ^ strange[i >> 2])),
        );
        same(
          problems,
          "moved",
          moved,
          Uint32Array.from({ length: 6 }, (_, i) =>
            hashed(flat[(i % 3) * 4 + 1 + Math.floor(i / 3)]),
          ),
        );
        const calls = Array.from({ length: 200 }, (_, i) =>
          Uint32Array.from({ length: 1 + (i % 17) }, (_, k) => k * i * 977),
        );
        const before = gpu.stats();
        const merged = await all(
          ...calls.map((x) => kernel({ x, salt: 3 }).read()),
        );
        calls.forEach((x, i) =>
          same(
            problems,
            `call ${i}`,
            merged[i],
            x.map((x) => hashed(x ^ 3)),
          ),
        );
        const batches = gpu.stats().batches - before.batches;

        // A state of whole numbers that stays on the device.
        const state = gpu.tensor(strange);
        const step = gpu.fn((x, salt) => kernel({ x, salt }));
        const stored = kernel({ x: state, salt: 1 }).computeInto(state);
        const twice = step(state, Uint32Array.of(2)).read();
        await all(stored);
        same(
          problems,
          "stored and traced",
          await twice,
          strange.map((x) => hashed(hashed(x ^ 1) ^ 2)),
        );
        const computing = kernel({ x: state, salt: 4 }).compute();
        gpu.flush();
        const computed = await computing;
        const signs = gpu.kernel({
          name: "signs",
          inputs: { x: "u32", by: "i32" },
          output: { low: "i32", pair: "vec2i" },
          code: `struct Both { low: i32, pair: vec2i }
            fn element(x: u32, by: i32) -> Both { return Both(i32(x) >> 3u, vec2i(by, -by)); }`,
          cpu: ({ x, by }) => ({ low: x >> 3, pair: [by, -by] }),
        });
        const { low, pair } = signs({
          x: computed,
          by: Int32Array.of(5, -6, 7, 8, 9, 10),
        });
        const [lows, pairs] = await all(low.read(), pair.read());
        const values = strange.map((x) => hashed(hashed(x ^ 1) ^ 4));
        same(
          problems,
          "low",
          lows,
          Int32Array.from(values, (x) => x >> 3),
        );
        same(
          problems,
          "pair",
          pairs,
          Int32Array.of(5, -5, -6, 6, 7, -7, 8, -8, 9, -9, 10, -10),
        );
        const into = new Int32Array(6);
        const rows = gpu.tensor([[1], [2], [3]]);
        const [, picked] = await all(
          low.read({ into }),
          rows.gather(gpu.tensor(Int32Array.of(2, 0))).read(),
        );
        same(problems, "into", into, lows);
        same(problems, "picked", picked, Float32Array.of(3, 1));
        const kinds = [low.dtype, computed.dtype, state.dtype];
        gpu.dispose();
        return { problems, batches, kinds };
      }, engine);
      assert.deepEqual(found, {
        problems: [],
        batches: 1,
        kinds: ["int32", "uint32", "uint32"],
      });
    }));

  test(`shared tensors, vectors of a place and overrides, on the ${engine}`, () =>
    onPage(async (page) => {
      const found = await page.evaluate(async (engine) => {
        const gpu = await framebatch.open({ engine, flush: "manual" });
        const problems = [];
        const all = async (...promises) => {
          gpu.flush();
          return Promise.all(promises);
        };
        const define = (gain) =>
          gpu.kernel({
            name: "painted",
            inputs: { i: "i32", w: "f32" },
            shared: { palette: "vec2f" },
            constants: { gain },
            output: "vec2f",
            code: `override gain: f32 = 1.0;
              fn element(i: i32, w: f32) -> vec2f {
                return palette(i) * w * gain + f32(palette_len());
              }`,
            cpu: ({ i, w, palette }) =>
              Array.from(palette(i), (x) => x * w * gain + palette.size),
          });
        const colors = Float32Array.from({ length: 10 }, (_, i) => i);
        const palette = gpu.tensor(colors, [5, 2]);
        for (const gain of [4, 0.5, 1e-45]) {
          const painted = define(gain);
          const calls = Array.from({ length: 40 }, (_, n) =>
            Int32Array.from({ length: n + 1 }, (_, i) => i * 2 - 3),
          );
          const got = await all(
            ...calls.map((i) => painted({ i, w: 0.25, palette }).read()),
          );
          calls.forEach((i, n) => {
            const want = Float32Array.from(
              { length: 2 * i.length },
              (_, at) => {
                const color = Math.min(Math.max(i[at >> 1], 0), 4);
                const own = Math.fround(colors[2 * color + (at % 2)] * 0.25);
                return Math.fround(own * Math.fround(gain)) + 5;
              },
            );
            same(problems, `gain ${gain}, call ${n}`, got[n], want);
          });
        }
        const ahead = gpu.kernel({
          name: "ahead",
          inputs: { p: "vec3f", n: "u32" },
          output: { step: "vec2f", at: "u32" },
          code: `struct Ahead { step: vec2f, at: u32 }
            fn at(i: i32) -> Ahead {
              let row = i / p_cols();
              let next = p_at(row, i - row * p_cols() + 1);
              let sizes = p_len() * 100 + p_rows() * 10 + p_cols();
              return Ahead(vec2f(next.x - p(i - 1).z, f32(sizes)), n(i));
            }`,
          cpuAt: (i, { p, n }) => {
            const row = Math.floor(i / p.columns);
            const next = p.at(row, (i % p.columns) + 1);
            const sizes = p.size * 100 + p.rows * 10 + p.columns;
            return { step: [next[0] - p(i - 1)[2], sizes], at: n(i) };
          },
        });
        const p = Float32Array.from({ length: 18 }, (_, i) => i * i * 0.5);
        const { step, at } = ahead({
          p: gpu.tensor(p, [2, 3, 3]),
          n: Uint32Array.of(7, 8),
        });
        const [steps, ats] = await all(step.read(), at.read());
        same(
          problems,
          "steps",
          steps,
          Float32Array.from({ length: 12 }, (_, k) => {
            const i = k >> 1;
            const next = Math.floor(i / 3) * 3 + Math.min((i % 3) + 1, 2);
            const behind = Math.max(i - 1, 0);
            return k % 2 ? 623 : p[3 * next] - p[3 * behind + 2];
          }),
        );
        same(problems, "ats", ats, Uint32Array.of(7, 8, 8, 8, 8, 8));
        const verified = gpu.verify(
          ahead,
          [{ values: { p: [[1, 2, 3]], n: [3, 4000000000] } }],
          { tolerance: 0 },
        );
        gpu.flush();
        // Without a GPU the function would be compared with itself.
        const ok =
          engine === "gpu"
            ? (await verified).ok
            : (await verified.catch(({ code }) => code)) === "unsupported";
        gpu.dispose();
        return { problems, ok };
      }, engine);
      assert.deepEqual(found, { problems: [], ok: true });
    }));
}

test("loops of kernels that give whole numbers are told of, whatever bits they give", () =>
  onPage(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const of = (output, value) =>
        gpu.kernel({
          name: "waits",
          inputs: { x: "u32" },
          output,
          maxPasses: 1000,
          code: `fn element(x: u32) -> ${output} { var y = x; while (y == 7u) { } return ${value}; }`,
        });
      const outcomes = [];
      for (const kernel of [of("u32", "y"), of("vec2u", "vec2u(y, y + 1u)")]) {
        for (const last of [3, 7]) {
          outcomes.push(
            await kernel({ x: Uint32Array.of(0x7fd5c0de, last) })
              .read()
              .then(
                (value) => [...value],
                ({ code }) => code,
              ),
          );
        }
      }
      gpu.dispose();
      return outcomes;
    });
    assert.deepEqual(found, [
      [0x7fd5c0de, 3],
      "limit-exceeded",
      [0x7fd5c0de, 0x7fd5c0df, 3, 4],
      "limit-exceeded",
    ]);
  }));
