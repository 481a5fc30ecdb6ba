// Tensors in fewer bits, in a real page: what is kept of their values on either engine,
// what they take, and that what reads them computes with what was kept.

import assert from "node:assert/strict";
import { lightTest as test, openSite, testOn } from "./site.mjs";

const site = openSite();
const [ROWS, COLUMNS] = [200, 100];

/** In the page: everything that is asked of one engine. */
async function ask(engine, dtypes, rows, columns) {
  const gpu = await framebatch.open({ engine });
  const shape = [rows, columns];
  const given = Float32Array.from({ length: rows * columns }, (_, i) => {
    const size = [0.05, 1, 40, 0.002][Math.floor(i / 32) % 4];
    return Math.sin(i * 12.9898) * size;
  });
  const vector = Float32Array.from({ length: columns }, (_, i) => Math.cos(i));
  const results = {};
  for (const dtype of dtypes) {
    const before = gpu.stats().tensors;
    const tensor = gpu.tensor(given, shape, { dtype });
    const after = gpu.stats().tensors;
    const kept = await tensor.read();
    const plain = gpu.tensor(kept, shape);
    const x = gpu.tensor(vector, [1, columns]);
    const asked = (weights) => [
      weights.relu(),
      weights.mul(x),
      weights.transpose().sum(1),
      weights.softmax(),
      weights.gather(new Uint32Array([3, 0, 3])),
      weights.slice([1, undefined, 3], [5, 9]),
      x.matmul(weights.transpose()),
      weights.transpose().matmul(weights),
    ];
    const [own, same] = await Promise.all(
      [tensor, plain].map((weights) => gpu.readAll(asked(weights))),
    );
    const bits = (array) => new Uint32Array(array.buffer).join();
    results[dtype] = {
      kept: [...kept],
      bytes: after[dtype] - before[dtype],
      all: after.bytes - before.bytes,
      equal: own.map((array, i) => bits(array) === bits(same[i])),
    };
    tensor.dispose();
    plain.dispose();
  }
  return { given: [...given], results };
}

const DTYPES = ["f32", "f16", "bf16", "int8", "int4"];

for (const engine of ["gpu", "cpu"]) {
  testOn(engine)(`what each format keeps, and takes, on the ${engine}`, () =>
    site.page(async (page) => {
      const { given, results } = await page.evaluate(
        ask,
        engine,
        DTYPES,
        ROWS,
        COLUMNS,
      );
      const whole = 4 * given.length;
      const most = { f32: 1, f16: 0.51, bf16: 0.51, int8: 0.28, int4: 0.15 };
      for (const [dtype, { kept, bytes, all, equal }] of Object.entries(
        results,
      )) {
        assert.equal(bytes, all, dtype);
        const share = engine === "gpu" ? most[dtype] : 1;
        assert.ok(
          bytes > 0 && bytes <= share * whole + 256,
          `${dtype}: ${bytes}`,
        );
        equal.forEach((same, i) => assert.ok(same, `${dtype}, op ${i}`));
        given.forEach((x, i) => {
          const off = Math.abs(x - kept[i]);
          const bound = boundOf(dtype, given, i);
          assert.ok(off <= bound, `${x} is kept as ${kept[i]} in ${dtype}`);
        });
      }
    }),
  );
}

/** How far a kept value may be off, by the documentation. */
function boundOf(dtype, given, i) {
  const first = i - (i % 32);
  const group = given.slice(first, first + 32).map(Math.abs);
  return {
    f32: 0,
    f16: Math.max(Math.abs(given[i]) / 2 ** 11, 2 ** -25),
    bf16: Math.abs(given[i]) / 2 ** 8,
    int8: Math.max(Math.max(...group) / 253, 2 ** -22),
    int4: Math.max(Math.max(...group) / 5, 2 ** -22),
  }[dtype];
}

test("16-bit floats go up as they are, and come back after a loss as they were", () =>
  site.page(async (page) => {
    const { values, up, again } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const length = 40_001;
      const halves = Uint16Array.from({ length }, (_, i) => 0x3c00 + (i % 512));
      const floats = Float32Array.from({ length }, (_, i) => i / length);
      const before = gpu.stats().bytesUp;
      const tensor = gpu.tensor(halves, [length], { dtype: "f16" });
      const up = gpu.stats().bytesUp - before;
      const packed = gpu.tensor(floats, [length], { dtype: "int4" });
      const values = [...(await tensor.slice([0, 3]).read())];
      const all = async () =>
        (await gpu.readAll([tensor, packed])).map((array) => array.join());
      const first = await all();
      const restored = new Promise((resolve) => gpu.on("restored", resolve));
      gpu.device.destroy();
      await restored;
      const second = await all();
      return { values, up, again: first.map((text, i) => text === second[i]) };
    });
    assert.deepEqual(values, [1, 1 + 2 ** -10, 1 + 2 ** -9]);
    assert.equal(up, 80_004);
    assert.deepEqual(again, [true, true]);
  }));

test("what blocks cannot hold is refused, and takes no memory", () =>
  site.page(async (page) => {
    const { refused, bytes, submits } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const floats = new Float32Array(1 << 20);
      /** Submissions of a large call. */
      const submitsOf = async () => {
        const before = gpu.stats().submits;
        await gpu.lerp(floats, floats, 0.5);
        return gpu.stats().submits - before;
      };
      const before = await submitsOf();
      const refusal = (dtype, value) => {
        try {
          gpu.tensor([1, value], [2], { dtype });
          return "taken";
        } catch ({ code, message }) {
          return `${code}: ${message}`;
        }
      };
      const refused = [
        ...[NaN, Infinity, 65_009].map((value) => refusal("int8", value)),
        ...[NaN, Infinity, 4095].map((value) => refusal("int4", value)),
      ];
      const { bytes } = gpu.stats().tensors;
      return { refused, bytes, submits: [before, await submitsOf()] };
    });
    for (const text of refused) {
      assert.match(
        text,
        /^invalid-input: tensor: int[84] holds magnitudes below/,
      );
    }
    assert.equal(bytes, 0);
    // Refused tensors change nothing about later batches.
    assert.equal(submits[1], submits[0]);
  }));
