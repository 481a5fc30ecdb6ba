// One small network, called by many components with their own rows: one pass for all of
// them, and every answer as if it were alone.

import assert from "node:assert/strict";
import { heavyTest, openSite } from "./site.mjs";

const site = openSite();
const CALLERS = 500;

/** In the page: asks for the network by so many callers, together and then a few alone. */
async function ask(callers) {
  const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
  const floats = (length, seed) =>
    Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898));
  const shapes = { w1: [32, 64], b1: [64], w2: [64, 10], b2: [10] };
  const data = {};
  const tensors = {};
  for (const [name, shape] of Object.entries(shapes)) {
    const length = shape.reduce((product, dim) => product * dim, 1);
    data[name] = floats(length, length).map((v) => v / 4);
    tensors[name] = gpu.tensor(data[name], shape);
  }
  const { w1, b1, w2, b2 } = tensors;
  const network = (x, rows) =>
    gpu
      .tensor(x, [rows, 32])
      .matmul(w1)
      .add(b1)
      .gelu()
      .matmul(w2)
      .add(b2)
      .softmax()
      .read();
  const inputs = Array.from({ length: callers }, (_, i) =>
    floats((1 + (i % 40)) * 32, i),
  );
  const all = () =>
    Promise.all(
      inputs.map((x, i) => {
        const read = network(x, x.length / 32);
        if (i === callers - 1) gpu.flush();
        return read;
      }),
    );
  // Short parameters go up with a first call, and stay there from then on.
  await all();
  await all();
  const count = () => {
    const { uploads, submits, dispatches, readbacks, pipelines } = gpu.stats();
    const { compiled } = pipelines;
    return { uploads, submits, dispatches, readbacks, compiled };
  };
  const before = count();
  const together = await all();
  const after = count();
  for (const name of Object.keys(after)) after[name] -= before[name];
  let same = true;
  for (const i of [0, 1, 39, 250, 499]) {
    const read = network(inputs[i], inputs[i].length / 32);
    gpu.flush();
    const alone = new Uint32Array((await read).buffer).join();
    same &&= alone === new Uint32Array(together[i].buffer).join();
  }
  const plain = (arrays) => arrays.map((array) => [...array]);
  for (const name of Object.keys(data)) data[name] = [...data[name]];
  return { after, same, data, inputs: plain(inputs), results: plain(together) };
}

heavyTest(`${CALLERS} callers of one network share its passes`, () =>
  site.page(async (page) => {
    const { after, same, data, inputs, results } = await page.evaluate(
      ask,
      CALLERS,
    );
    assert.deepEqual(after, {
      ...{ uploads: 1, submits: 1, dispatches: 3, readbacks: 1 },
      compiled: 0,
    });
    assert.ok(same, "a caller alone gets other bits");
    inputs.forEach((x, i) => {
      const right = network(x, data);
      assert.equal(results[i].length, right.length);
      right.forEach((v, k) => {
        const off = Math.abs(results[i][k] - v);
        assert.ok(off < 2e-6, `caller ${i}, element ${k} is off by ${off}`);
      });
    });
  }),
);

/** softmax(gelu(x · w1 + b1) · w2 + b2) in float64. */
function network(x, { w1, b1, w2, b2 }) {
  const hidden = matmul(x, w1, 32, 64).map((v, i) => gelu(v + b1[i % 64]));
  const last = matmul(hidden, w2, 64, 10).map((v, i) => v + b2[i % 10]);
  const rows = [];
  for (let at = 0; at < last.length; at += 10) {
    const row = last.slice(at, at + 10);
    const powers = row.map((v) => Math.exp(v - Math.max(...row)));
    const all = powers.reduce((sum, v) => sum + v, 0);
    rows.push(...powers.map((v) => v / all));
  }
  return rows;
}

function matmul(a, b, inner, columns) {
  const rows = a.length / inner;
  return Array.from({ length: rows * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    let sum = 0;
    for (let k = 0; k < inner; k++) {
      sum += a[row * inner + k] * b[k * columns + column];
    }
    return sum;
  });
}

/** x · Φ(x), by the series of the error function. */
function gelu(x) {
  const z = x / Math.SQRT2;
  let [term, sum] = [z, z];
  for (let n = 1; n < 120; n++) {
    term *= (-z * z) / n;
    sum += term / (2 * n + 1);
  }
  return x * (0.5 + sum / Math.sqrt(Math.PI));
}

heavyTest("products around the borders of tiles", () =>
  site.page(async (page) => {
    const wrong = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const whole = (length, step) =>
        Float32Array.from({ length }, (_, i) => ((i * step) % 17) - 8);
      const sizes = [];
      for (const rows of [1, 4, 9, 16, 17, 40]) {
        for (const columns of [1, 4, 10, 16, 20, 33, 68]) {
          for (const steps of [1, 4, 10, 32])
            sizes.push([rows, steps, columns]);
        }
      }
      const made = sizes.map(([rows, steps, columns]) => {
        const a = whole(rows * steps, 5);
        const b = whole(steps * columns, 7);
        const x = gpu.tensor(a, [rows, steps]);
        const read = x.matmul(gpu.tensor(b, [steps, columns])).read();
        return { a, b, read };
      });
      gpu.flush();
      const wrong = [];
      for (const [at, { a, b, read }] of made.entries()) {
        const [rows, steps, columns] = sizes[at];
        const answer = await read;
        // Whole numbers, whose sums are exact.
        const isRight = answer.every((value, i) => {
          const [row, column] = [Math.floor(i / columns), i % columns];
          let sum = 0;
          for (let k = 0; k < steps; k++) {
            sum += a[row * steps + k] * b[k * columns + column];
          }
          return value === sum;
        });
        if (!isRight || answer.length !== rows * columns) wrong.push(sizes[at]);
      }
      return wrong;
    });
    assert.deepEqual(wrong, []);
  }),
);
