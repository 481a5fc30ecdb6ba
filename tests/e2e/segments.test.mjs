// What is computed over a call's own rows, by many callers with different numbers of
// them: one pass for all, no padding, and every answer as if it were alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { heavyTest, openSite } from "./site.mjs";

const site = openSite();
const CALLERS = 500;
const WIDTH = 16;

/**
 * What callers ask of their rows, by name: the calls of tensors to make, each with what
 * it takes; "x" stands for the rows themselves, "xT" for them transposed. And the most
 * passes that all of them together take.
 */
const CASES = {
  mean: [[["mean", 0]], 1],
  sum: [[["sum", 0]], 1],
  max: [[["max", 0]], 1],
  argmax: [[["argmax", 0]], 1],
  softmax: [[["softmax", 0]], 1],
  layerNorm: [[["layerNorm", { axis: 0 }]], 1],
  normalize: [[["normalize", { axis: 0 }]], 1],
  // One for results whose columns are whole vectors of four words, one for all others.
  "a product of its own factors": [[["matmul", "xT"]], 2],
  attention: [[["attention", "x", "x", { heads: 2 }]], 1],
  "causal attention": [
    [["attention", "x", "x", { heads: 4, causal: true, scale: 0.7 }]],
    1,
  ],
  "attention to neighbors": [
    [["attention", "x", "x", { heads: 2, window: 3 }]],
    1,
  ],
  "attention, its mean, and its direction": [
    [
      ["attention", "x", "x", { heads: 1 }],
      ["mean", 0],
      ["normalize", { axis: 0 }],
    ],
    3,
  ],
};

/** In the page: asks by so many callers of 1 to 40 rows, together and then a few alone. */
async function ask(steps, callers, width) {
  const oracle = await import("/chains/oracle.js");
  const { float } = await import("/chains/bounds.js");
  const { floats } = await import("/workload.js");
  const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
  const inputs = Array.from({ length: callers }, (_, i) =>
    floats((1 + (i % 40)) * width, i),
  );
  const record = (data) => {
    const x = gpu.tensor(data, [data.length / width, width]);
    const named = (arg) =>
      arg === "x" ? x : arg === "xT" ? x.transpose() : arg;
    return steps.reduce(
      (y, [method, ...args]) => y[method](...args.map(named)),
      x,
    );
  };
  const all = () => {
    const reads = inputs.map((data) => record(data).read());
    gpu.flush();
    return Promise.all(reads);
  };
  const expected = (data) => {
    const x = oracle.tensor([data.length / width, width], data);
    return steps.reduce((y, [method, first, , options]) => {
      if (method === "matmul")
        return oracle.matmul(y, oracle.transpose(x, [1, 0]));
      if (method === "attention") {
        const { heads, causal = false, window, scale } = options;
        const usual = 1 / Math.sqrt(width / heads);
        return oracle.attention(y, x, x, {
          ...{ heads, causal, window },
          scale: float(scale ?? usual),
        });
      }
      const isNorm = ["softmax", "layerNorm", "normalize"].includes(method);
      return isNorm
        ? oracle.norm(method, y, 0)
        : oracle.reduce(method, y, [0], false);
    }, x);
  };
  const count = () => {
    const { uploads, submits, dispatches, readbacks, pipelines } = gpu.stats();
    const { compiled } = pipelines;
    return { uploads, submits, dispatches, readbacks, compiled };
  };
  await all();
  const before = count();
  const together = await all();
  const after = count();
  for (const name of Object.keys(after)) after[name] -= before[name];
  const bits = ({ buffer }) => new Uint32Array(buffer).join();
  const others = [];
  for (const i of [0, 1, 30, 31, 32, 39, 250, callers - 1]) {
    const read = record(inputs[i]).read();
    gpu.flush();
    if (bits(await read) !== bits(together[i])) others.push(i);
  }
  let [held, open] = [0, 0];
  // Each number of rows once, and one more.
  for (let i = 0; i < 41; i++) {
    const { values } = expected(inputs[i]);
    if (values.length !== together[i].length) throw new Error(`caller ${i}`);
    values.forEach(({ v, e }, k) => {
      if (e === Infinity) return (open += 1);
      held += 1;
      const got = together[i][k];
      if (Math.abs(got - v) <= e) return held;
      throw new Error(`caller ${i}, element ${k}: ${got} for ${v} ± ${e}`);
    });
  }
  await gpu.dispose();
  return { after, others, isHeld: held > open };
}

for (const [name, [steps, dispatches]] of Object.entries(CASES)) {
  const add = /product/.test(name) ? heavyTest : test;
  add(`${name} over the rows of ${CALLERS} callers`, () =>
    site.page(async (page) => {
      const { after, others, isHeld } = await page.evaluate(
        ask,
        steps,
        CALLERS,
        WIDTH,
      );
      assert.deepEqual(after, {
        ...{ uploads: 1, submits: 1, dispatches, readbacks: 1 },
        compiled: 0,
      });
      assert.deepEqual(others, [], "callers that get other bits alone");
      assert.ok(isHeld, "little was known of the results");
    }),
  );
}
