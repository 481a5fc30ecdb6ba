// Kernels of one's own, in real browsers: what they compute on both engines, with whom they
// merge, what hostile code does, and what is there after a loss.

import assert from "node:assert/strict";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

/** In the page: what all tests use. */
const tools = () => {
  window.decay = (gpu) =>
    gpu.kernel({
      name: "decay",
      inputs: { height: "f32", speed: "f32" },
      params: { dt: "f32" },
      output: "f32",
      code: "fn element(height: f32, speed: f32) -> f32 { return height * exp(-speed * params.dt); }",
      cpu: ({ height, speed }, { dt }) => height * Math.exp(-speed * dt),
    });
  window.floats = (count, seed) =>
    Float32Array.from({ length: count }, (_, i) => Math.sin(i * 7 + seed) * 3);
  /** What a promise came to: its value, or its code and message. */
  window.outcome = (promise) =>
    promise.then(
      (value) => ({ value: [...value] }),
      ({ code, message }) => ({ code, message }),
    );
};

const onPage = (use, more) => site.page(use, { prepare: tools, ...more });

/** Firefox writes what it refuses to the console. */
const MAY_COMPLAIN = { may: /shader module|parsing error|Shader / };

for (const engine of ["gpu", "cpu"]) {
  test(`kernels compute what they say, alone, fused and merged, on the ${engine}`, () =>
    onPage(async (page) => {
      const found = await page.evaluate(async (engine) => {
        const gpu = await framebatch.open({ engine });
        const kernel = decay(gpu);
        const problems = [];
        const near = (of, got, want) => {
          const isNear = want.every(
            (x, i) =>
              Math.abs(got[i] - x) <= 2e-6 * Math.max(Math.abs(x), 1e-3),
          );
          if (got.length !== want.length || !isNear) problems.push(of);
        };
        const rows = gpu.tensor(floats(21, 1), [3, 7]);
        const speeds = floats(7, 2);
        const decayed = (h, s, dt) => h * Math.exp(-s * dt);
        near(
          "broadcast",
          await kernel({ height: rows, speed: speeds }, { dt: 0.25 }).read(),
          Array.from(floats(21, 1), (h, i) => decayed(h, speeds[i % 7], 0.25)),
        );
        near(
          "beside other operations",
          await kernel({ height: rows.relu(), speed: 2 }, { dt: 0.5 })
            .scale(3)
            .sum(1)
            .read(),
          [0, 1, 2].map((row) =>
            floats(21, 1)
              .slice(row * 7, row * 7 + 7)
              .reduce((sum, h) => sum + 3 * decayed(Math.max(h, 0), 2, 0.5), 0),
          ),
        );
        const inputs = Array.from({ length: 300 }, (_, i) =>
          floats(1 + (i % 90), i),
        );
        const call = (x, i) =>
          kernel({ height: x, speed: x }, { dt: i / 300 }).read();
        const alone = [];
        for (const [i, x] of inputs.entries()) alone.push(await call(x, i));
        const { submits } = gpu.stats();
        const together = await Promise.all(inputs.map(call));
        const taken = gpu.stats().submits - submits;
        const bits = (x) => new Uint32Array(x.buffer).join();
        together.forEach((x, i) => {
          if (bits(x) !== bits(alone[i])) problems.push(`merged ${i}`);
          near(
            `alone ${i}`,
            x,
            Array.from(inputs[i], (v) => decayed(v, v, i / 300)),
          );
        });
        gpu.dispose();
        return { problems, taken };
      }, engine);
      assert.deepEqual(found.problems, []);
      assert.equal(found.taken, engine === "gpu" ? 1 : 0);
    }));
}

for (const engine of ["gpu", "cpu"]) {
  test(`kernels of a place look anywhere in their own data alone, on the ${engine}`, () =>
    onPage(async (page) => {
      const problems = await page.evaluate(async (engine) => {
        const gpu = await framebatch.open({ engine });
        const blur = gpu.kernel({
          name: "blur",
          inputs: { x: "f32", more: "f32" },
          params: { k: "f32" },
          output: "f32",
          code: `fn at(i: i32) -> f32 {
            let row = i / x_cols();
            let col = i % x_cols();
            let sum = x_at(row - 1, col) + x_at(row + 1, col) + x_at(row, col - 1) + x_at(row, col + 1);
            return sum * 0.25 + params.k * more(i * 1000 - 500) + f32(more_len()) + f32(x_rows());
          }`,
          cpuAt: (i, { x, more }, { k }) => {
            const row = Math.floor(i / x.columns);
            const col = i % x.columns;
            const sum =
              x.at(row - 1, col) +
              x.at(row + 1, col) +
              x.at(row, col - 1) +
              x.at(row, col + 1);
            return sum * 0.25 + k * more(i * 1000 - 500) + more.size + x.rows;
          },
        });
        const within = (i, n) => Math.min(Math.max(i, 0), n - 1);
        const want = (x, [rows, cols], more, k) =>
          Array.from(x, (_, i) => {
            const at = (row, col) =>
              x[within(row, rows) * cols + within(col, cols)];
            const [row, col] = [Math.floor(i / cols), i % cols];
            const sum =
              at(row - 1, col) +
              at(row + 1, col) +
              at(row, col - 1) +
              at(row, col + 1);
            return (
              sum * 0.25 +
              k * more[within(i * 1000 - 500, more.length)] +
              more.length +
              rows
            );
          });
        const cases = Array.from({ length: 60 }, (_, i) => {
          const shape = [1 + (i % 7), 1 + (i % 5)];
          return {
            shape,
            x: floats(shape[0] * shape[1], i),
            more: floats(1 + i, -i),
            k: i / 60,
          };
        });
        const { submits } = gpu.stats();
        const found = await Promise.all(
          cases.map(({ shape, x, more, k }, i) => {
            // Some lie on the device, side by side, and some come with the call.
            const of = {
              x: gpu.tensor(x, shape),
              more: i % 3 === 0 ? gpu.tensor(more) : more,
            };
            return blur(of, { k }).read();
          }),
        );
        const problems = [];
        if (gpu.stats().submits - submits > 1)
          problems.push("more than a batch");
        cases.forEach(({ shape, x, more, k }, c) => {
          const expected = want(x, shape, more, k);
          const isNear = expected.every(
            (v, i) =>
              Math.abs(found[c][i] - v) < 1e-5 * Math.max(Math.abs(v), 1),
          );
          if (!isNear || found[c].length !== expected.length)
            problems.push(`case ${c}`);
        });
        // In place, and of what is computed.
        const state = gpu.tensor(floats(40_000, 3));
        const shift = gpu.kernel({
          name: "shift",
          inputs: { x: "f32" },
          output: "f32",
          code: "fn at(i: i32) -> f32 { return x(i + 1); }",
          cpuAt: (i, { x }) => x(i + 1),
        });
        void shift({ x: state }).computeInto(state);
        void shift({ x: state.neg() }).computeInto(state);
        const shifted = await state.read();
        const start = floats(40_000, 3);
        if (!shifted.every((v, i) => v === -start[Math.min(i + 2, 39_999)]))
          problems.push("in place");
        return problems;
      }, engine);
      assert.deepEqual(problems, []);
    }));
}

for (const engine of ["gpu", "cpu"]) {
  test(`vectors and structs, broadcast, fused around and merged, on the ${engine}`, () =>
    onPage(async (page) => {
      const found = await page.evaluate(async (engine) => {
        const gpu = await framebatch.open({ engine, flush: "manual" });
        const problems = [];
        const near = (of, got, want) => {
          const isNear = want.every(
            (x, i) => Math.abs(got[i] - x) <= 3e-6 * Math.max(Math.abs(x), 1),
          );
          if (got.length !== want.length || !isNear)
            problems.push([of, [...got], want]);
        };
        const read = (tensor) => {
          const reading = tensor.read();
          gpu.flush();
          return reading;
        };
        const cross = gpu.kernel({
          name: "crossed",
          inputs: { a: "vec3f", b: "vec3f", t: "f32" },
          params: { by: "f32" },
          output: "vec3f",
          code: "fn element(a: vec3f, b: vec3f, t: f32) -> vec3f { return cross(a, b) * t * params.by; }",
          cpu: ({ a, b, t }, { by }) =>
            [0, 1, 2].map((k) => {
              const [i, j] = [(k + 1) % 3, (k + 2) % 3];
              return (a[i] * b[j] - a[j] * b[i]) * t * by;
            }),
        });
        const want = (a, b, t, rows, rowOf) =>
          Array.from({ length: rows * 3 }, (_, at) => {
            const [row, k] = [Math.floor(at / 3), at % 3];
            const [i, j] = [(k + 1) % 3, (k + 2) % 3];
            const [p, q, u] = rowOf(row);
            return (
              (a[3 * p + i] * b[3 * q + j] - a[3 * p + j] * b[3 * q + i]) *
              t[u] *
              0.5
            );
          });
        const [a, b, t] = [floats(12, 1), floats(12, 2), floats(4, 3)];
        const by = { by: 0.5 };
        const rows = (data, ...dims) => gpu.tensor(data, [...dims, 3]);
        const call = (a, b, t) => cross({ a, b, t }, by);
        near(
          "rows",
          await read(call(rows(a, 4), rows(b, 4), t)),
          want(a, b, t, 4, (i) => [i, i, i]),
        );
        near(
          "one for all",
          await read(call(rows(a, 4), b.slice(0, 3), 2)),
          want(a, b, [2], 4, (i) => [i, 0, 0]),
        );
        near(
          "columns",
          await read(call(rows(a, 4, 1), rows(b, 4), gpu.tensor(t, [4, 1]))),
          want(a, b, t, 16, (i) => [i >> 2, i & 3, i >> 2]),
        );
        near(
          "moved, and fused around",
          await read(
            call(
              gpu.tensor(a, [3, 4]).transpose(),
              rows(b, 4).neg().neg(),
              gpu.tensor(t).scale(1),
            )
              .scale(2)
              .sum(1),
          ),
          [0, 1, 2, 3].map((row) => {
            const moved = a.map(
              (_, at) => a[(at % 3) * 4 + Math.floor(at / 3)],
            );
            const values = want(moved, b, t, 4, (i) => [i, i, i]);
            return (
              2 * (values[3 * row] + values[3 * row + 1] + values[3 * row + 2])
            );
          }),
        );
        const halves = gpu.tensor(
          Float32Array.of(1, 2, 4, 8, 0.5, 0.25),
          [2, 3],
          { dtype: "f16" },
        );
        near(
          "kept in 16 bits",
          await read(call(halves, rows(b, 4).slice([0, 2]), 1)),
          want([1, 2, 4, 8, 0.5, 0.25], b, [1], 2, (i) => [i, i, 0]),
        );
        const polar = gpu.kernel({
          name: "polar",
          inputs: { p: "vec2f" },
          output: { radius: "f32", unit: "vec2f" },
          code: `struct Polar { radius: f32, unit: vec2f }
            fn element(p: vec2f) -> Polar { let radius = length(p); return Polar(radius, p / radius); }`,
          cpu: ({ p }) => {
            const radius = Math.hypot(p[0], p[1]);
            return { radius, unit: [p[0] / radius, p[1] / radius] };
          },
        });
        const two = gpu.kernel({
          name: "two",
          inputs: { x: "f32", n: "f32" },
          output: { more: "f32", less: "f32" },
          code: `struct Two { more: f32, less: f32 }
            fn element(x: f32, n: f32) -> Two {
              var y = x;
              for (var k = 0; k < i32(n); k++) { y *= 2.0; }
              return Two(y, -x);
            }`,
          cpu: ({ x, n }) => ({ more: x * 2 ** n, less: -x }),
        });
        const { radius, unit } = polar({
          p: gpu.tensor([
            [3, 4],
            [0, -2],
          ]),
        });
        const { more, less } = two({ x: radius, n: [1, 3] });
        const reading = gpu.readAll([radius, unit, more.relu(), less]);
        gpu.flush();
        const all = await reading;
        near("radius", all[0], [5, 2]);
        near("unit", all[1], [0.6, 0.8, 0, -1]);
        near("more", all[2], [10, 16]);
        near("less", all[3], [-5, -2]);
        const state = gpu.tensor(a, [4, 3]);
        cross({ a: state, b: rows(b, 4), t: 1 }, by).computeInto(state);
        near(
          "in place",
          await read(state),
          want(a, b, [1], 4, (i) => [i, i, 0]),
        );
        // Merged equals alone.
        const lengths = Array.from(
          { length: 40 },
          (_, i) => 1 + ((i * 7) % 13),
        );
        const callOf = (count, i) =>
          cross(
            { a: rows(floats(count * 3, i), count), b: [1, i, 2], t: i },
            by,
          );
        const alone = [];
        for (const [i, count] of lengths.entries())
          alone.push([...(await read(callOf(count, i)))]);
        const before = gpu.stats().batches;
        const together = lengths.map((count, i) => callOf(count, i).read());
        gpu.flush();
        const merged = (await Promise.all(together)).map((values) => [
          ...values,
        ]);
        const batches = gpu.stats().batches - before;
        const isSame = JSON.stringify(alone) === JSON.stringify(merged);
        const plan = gpu.explain(() =>
          lengths.forEach((count, i) => callOf(count, i).read()),
        );
        const verified = [
          gpu.verify(cross, [
            {
              values: {
                a: [1, 2, 3],
                b: [
                  [1, 0, 2],
                  [3, 1, 1],
                ],
                t: [[1], [2]],
              },
              params: by,
            },
          ]),
          gpu.verify(polar, [
            {
              values: {
                p: [
                  [1, 2],
                  [3, 4],
                ],
              },
            },
          ]),
          gpu.verify(two, [{ values: { x: [1, 2], n: 2 } }]),
        ];
        gpu.flush();
        // Without a GPU a function would be compared with itself.
        const oks = await Promise.all(
          verified.map((found) =>
            found.then(
              ({ ok }) => ok,
              ({ code }) => engine === "cpu" && code === "unsupported",
            ),
          ),
        );
        gpu.dispose();
        return {
          problems,
          isSame,
          batches,
          oks,
          dispatches: plan.match(/dispatch/g)?.length,
        };
      }, engine);
      assert.deepEqual(found.problems, []);
      assert.deepEqual(
        [found.isSame, found.batches, found.oks],
        [true, 1, [true, true, true]],
      );
      if (engine === "gpu") assert.equal(found.dispatches, 1);
    }));
}

test("params of all types go as they are, and other numbers compile nothing", () =>
  onPage(async (page) => {
    const found = await page.evaluate(async () => {
      const results = {};
      for (const engine of ["gpu", "cpu"]) {
        const gpu = await framebatch.open({ engine });
        const kernel = gpu.kernel({
          name: "mixed",
          inputs: { x: "f32" },
          params: { scale: "f32", shift: "i32", bits: "u32" },
          output: "f32",
          code: "fn element(x: f32) -> f32 { return select(x * params.scale, f32(params.shift), params.bits == 0xffff0000u); }",
          cpu: ({ x }, { scale, shift, bits }) =>
            bits === 0xffff0000 ? shift : x * scale,
        });
        const call = (bits, shift) =>
          kernel({ x: [2] }, { scale: 3, shift, bits }).read();
        const first = await call(1, 5);
        const before = gpu.stats().pipelines.compiled;
        const [second] = await call(0xffff0000, -(2 ** 31));
        results[engine] = [
          first[0],
          second,
          gpu.stats().pipelines.compiled - before,
        ];
      }
      return results;
    });
    const expected = [6, -(2 ** 31), 0];
    assert.deepEqual(found, { gpu: expected, cpu: expected });
  }));

test("hostile code sees nothing of others, ends, and fails alone", () =>
  onPage(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const kernel = (name, code, more) =>
        gpu.kernel({
          name,
          inputs: { x: "f32" },
          output: "f32",
          code,
          ...more,
        });
      const body = (code) => `fn element(x: f32) -> f32 {\n  ${code}\n}`;
      const bad = {
        ours: body("return x + f32(segments[0]);"),
        output: body("output[0] = 1u; return x;"),
        other: body("return k0_element(x);"),
        counter: body("c0_passes = 9u; return x;"),
        syntax: body("return x +;"),
        type: body("return u32(x);"),
        recursion: body("return element(x);"),
      };
      const calls = Object.entries(bad).map(([name, code]) =>
        outcome(kernel(name, code)({ x: [1, 2, 3] }).read()),
      );
      const endless = kernel(
        "endless",
        body("var y = x; while (y > 0.0) { y += 1.0; } return y;"),
        {
          maxPasses: 1000,
        },
      );
      const far = kernel(
        "far",
        body(
          "var all = array<f32, 4>(1.0, 2.0, 3.0, 4.0); return all[i32(x)] * 0.0 + x;",
        ),
      );
      const others = [
        outcome(endless({ x: [-1, 1, -3] }).read()),
        outcome(far({ x: [-1e9, 2, 1e9] }).read()),
        outcome(gpu.lerp(new Float32Array([0]), new Float32Array([8]), 0.25)),
      ];
      const [stopped, outside, lerp] = await Promise.all(others);
      return {
        refused: Object.fromEntries(
          (await Promise.all(calls)).map((of, i) => [Object.keys(bad)[i], of]),
        ),
        stopped,
        outside,
        lerp,
      };
    });
    for (const [name, { code, message }] of Object.entries(found.refused)) {
      assert.equal(code, "shader", `${name}: ${message}`);
    }
    const { ours } = found.refused;
    assert.match(ours.message, /ours:2:18: .*segments/s);
    assert.match(ours.message, /return x \+ f32\(segments\[0\]\);/);
    assert.equal(found.stopped.code, "limit-exceeded");
    assert.match(
      found.stopped.message,
      /endless: the loops of an element made/,
    );
    assert.deepEqual(found.lerp.value, [2]);
    assert.equal(found.outside.value.length, 3);
  }, MAY_COMPLAIN));

test("on the CPU a kernel without a function is unsupported, and a throw fails its call", () =>
  onPage(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "cpu" });
      const made = [];
      const kernel = (name, cpu) =>
        gpu.kernel({
          name,
          inputs: { x: "f32" },
          output: "f32",
          code: "fn element(x: f32) -> f32 { return x + 1.0; }",
          cpu,
        });
      const none = kernel("none");
      const throws = kernel("throws", ({ x }) => {
        if (x === 3) throw new Error("as the test wants it");
        // What a function calls waits until it is done.
        if (x === 5)
          made.push(
            outcome(gpu.lerp(new Float32Array([0]), new Float32Array([x]), 1)),
          );
        if (x === 6)
          made.push(outcome(gpu.tensor(new Float32Array(20_000)).sum().read()));
        return x + 1;
      });
      const calls = [
        none({ x: [1] }),
        throws({ x: [1] }),
        throws({ x: [3] }),
        throws({ x: [5, 6] }),
      ];
      const outcomes = await Promise.all(
        calls.map((call) => outcome(call.read())),
      );
      return { outcomes, made: await Promise.all(made) };
    });
    const [none, first, thrown, last] = found.outcomes;
    assert.equal(none.code, "unsupported");
    assert.match(none.message, /none: calls run on the CPU/);
    assert.deepEqual(first.value, [2]);
    assert.equal(thrown.code, "invalid-input");
    assert.match(
      thrown.message,
      /throws: its function for the CPU threw: as the test/,
    );
    assert.deepEqual(last.value, [6, 7]);
    assert.deepEqual(found.made, [{ value: [5] }, { value: [0] }]);
  }));

test("results of kernels stay on the device, and kernels survive its loss", () =>
  onPage(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const kernel = decay(gpu);
      const state = gpu.tensor([8, 4, 2]);
      const step = () => kernel({ height: state, speed: Math.LN2 }, { dt: 1 });
      void step().computeInto(state);
      const once = await state.read();
      const result = await step().scale(2).compute();
      const before = await result.read();
      const restored = new Promise((resolve) => gpu.on("restored", resolve));
      gpu.device.destroy();
      await restored;
      const x = gpu.tensor([1, 2]);
      const after = await kernel({ height: x, speed: 0 }, { dt: 1 }).read();
      return [once, before, after].map((values) =>
        [...values].map((v) => Math.round(v * 1e4) / 1e4),
      );
    });
    assert.deepEqual(found, [
      [4, 2, 1],
      [4, 2, 1],
      [1, 2],
    ]);
  }));

test("a kernel may be defined and called while the session opens, and in several sessions", () =>
  onPage(async (page) => {
    const found = await page.evaluate(async () => {
      const sessions = [
        framebatch.shared({ engine: "cpu" }),
        await framebatch.open({ engine: "cpu" }),
        await framebatch.open({ engine: "gpu" }),
      ];
      const call = (gpu) =>
        decay(gpu)({ height: [1, 3], speed: 0 }, { dt: 1 }).read();
      return Promise.all(sessions.map(async (gpu) => [...(await call(gpu))]));
    });
    assert.deepEqual(found, [
      [1, 3],
      [1, 3],
      [1, 3],
    ]);
  }));

test("verify compares what the device was given", () =>
  onPage(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const kernel = gpu.kernel({
        name: "shifted",
        inputs: { x: "f32" },
        output: "f32",
        code: "fn element(x: f32) -> f32 { return x + (params.t - 1e5); }",
        params: { t: "f32" },
        cpu: ({ x }, { t }) => x + (t - 1e5),
      });
      const x = new Float32Array([1, 2, 3]);
      // As a float this is 100,000: the device never sees the rest.
      const params = { t: 100_000.003 };
      const asked = gpu.verify(kernel, [{ values: { x }, params }]);
      x.fill(7);
      params.t = 0;
      return asked;
    });
    assert.deepEqual(found.ok, true, JSON.stringify(found.worst));
  }));

test("verify finds what the code and its function for the CPU differ in", () =>
  onPage(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const cases = [
        { values: { height: floats(100, 1), speed: 0.5 }, params: { dt: 0.1 } },
        {
          values: {
            height: [
              [1, 2],
              [3, 4],
            ],
            speed: [[2], [1]],
          },
          params: { dt: 0.25 },
        },
      ];
      const good = await gpu.verify(decay(gpu), cases);
      const wrong = gpu.kernel({
        name: "wrong",
        inputs: { x: "f32" },
        output: "f32",
        code: "fn element(x: f32) -> f32 { return select(x, x + 0.5, x == 3.0); }",
        cpu: ({ x }) => x,
      });
      const bad = await gpu.verify(wrong, [
        { values: { x: [1] } },
        { values: { x: [1, 2, 3] } },
      ]);
      const around = gpu.kernel({
        name: "around",
        inputs: { x: "f32" },
        output: "f32",
        code: "fn at(i: i32) -> f32 { return x(i + 1) + x_at(i / x_cols() + 1, 0); }",
        cpuAt: (i, { x }) => x(i + 1) + x.at(Math.floor(i / x.columns) + 1, 0),
      });
      const looked = await gpu.verify(
        around,
        [
          {
            values: {
              x: [
                [1, 2],
                [3, 4],
                [5, 6],
              ],
            },
          },
        ],
        { tolerance: 0 },
      );
      const none = gpu.kernel({
        name: "none",
        inputs: { x: "f32" },
        output: "f32",
        code: "fn element(x: f32) -> f32 { return x; }",
      });
      const code = (promise) =>
        promise.then(
          () => "",
          ({ code, message }) => `${code}: ${message}`,
        );
      const refused = [
        await code(gpu.verify(none, [])),
        await code(gpu.verify(() => 0, [])),
        await code(gpu.verify(wrong, [], { tolerance: -1 })),
      ];
      return { good, bad, looked, refused };
    });
    assert.equal(found.good.ok, true);
    assert.ok(found.good.worst.off < 1e-5);
    assert.equal(found.bad.ok, false);
    const { off, ...worst } = found.bad.worst;
    assert.deepEqual(worst, {
      case: 1,
      field: "",
      place: 2,
      got: 3.5,
      expected: 3,
    });
    assert.ok(Math.abs(off - 0.5 / 3) < 1e-6);
    assert.equal(found.looked.ok, true);
    assert.match(
      found.refused[0],
      /^invalid-input: none: there is no function for the CPU/,
    );
    assert.match(
      found.refused[1],
      /^invalid-input: verify: give a kernel of gpu.kernel/,
    );
    assert.match(
      found.refused[2],
      /^invalid-input: verify: tolerance must be a number from 0, got -1/,
    );
  }));
