// What chains give, from the words and data that the core is handed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const u32 = (...values) => new Uint32Array(values);

/** Reads one tensor of a session of its own. */
async function read(make) {
  const { gpu, core } = await manual();
  const tensor = make(gpu);
  const promise = tensor.read();
  gpu.flush();
  core.answer();
  return { shape: tensor.shape, result: await promise, core, gpu };
}

const x = (gpu) => gpu.tensor(f32(1, -2, 3, -4, 5, -6), [2, 3]);
const row = (gpu) => gpu.tensor(f32(10, 20, 30));
const column = (gpu) => gpu.tensor(f32(1, 2), [2, 1]);
const cube = (gpu) =>
  gpu.tensor(
    Float32Array.from({ length: 24 }, (_, i) => i),
    [2, 3, 4],
  );
const third = 1 / Math.sqrt(3);

// What is recorded, the shape it says it has, and what reading it gives.
const RESULTS = [
  // The values as they are.
  [x, [2, 3], [1, -2, 3, -4, 5, -6]],
  [
    (gpu) =>
      gpu
        .tensor([
          [1, 2],
          [3, 4],
        ])
        .add(0),
    [2, 2],
    [1, 2, 3, 4],
  ],
  [(gpu) => gpu.tensor([[[1], [2]]]), [1, 2, 1], [1, 2]],
  [(gpu) => gpu.tensor([7], []).neg(), [], [-7]],
  [(gpu) => gpu.tensor(u32(2 ** 31, 5)), [2], [2 ** 31, 5]],
  [(gpu) => gpu.tensor(new Int32Array([3, -4])), [2], [3, -4]],
  // Element by element.
  [(gpu) => x(gpu).relu(), [2, 3], [1, 0, 3, 0, 5, 0]],
  [(gpu) => x(gpu).abs().sqrt().slice([0, 1], [0, 1]), [1, 1], [1]],
  [(gpu) => x(gpu).neg(), [2, 3], [-1, 2, -3, 4, -5, 6]],
  [(gpu) => gpu.tensor(f32(0)).sigmoid(), [1], [0.5]],
  [(gpu) => gpu.tensor(f32(0, 1)).tanh(), [2], [0, Math.tanh(1)]],
  [(gpu) => gpu.tensor(f32(1)).silu(), [1], [1 / (1 + Math.exp(-1))]],
  [(gpu) => gpu.tensor(f32(1)).swish(), [1], [1 / (1 + Math.exp(-1))]],
  [(gpu) => gpu.tensor(f32(1)).gelu(), [1], [0.8413447]],
  [(gpu) => gpu.tensor(f32(1)).gelu({}), [1], [0.8413447]],
  [(gpu) => gpu.tensor(f32(1)).gelu({ approximate: "tanh" }), [1], [0.841192]],
  [(gpu) => gpu.tensor(f32(0, 1)).exp(), [2], [1, Math.E]],
  [(gpu) => gpu.tensor(f32(1, Math.E)).log(), [2], [0, 1]],
  // Functions of two tensors, broadcast.
  [(gpu) => x(gpu).add(row(gpu)), [2, 3], [11, 18, 33, 6, 25, 24]],
  [(gpu) => row(gpu).add(x(gpu)), [2, 3], [11, 18, 33, 6, 25, 24]],
  [(gpu) => x(gpu).sub(column(gpu)), [2, 3], [0, -3, 2, -6, 3, -8]],
  [(gpu) => row(gpu).mul(column(gpu)), [2, 3], [10, 20, 30, 20, 40, 60]],
  [(gpu) => x(gpu).div(2), [2, 3], [0.5, -1, 1.5, -2, 2.5, -3]],
  [(gpu) => x(gpu).minimum(0), [2, 3], [0, -2, 0, -4, 0, -6]],
  [(gpu) => x(gpu).maximum(x(gpu).neg()), [2, 3], [1, 2, 3, 4, 5, 6]],
  [(gpu) => x(gpu).pow(2), [2, 3], [1, 4, 9, 16, 25, 36]],
  [(gpu) => x(gpu).scale(-2), [2, 3], [-2, 4, -6, 8, -10, 12]],
  [(gpu) => x(gpu).clamp(-3, 2), [2, 3], [1, -2, 2, -3, 2, -3]],
  [(gpu) => x(gpu).clamp(column(gpu), 3), [2, 3], [1, 1, 3, 2, 3, 2]],
  [(gpu) => gpu.tensor(f32(0, 1)).sin(), [2], [0, Math.sin(1)]],
  [(gpu) => gpu.tensor(f32(0, 1)).cos(), [2], [1, Math.cos(1)]],
  [(gpu) => gpu.tensor(f32(-1.5, 1.5)).floor(), [2], [-2, 1]],
  [(gpu) => gpu.tensor(f32(-1.5, 1.5)).ceil(), [2], [-1, 2]],
  [(gpu) => gpu.tensor(f32(0.5, 1.5, -2.6)).round(), [3], [0, 2, -3]],
  [(gpu) => x(gpu).sign(), [2, 3], [1, -1, 1, -1, 1, -1]],
  [(gpu) => x(gpu).mod(4), [2, 3], [1, 2, 3, 0, 1, 2]],
  [(gpu) => x(gpu).mod(column(gpu).neg()), [2, 3], [0, 0, 0, 0, -1, 0]],
  [
    (gpu) => column(gpu).atan2(-1),
    [2, 1],
    [1, 2].map((y) => Math.atan2(y, -1)),
  ],
  [(gpu) => x(gpu).less(column(gpu)), [2, 3], [0, 1, 0, 1, 0, 1]],
  [(gpu) => x(gpu).lessEqual(1), [2, 3], [1, 1, 0, 1, 0, 1]],
  [(gpu) => x(gpu).greater(1), [2, 3], [0, 0, 1, 0, 1, 0]],
  [(gpu) => x(gpu).greaterEqual(1), [2, 3], [1, 0, 1, 0, 1, 0]],
  [(gpu) => x(gpu).equal(3), [2, 3], [0, 0, 1, 0, 0, 0]],
  [(gpu) => x(gpu).notEqual(3), [2, 3], [1, 1, 0, 1, 1, 1]],
  [(gpu) => x(gpu).notEqual(NaN), [2, 3], [1, 1, 1, 1, 1, 1]],
  // Of two tensors or numbers by a third.
  [(gpu) => gpu.where(x(gpu).less(0), 0, x(gpu)), [2, 3], [1, 0, 3, 0, 5, 0]],
  [
    (gpu) => gpu.where(row(gpu).sub(20), column(gpu), row(gpu)),
    [2, 3],
    [1, 20, 1, 2, 20, 2],
  ],
  [(gpu) => gpu.where(gpu.tensor(f32(NaN, -0)), 1, 2), [2], [1, 2]],
  [
    (gpu) => x(gpu).relu().scale(2).add(row(gpu)),
    [2, 3],
    [12, 20, 36, 10, 30, 30],
  ],
  // Over axes.
  [(gpu) => x(gpu).sum(), [], [-3]],
  [(gpu) => x(gpu).sum(0), [3], [-3, 3, -3]],
  [(gpu) => x(gpu).sum(-1), [2], [2, -5]],
  [(gpu) => x(gpu).sum([0, -1]), [], [-3]],
  [(gpu) => x(gpu).sum([]), [2, 3], [1, -2, 3, -4, 5, -6]],
  [(gpu) => x(gpu).sum({ axis: 1, keepDims: true }), [2, 1], [2, -5]],
  [(gpu) => x(gpu).sum({ keepDims: true }), [1, 1], [-3]],
  [(gpu) => cube(gpu).sum([2, 0]), [3], [60, 92, 124]],
  [(gpu) => gpu.tensor([], [0, 2]).sum(0), [2], [0, 0]],
  [(gpu) => cube(gpu).mean(1).slice([1]), [1, 4], [16, 17, 18, 19]],
  [(gpu) => x(gpu).max(1), [2], [3, 5]],
  [(gpu) => x(gpu).min(0), [3], [-4, -2, -6]],
  [(gpu) => x(gpu).argmax(1), [2], [2, 1]],
  [(gpu) => x(gpu).argmax(), [], [4]],
  [(gpu) => gpu.tensor(f32(1, NaN, 3)).argmax(), [], [1]],
  [(gpu) => x(gpu).dot(row(gpu)), [2], [60, -120]],
  [(gpu) => row(gpu).dot(row(gpu)), [], [1400]],
  // Rows scaled.
  [
    (gpu) => gpu.tensor(f32(1, 1, 2, 2), [2, 2]).softmax(),
    [2, 2],
    [0.5, 0.5, 0.5, 0.5],
  ],
  [
    (gpu) => gpu.tensor(f32(0, 0, Math.log(3), 0), [2, 2]).softmax(0),
    [2, 2],
    [0.25, 0.5, 0.75, 0.5],
  ],
  [(gpu) => gpu.tensor(f32(0, 0)).softmax({ axis: 0 }), [2], [0.5, 0.5]],
  [(gpu) => gpu.tensor(f32(1, 3)).layerNorm({ epsilon: 0 }), [2], [-1, 1]],
  [(gpu) => gpu.tensor(f32(1, 3)).layerNorm({ epsilon: 3 }), [2], [-0.5, 0.5]],
  [(gpu) => gpu.tensor(f32(0, 0)).layerNorm(), [2], [0, 0]],
  [(gpu) => gpu.tensor(f32(2, 2, 2)).rmsNorm(), [3], [1, 1, 1]],
  [
    (gpu) => gpu.tensor(f32(5, 5, 5), [3, 1]).normalize(0),
    [3, 1],
    [third, third, third],
  ],
  [(gpu) => gpu.tensor(f32(3, 4)).normalize(), [2], [0.6, 0.8]],
  // Moved.
  [(gpu) => x(gpu).transpose(), [3, 2], [1, -4, -2, 5, 3, -6]],
  [
    (gpu) => cube(gpu).transpose([-1, 0, 1]).slice([0, 1]),
    [1, 2, 3],
    [0, 4, 8, 12, 16, 20],
  ],
  [(gpu) => x(gpu).slice([1]), [1, 3], [-4, 5, -6]],
  [(gpu) => x(gpu).slice([], [1, 3]), [2, 2], [-2, 3, 5, -6]],
  [
    (gpu) => x(gpu).slice(undefined, [-1, undefined, -1]),
    [2, 3],
    [3, -2, 1, -6, 5, -4],
  ],
  [
    (gpu) => x(gpu).slice([0, 99], [undefined, undefined, 2]),
    [2, 2],
    [1, 3, -4, -6],
  ],
  [(gpu) => x(gpu).slice([0, 1], [2, 0, -1]), [1, 2], [3, -2]],
  [(gpu) => x(gpu).slice([0, 1], [0, 3, 2 ** 40]), [1, 1], [1]],
  [
    (gpu) =>
      x(gpu)
        .slice([1, 2], [5])
        .concat(row(gpu).reshape([1, 3]), 1),
    [1, 3],
    [10, 20, 30],
  ],
  [(gpu) => x(gpu).reshape([3, -1]), [3, 2], [1, -2, 3, -4, 5, -6]],
  [(gpu) => x(gpu).reshape([-1]), [6], [1, -2, 3, -4, 5, -6]],
  [
    (gpu) => x(gpu).gather(u32(1, 0, 1)),
    [3, 3],
    [-4, 5, -6, 1, -2, 3, -4, 5, -6],
  ],
  [
    (gpu) => x(gpu).gather(gpu.tensor(u32(2, 0), [2, 1]), 1),
    [2, 2, 1],
    [3, 1, -6, -4],
  ],
  [(gpu) => row(gpu).gather(row(gpu).argmax()), [], [30]],
  [(gpu) => gpu.tensor(u32(7, 8, 9)).gather(new Int32Array([2])), [1], [9]],
  [
    (gpu) => x(gpu).concat(row(gpu).reshape([1, 3])),
    [3, 3],
    [1, -2, 3, -4, 5, -6, 10, 20, 30],
  ],
  [
    (gpu) => x(gpu).concat([column(gpu), column(gpu)], -1),
    [2, 5],
    [1, -2, 3, 1, 1, -4, 5, -6, 2, 2],
  ],
];

for (const [make, shape, expected] of RESULTS) {
  test(make.toString().replace(/\s+/g, " "), async () => {
    const { shape: got, result } = await read(make);
    assert.deepEqual(got, shape);
    assert.equal(result.length, expected.length);
    expected.forEach((value, i) => {
      const error = Math.abs(result[i] - value);
      assert.ok(
        error <= 2e-7 * Math.abs(value),
        `${result} is not ${expected}`,
      );
    });
  });
}

test("products have the shapes that NumPy gives them", async () => {
  const { gpu } = await manual();
  for (const [a, b, expected] of [
    [[24], [24], []],
    [
      [4, 6],
      [6, 4],
      [4, 4],
    ],
    [[24], [24, 1], [1]],
    [[1, 24], [24], [1]],
    [[4], [2, 4, 3], [2, 3]],
    [[3, 1, 2, 4], [4], [3, 1, 2]],
    [
      [3, 1, 2, 4],
      [2, 4, 3],
      [3, 2, 2, 3],
    ],
  ]) {
    const made = [a, b].map((dims) => {
      const count = dims.reduce((product, dim) => product * dim, 1);
      return gpu.tensor(new Float32Array(count), dims);
    });
    assert.deepEqual(made[0].matmul(made[1]).shape, expected, `${a} @ ${b}`);
  }
});

test("a tensor says what it is, whatever is done to its list of dimensions", async () => {
  const { gpu } = await manual();
  const dims = [2, 3];
  const a = gpu.tensor(new Float32Array(6), dims);
  dims[0] = 9;
  a.shape[0] = 9;
  assert.deepEqual(a.exp().shape, [2, 3]);
  assert.equal(a.dtype, "float32");
  assert.equal(a.argmax().transpose().dtype, "uint32");
});
