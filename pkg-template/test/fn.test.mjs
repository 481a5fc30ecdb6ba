// Traced functions: how often a function is called, what calls of it compute and write, and what
// is wrong with a function or a call.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { face, fake, manual, module, settled } from "./face.mjs";

await module("kernels/index");

afterEach(() => {
  fake.opening = Promise.resolve();
});

const f32 = (...values) => new Float32Array(values);

/** Sends what is queued, and answers it. */
function answer({ gpu, core }) {
  gpu.flush();
  core.answer();
}

/** What a tensor holds. */
async function valuesOf(session, tensor) {
  const reading = tensor.read();
  answer(session);
  return [...(await reading)];
}

/** A function that is traced, and how often it was called. */
function counted(gpu, fn, options) {
  let calls = 0;
  const traced = gpu.fn((...given) => {
    calls += 1;
    return fn(...given);
  }, options);
  return { traced, calls: () => calls };
}

const ROWS = [
  [1, -2, 3],
  [-4, 5, -6],
];

/** A function, its arguments for one call, and the same without tracing. */
const FUNCTIONS = {
  "elements of two arrays": {
    fn: (x, y) => x.relu().mul(2).add(y),
    given: [f32(1, -2, 3), f32(4, 5, 6)],
  },
  "a number": {
    fn: (x, t) => x.mul(t).sub(t),
    given: [f32(1, 2), 3],
  },
  "rows, reduced, scaled and laid otherwise": {
    fn: (x) =>
      x.layerNorm().softmax().sum({ axis: 0, keepDims: true }).transpose(),
    given: [ROWS],
  },
  "products and bounds": {
    fn: (x, y, low) => x.dot(y).clamp(low, 4).max(),
    given: [ROWS, ROWS, -1],
  },
  "parts, places and shapes": {
    fn: (x, places) =>
      x
        .gather(places)
        .concat(x.slice([1]))
        .reshape([-1])
        .argmax(),
    given: [ROWS, new Uint32Array([1, 0])],
  },
  "what it is given": { fn: (x) => x, given: [f32(7)] },
  "one argument of two": { fn: (_, y) => y.exp(), given: [f32(7), f32(0)] },
  "the same argument twice": {
    fn: (x, y) => x.sub(y).add(x),
    given: [f32(7), f32(2)],
  },
};

for (const [name, { fn, given }] of Object.entries(FUNCTIONS)) {
  test(`calls give what the chain gives: ${name}`, async () => {
    const session = await manual();
    const { gpu } = session;
    const { traced, calls } = counted(gpu, fn);
    const tensorOf = (value) =>
      gpu.tensor(typeof value === "number" ? [value] : value);
    const alike = (value) =>
      typeof value === "number" ? tensorOf(value).reshape([]) : tensorOf(value);
    const want = await valuesOf(session, fn(...given.map(alike)));
    const resident = given.map((value) =>
      typeof value === "number" ? value : tensorOf(value),
    );
    const recorded = resident.map((value) =>
      value?.dtype === "float32" ? value.scale(1) : value,
    );
    for (const own of [given, given, resident, resident, resident, recorded]) {
      const made = traced(...own);
      assert.deepEqual(await valuesOf(session, made), want);
      assert.deepEqual(await valuesOf(session, made.reshape([-1])), want);
      const stored = made.compute();
      answer(session);
      assert.deepEqual(await valuesOf(session, await stored), want);
    }
    assert.equal(calls(), 1);
  });
}

test("a function is traced for kinds and ranks, and for sizes where they matter", async () => {
  const session = await manual();
  const { gpu } = session;
  const free = counted(gpu, (x, y) => x.mul(y).sum());
  const sliced = counted(gpu, (x) => x.slice([-1]));
  const asked = counted(gpu, (x) => x.scale(1 / x.relu().shape[0]));
  for (const length of [2, 3, 2, 5]) {
    const x = new Float32Array(length).fill(length);
    const square = [length ** 3];
    assert.deepEqual(await valuesOf(session, free.traced(x, x)), square);
    assert.deepEqual(await valuesOf(session, sliced.traced(x)), [length]);
    const ones = await valuesOf(session, asked.traced(x));
    assert.deepEqual(ones, Array(length).fill(1));
  }
  assert.equal(free.calls(), 1);
  assert.equal(sliced.calls(), 3);
  assert.equal(asked.calls(), 3);
  // Other kinds: a number, and rows.
  await valuesOf(session, free.traced(f32(1), 2));
  await valuesOf(session, free.traced(ROWS, f32(1, 2, 3)));
  await valuesOf(session, free.traced(ROWS, f32(4, 2, 3)));
  assert.equal(free.calls(), 3);
  // A shape that is asked for outside of a trace is no matter of the next.
  assert.deepEqual(gpu.tensor([1, 2]).shape, [2]);
  const other = counted(gpu, (x) => x.exp());
  other.traced(f32(1));
  other.traced(f32(1, 2));
  assert.equal(other.calls(), 1);
});

test("a call encodes nothing: its structure is asked for once", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const asked = [];
  const { chain } = core;
  core.chain = (words) => {
    asked.push(words);
    return chain.call(core, words);
  };
  const step = gpu.fn((x, y) => x.relu().mul(2).add(y));
  const weights = gpu.tensor(new Float32Array(20_000));
  const reads = Array.from({ length: 50 }, (_, i) =>
    step(f32(i, i), f32(1, -1)).read(),
  );
  assert.equal(asked.length, 1);
  for (let i = 0; i < 3; i += 1) reads.push(step(weights, f32(i)).read());
  assert.equal(asked.length, 2);
  answer(session);
  const all = await Promise.all(reads);
  assert.deepEqual([...all[7]], [15, 13]);
  assert.equal(all[52][19_999], 2);
});

test("results come as the function returns them, and each is read alone or with others", async () => {
  const session = await manual();
  const { gpu } = session;
  const two = gpu.fn((x) => [x.relu(), x.sum()]);
  const named = gpu.fn((x, y) => ({ sum: x.add(y), places: x.argmax() }));
  const [positive, total] = two(f32(-1, 2));
  assert.deepEqual(positive.shape, [2]);
  assert.deepEqual(total.shape, []);
  assert.deepEqual(await valuesOf(session, total), [1]);
  const { sum, places } = named(f32(1, 5), 3);
  assert.equal(places.dtype, "uint32");
  const reading = gpu.readAll([positive, sum, places]);
  answer(session);
  assert.deepEqual(
    (await reading).map((x) => [...x]),
    [[0, 2], [4, 8], [1]],
  );
  assert.deepEqual(await valuesOf(session, places), [1]);
  const into = new Float32Array(2);
  const read = sum.read({ into });
  answer(session);
  assert.equal(await read, into);
  assert.deepEqual([...into], [4, 8]);
  await assert.rejects(sum.read({ into: new Float32Array(3) }), {
    code: "invalid-input",
  });
});

test("traced functions and kernels are traced through", async () => {
  const session = await manual();
  const { gpu } = session;
  const { traced: inner, calls } = counted(gpu, (x, t) => x.mul(t));
  const bias = gpu.tensor(f32(1, 1));
  const outer = gpu.fn((x, t) => inner(inner(x, t), 2).add(bias));
  for (const t of [2, 3]) {
    const got = await valuesOf(session, outer(f32(1, 2), t));
    assert.deepEqual(got, [2 * t + 1, 4 * t + 1]);
  }
  assert.equal(calls(), 1);
  // Of a tensor that is gone nothing is computed.
  bias.dispose();
  await assert.rejects(outer(f32(1, 2), 1).read(), { code: "disposed" });
  const kernel = gpu.kernel({
    name: "grown",
    inputs: { x: "f32" },
    params: { dt: "f32", n: "i32" },
    output: "f32",
    code: "fn element(x: f32) -> f32 { return x + params.dt; }",
  });
  let traces = 0;
  const step = gpu.fn((x, dt) => {
    traces += 1;
    return kernel({ x }, { dt, n: 1 }).relu();
  });
  assert.deepEqual(step(f32(1, 2), 0.5).shape, [2]);
  assert.deepEqual(step(f32(1, 2, 3), 0.5).shape, [3]);
  assert.equal(traces, 1);
  assert.throws(
    () => gpu.fn((x, n) => kernel({ x }, { dt: 1, n }))(f32(1), 2),
    {
      message: /^grown: n must be a number, got a tensor/,
    },
  );
});

test("what is called while the session opens is computed with what it was given then", async () => {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const gpu = face.shared({ flush: "manual" });
  await settled();
  const weights = gpu.tensor(f32(1, 2));
  const step = gpu.fn((x, y) => x.mul(y));
  const data = f32(3, 4);
  const reads = [step(data, weights).read(), step(data, 2).read()];
  data.fill(9);
  weights.dispose();
  open();
  await gpu.ready;
  answer({ gpu, core: fake.core });
  assert.deepEqual(
    (await Promise.all(reads)).map((x) => [...x]),
    [
      [3, 8],
      [6, 8],
    ],
  );
});

test("what is wrong with a function is said", async () => {
  const { gpu } = await manual();
  const x = gpu.tensor([1, 2]);
  const refused = (fn, message, given = [x]) =>
    assert.throws(
      () => gpu.fn(fn)(...given),
      (error) => error.code === "invalid-input" && message.test(error.message),
      String(message),
    );
  assert.throws(
    () => gpu.fn(7),
    /^FramebatchError: fn: give a function of tensors, got number/,
  );
  assert.throws(() => gpu.fn(() => x, { nam: "" }), /nam/);
  refused(
    async (x) => x,
    /^fn: a traced function must return a tensor, or several/,
  );
  refused(() => undefined, /must return .* at once; got undefined/);
  refused(
    () => [1],
    /an operand must be a tensor, got number \(it must return/,
  );
  refused((x, y) => x.add(y), /an operand must be a tensor, got string/, [
    x,
    "y",
  ]);
  refused((x, y) => x.add(y), /^add: shapes \[2\] and \[3\] do not broadcast/, [
    x,
    f32(1, 2, 3),
  ]);
  refused((x, t) => x.mul(2 * t), /have no values to read/, [x, 1]);
  refused((x) => (x.gpuBuffer(), x), /have no values to read/);
  refused((x) => x, /make a tensor of 16-bit floats/, [new Uint16Array(2)]);
  const named = gpu.fn((x) => x, { name: "step" });
  assert.equal(named.name, "step");
  assert.throws(
    () => named({}),
    /^FramebatchError: step: an operand must be a tensor, got Object/,
  );
  const other = await manual();
  assert.throws(() => named(other.gpu.tensor([1])), /of another session/);
  x.dispose();
  assert.throws(() => named(x), { code: "disposed" });
});

test("nothing can be read while a function is traced", async () => {
  const { gpu } = await manual();
  const outcomes = [];
  const target = gpu.tensor([1]);
  const kernel = gpu.kernel({
    name: "same",
    inputs: { x: "f32" },
    output: "f32",
    code: "fn element(x: f32) -> f32 { return x; }",
  });
  const step = gpu.fn((x) => {
    outcomes.push(
      x.read(),
      x.exp().read(),
      kernel({ x }).read(),
      gpu.readAll([x]),
      x.compute(),
      target.exp().computeInto(x),
      x.write([1]),
      x.exp().computeInto(target),
    );
    return x.exp();
  });
  step([1]);
  for (const outcome of outcomes) {
    await assert.rejects(outcome, (error) => {
      assert.equal(error.code, "invalid-input", error.message);
      return /have no values to read/.test(error.message);
    });
  }
});

test("a tensor of a call can be disposed of, which gives nothing back", async () => {
  const session = await manual();
  const { gpu } = session;
  const step = gpu.fn((x) => x.exp());
  const x = gpu.tensor([0]);
  const made = step(x);
  const more = made.add(1);
  made.dispose();
  await assert.rejects(made.read(), { code: "disposed" });
  assert.throws(() => made.add(1), { code: "disposed" });
  assert.deepEqual(await valuesOf(session, more), [2]);
  const late = step(x);
  x.dispose();
  await assert.rejects(late.read(), { code: "disposed" });
});

test("a structure that the core forgot is asked for again", async () => {
  const session = await manual();
  const { gpu } = session;
  const step = gpu.fn((x) => x.scale(2));
  assert.deepEqual(await valuesOf(session, step(f32(1))), [2]);
  for (let length = 1; length < 1200; length += 1) {
    gpu
      .tensor(new Float32Array(length))
      .exp()
      .read()
      .catch(() => {});
    if (length % 100 === 0) answer(session);
  }
  answer(session);
  for (let round = 0; round < 3; round += 1) {
    assert.deepEqual(await valuesOf(session, step(f32(3))), [6]);
  }
});
