// Wrong tensors: each case throws, at the caller's line, with this sentence.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, manual } from "./face.mjs";

const { gpu, core } = await manual();
const other = (await manual()).gpu;
const floats = (length) => new Float32Array(length);
const x = gpu.tensor(floats(12), [3, 4]);
const y = gpu.tensor(floats(5));
const none = gpu.tensor(floats(0), [0, 4]);
const places = gpu.tensor(new Uint32Array([0, 1]));
const foreign = other.tensor(floats(12), [3, 4]);
const gone = gpu.tensor(floats(12), undefined, { label: "w" });
gone.dispose();
const goneToo = x.exp();
goneToo.dispose();

function detached(array) {
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

const CASES = [
  // Data.
  [
    () => gpu.tensor(floats(5), [2, 3]),
    "tensor: data has 5 elements, but shape [2, 3] holds 6; give as many as the shape holds",
  ],
  [
    () => gpu.tensor([1, 2], [3], { label: "z" }),
    "tensor (label 'z'): data has 2 elements, but shape [3] holds 3; give as many as the shape holds",
  ],
  [
    () => gpu.tensor(new Float64Array(2)),
    "tensor: data must be a Float32Array, a Uint32Array, an Int32Array, a Uint16Array or an array of numbers, got Float64Array; give Float32Array.from(data)",
  ],
  [
    () => gpu.tensor(3),
    "tensor: data must be a Float32Array, a Uint32Array, an Int32Array, a Uint16Array or an array of numbers, got number",
  ],
  [
    () => gpu.tensor(new DataView(new ArrayBuffer(8))),
    "tensor: data must be a Float32Array, a Uint32Array, an Int32Array, a Uint16Array or an array of numbers, got DataView",
  ],
  [
    () => gpu.tensor(new Uint16Array(2)),
    "tensor: a Uint16Array holds 16-bit floats; say with dtype whether they are 'f16' or 'bf16'",
  ],
  [
    () => gpu.tensor(new Uint16Array(2), [2], { dtype: "int8" }),
    "tensor: a Uint16Array holds 16-bit floats; say with dtype whether they are 'f16' or 'bf16'",
  ],
  [
    () => gpu.tensor(new Uint32Array(2), [2], { dtype: "f16" }),
    "tensor: dtype is for floats, and whole numbers have none",
  ],
  [
    () => gpu.tensor(floats(2), [2], { dtype: "f8", label: "q" }),
    "tensor (label 'q'): dtype must be 'f32', 'f16', 'bf16', 'int8', 'int4' or 'auto', got 'f8'",
  ],
  [
    () => gpu.tensor(detached(floats(2))),
    "tensor: data is detached (its buffer was transferred); give an array that still has its memory",
  ],
  [
    () => gpu.tensor([1, 2]).gather(new Int32Array([1, -1])),
    "gather: index -1 is outside of axis 0 of shape [2]",
  ],
  [
    () => gpu.tensor([1, 2]).gather(gpu.tensor(new Int32Array([-1]))),
    "gather: index -1 is outside of axis 0 of shape [2]",
  ],
  [
    () => gpu.tensor(new Int32Array([1])).relu(),
    "relu: an operand must hold floats, not whole numbers",
  ],
  ...[
    [[1, 2], [3]],
    [[1], 2],
    [1, [2]],
    [1, "2"],
    [
      [1, 2],
      [[3], [4]],
    ],
  ].map((data) => [
    () => gpu.tensor(data),
    "tensor: data must hold numbers, or rows of equal length, throughout",
  ]),
  [
    () => gpu.tensor(floats(1), 1),
    "tensor: shape must be an array of numbers, got number",
  ],
  [
    () => gpu.tensor(floats(1), [1, 1, 1, 1, 1, 1, 1, 1, 1]),
    "tensor: a tensor has at most 8 dimensions, not 9",
  ],
  [
    () => gpu.tensor(floats(1), [1.5]),
    "tensor: dimensions must be whole numbers from 0, got [1.5]",
  ],
  [
    () => gpu.tensor(floats(0), [0, 2 ** 20, 2 ** 20]),
    "tensor: a tensor has at most 2^30 elements; [0, 1048576, 1048576] has more",
  ],
  [
    () => gpu.tensor(floats(1), [1], { keeps: true }),
    "tensor: there is no option 'keeps'; the options are dtype, keep, snapshotEvery, ownBuffer, label",
  ],
  [
    () => gpu.tensor(floats(1), [1], { keep: 1 }),
    "tensor: keep must be true or false, got number",
  ],
  [
    () => gpu.tensor(floats(1), [1], null),
    "tensor: options must be an object, got null",
  ],
  [
    () => gpu.tensor(floats(1), [1], { label: 1 }),
    "tensor: label must be a string, got number",
  ],
  // Operands.
  [() => x.add(y), "add: shapes [3, 4] and [5] do not broadcast"],
  [
    () => x.reshape([2, 3, 2]).pow(y),
    "pow: shapes [2, 3, 2] and [5] do not broadcast",
  ],
  [
    () =>
      gpu
        .tensor(floats(2 ** 16), [2 ** 16, 1])
        .mul(gpu.tensor(floats(2 ** 15))),
    "mul: shapes [65536, 1] and [32768] broadcast to more than 2^30 elements",
  ],
  [() => x.sub("1"), "sub: an operand must be a tensor, got string"],
  [() => x.div(), "div: an operand must be a tensor, got undefined"],
  [() => x.maximum({}), "maximum: an operand must be a tensor, got Object"],
  [
    () => x.minimum(foreign),
    "minimum: an operand is a tensor of another session; make both with one session",
  ],
  [() => places.add(1), "add: an operand must hold floats, not whole numbers"],
  [() => x.add(places), "add: an operand must hold floats, not whole numbers"],
  [() => places.exp(), "exp: an operand must hold floats, not whole numbers"],
  [() => places.sum(), "sum: an operand must hold floats, not whole numbers"],
  [
    () => places.softmax(),
    "softmax: an operand must hold floats, not whole numbers",
  ],
  [() => x.dot(places), "dot: an operand must hold floats, not whole numbers"],
  [
    () => x.clamp(0, places),
    "clamp: an operand must hold floats, not whole numbers",
  ],
  [
    () => places.less(1),
    "less: an operand must hold floats, not whole numbers",
  ],
  [() => x.mod(y), "mod: shapes [3, 4] and [5] do not broadcast"],
  [() => x.atan2(), "atan2: an operand must be a tensor, got undefined"],
  [() => gpu.where(1, x, x), "where: an operand must be a tensor, got number"],
  [() => gpu.where(x, 1), "where: an operand must be a tensor, got undefined"],
  [() => gpu.where(x, 1, y), "where: shapes [3, 4] and [5] do not broadcast"],
  [
    () => gpu.where(x, 1, foreign),
    "where: an operand is a tensor of another session; make both with one session",
  ],
  [
    () => gpu.where(places, 1, 0),
    "where: an operand must hold floats, not whole numbers",
  ],
  [() => x.scale(y), "scale: factor must be a number, got a tensor"],
  [() => x.clamp(0, y), "clamp: shapes [3, 4] and [5] do not broadcast"],
  [
    () => x.clamp(gpu.tensor(floats(24), [2, 3, 4]), 1),
    "clamp: shape [2, 3, 4] does not broadcast to [3, 4]",
  ],
  [() => x.dot(y), "dot: shapes [3, 4] and [5] do not broadcast"],
  [
    () => x.sum().dot(y.sum()),
    "dot: shapes [] and [] have no axis to sum along",
  ],
  [
    () => x.matmul(x.sum()),
    "matmul: shapes [3, 4] and [] must have 1 to 7 dimensions each; multiply by a number with mul",
  ],
  [
    () => y.matmul(y.slice([1])),
    "matmul: shapes [5] and [4] must agree in their last dimensions",
  ],
  [
    () => y.matmul(x),
    "matmul: shapes [5] and [3, 4] must agree in the last dimension of the first and the one before the last of the second",
  ],
  [
    () => x.gelu({ approximate: "erf" }),
    "gelu: approximate must be 'tanh' or left out, got 'erf'",
  ],
  [() => x.gelu("tanh"), "gelu: options must be an object, got string"],
  [
    () => x.gelu({ approx: "tanh" }),
    "gelu: there is no option 'approx'; the options are approximate",
  ],
  // Axes.
  [() => x.sum(2), "sum: axis 2 is outside of shape [3, 4]"],
  [() => x.mean([0, -3]), "mean: axis -3 is outside of shape [3, 4]"],
  [() => x.max([0, -2]), "max: an axis is named twice"],
  [() => x.max([0, 1, -2]), "max: an axis is named twice"],
  [() => x.min(0.5), "min: axis 0.5 is outside of shape [3, 4]"],
  [() => x.sum({ axis: NaN }), "sum: axis NaN is outside of shape [3, 4]"],
  [
    () => x.sum("0"),
    "sum: axis must be a number or an array of numbers, got string",
  ],
  [
    () => x.sum({ axes: 0 }),
    "sum: there is no option 'axes'; the options are axis, keepDims",
  ],
  [
    () => x.sum({ keepDims: 1 }),
    "sum: keepDims must be true or false, got number",
  ],
  [() => x.sum(null), "sum: options must be an object, got null"],
  [
    () => none.max(0),
    "max: shape [0, 4] holds nothing along an axis that is reduced",
  ],
  [
    () => none.mean(),
    "mean: shape [0, 4] holds nothing along an axis that is reduced",
  ],
  // Attention.
  ...[
    [[x, x], undefined, "options must be an object, got undefined"],
    [
      [x, x],
      { head: 2 },
      "there is no option 'head'; the options are heads, scale, causal, window",
    ],
    [[x, x], { heads: 0 }, "heads must be a whole number from 1, got 0"],
    [[x, x], { heads: "2" }, "heads must be a whole number from 1, got 2"],
    [[x, x], { heads: 2, scale: "1" }, "scale must be a number, got string"],
    [
      [x, x],
      { heads: 2, causal: 1 },
      "causal must be true or false, got number",
    ],
    [
      [x, x],
      { heads: 2, window: -1 },
      "window must be a whole number from 0, got -1",
    ],
    [
      [x, x],
      { heads: 2, window: 1.5 },
      "window must be a whole number from 0, got 1.5",
    ],
    [
      [x, places],
      { heads: 2 },
      "an operand must hold floats, not whole numbers",
    ],
    [[x, 3], { heads: 2 }, "an operand must be a tensor, got number"],
    [
      [y, x],
      { heads: 2 },
      "shape [5] must have 2 to 7 dimensions, the last two rows and floats",
    ],
    [
      [x.reshape([4, 3]), x],
      { heads: 2 },
      "shapes [4, 3] and [3, 4] must agree in the last dimension",
    ],
    [
      [x.reshape([4, 3]), x.reshape([4, 3])],
      { heads: 2 },
      "shapes [3, 4] and [4, 3] do not suit: keys have as many heads as queries, or a number that divides it",
    ],
    [
      [x, x.slice([1])],
      { heads: 2 },
      "shapes [3, 4] and [2, 4] must agree in the dimension before the last: a value for each key",
    ],
    [
      [x, x],
      { heads: 3 },
      "rows of shape [3, 4] are not 3 heads of 1 to 512 floats",
    ],
    [
      [none, none],
      { heads: 2 },
      "shapes [3, 4] and [0, 4] leave the queries no keys",
    ],
    [
      [x.slice([1]), x.slice([1])],
      { heads: 2, causal: true },
      "shapes [3, 4] and [2, 4] have more queries than keys, so that the first of them would see none; leave causal and window out",
    ],
  ].map(([[k, v], options, says]) => [
    () => x.attention(k, v, options),
    `attention: ${says}`,
  ]),
  [() => x.softmax(2), "softmax: axis 2 is outside of shape [3, 4]"],
  [() => x.sum().layerNorm(), "layerNorm: axis -1 is outside of shape []"],
  [
    () => x.rmsNorm({ epsilon: -1 }),
    "rmsNorm: epsilon must be a number from 0, got -1",
  ],
  [
    () => x.softmax({ epsilon: 0 }),
    "softmax: there is no option 'epsilon'; the options are axis",
  ],
  // Movers.
  [
    () => x.transpose([0, 0]),
    "transpose: the order must name each axis of shape [3, 4] once, got [0, 0]",
  ],
  [
    () => x.transpose([0]),
    "transpose: the order must name each axis of shape [3, 4] once, got [0]",
  ],
  [() => x.transpose([0, 2]), "transpose: axis 2 is outside of shape [3, 4]"],
  [
    () => x.transpose(1),
    "transpose: order must be an array of numbers, got number",
  ],
  [
    () => x.slice([], [], []),
    "slice: 3 ranges are more than shape [3, 4] has axes",
  ],
  [() => x.slice([0, 1, 0]), "slice: a step must not be 0"],
  [
    () => x.slice([0.5]),
    "slice: start, end and step must be whole numbers, got 0.5",
  ],
  [
    () => x.slice(1),
    "slice: a range must be an array of start, end and step, got number",
  ],
  [
    () => x.reshape([5, -1]),
    "reshape: shape [3, 4] does not divide into [5, -1]",
  ],
  [
    () => none.reshape([0, -1]),
    "reshape: shape [0, 4] does not divide into [0, -1]",
  ],
  [
    () => x.reshape([-1, -1]),
    "reshape: dimensions must be whole numbers from 0, got [-12, -1]",
  ],
  [
    () => x.reshape([5]),
    "reshape: shapes [3, 4] and [5] hold different numbers of elements",
  ],
  [
    () => x.reshape(12),
    "reshape: the shape must be an array of numbers, got number",
  ],
  [
    () => x.gather(new Uint32Array([0, 3])),
    "gather: index 3 is outside of axis 0 of shape [3, 4]",
  ],
  [
    () => x.gather(gpu.tensor(new Uint32Array([4])), 1),
    "gather: index 4 is outside of axis 1 of shape [3, 4]",
  ],
  [() => x.gather(places, 2), "gather: axis 2 is outside of shape [3, 4]"],
  [
    () => x.gather(y),
    "gather: the indexes must be whole numbers, as argmax gives; give a Uint32Array, or a tensor of one",
  ],
  [() => x.gather([0]), "gather: an operand must be a tensor, got Array"],
  [
    () => x.gather(floats(1)),
    "gather: the indexes must be whole numbers, as argmax gives; give a Uint32Array, or a tensor of one",
  ],
  [
    () => x.concat(y),
    "concat: shapes [3, 4] and [5] differ outside of the axis",
  ],
  [
    () => x.concat(x.transpose()),
    "concat: shapes [3, 4] and [4, 3] differ outside of the axis",
  ],
  [() => x.concat(x, 2), "concat: axis 2 is outside of shape [3, 4]"],
  [() => x.sum().concat(x), "concat: axis 0 is outside of shape []"],
  [
    () => x.sum(0).concat(places),
    "concat: operands must hold elements of one type",
  ],
  [
    () => x.concat(new Array(255).fill(x)),
    "concat: it takes at most 255 tensors, not 256; join some of them first",
  ],
  // Where they are.
  [
    () => x.exp().gpuBuffer(),
    "gpuBuffer: a recorded tensor lies in no buffer; await its compute(), and ask that tensor",
  ],
  [
    () => none.gpuBuffer(),
    "gpuBuffer: a tensor without elements lies in no buffer",
  ],
];

for (const [record, message] of CASES) {
  test(message, () => {
    assert.throws(record, (error) => {
      assert.ok(error instanceof face.FramebatchError);
      assert.equal(error.code, "invalid-input");
      assert.equal(error.message, message);
      // The caller's line is in the stack.
      assert.match(error.stack, /tensor-errors\.test\.mjs/);
      return true;
    });
    assert.equal(core.counts.submits, 0);
  });
}

const DISPOSED = [
  [() => gone.exp(), "exp: the tensor (label 'w') is disposed; make it anew"],
  [() => x.add(goneToo), "add: the tensor is disposed; make it anew"],
  [() => goneToo.sum(), "sum: the tensor is disposed; make it anew"],
  [
    () => gone.gpuBuffer(),
    "gpuBuffer: the tensor (label 'w') is disposed; make it anew",
  ],
];

for (const [record, message] of DISPOSED) {
  test(message, () => assert.throws(record, { code: "disposed", message }));
}
