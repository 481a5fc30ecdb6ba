// Chains of operations on tensors: what fusion is for. A short one with an addend that
// all calls share, and a deep one on large arrays, sent each time or already there.

import type { Tensor } from "framebatch";
import { floats, sequence } from "./inputs.ts";
import type { Call, Kernel, Op, Step } from "./op.ts";

const operands = ({ operands }: Call) =>
  operands as readonly Float32Array<ArrayBuffer>[];

/** One operation of its own: `body` is of `in0` and `in1`, at `i` and at `j`. */
function step(body: string, ...takes: number[]): Step {
  return { kernel: kernel(1 + takes.length, body), takes };
}

function kernel(operands: number, body: string): Kernel {
  return {
    operands: new Array<string>(operands).fill("vec4f"),
    timed: false,
    bytes: 16,
    code: /* wgsl */ `
      fn compute(i: u32, t: f32) -> vec4f { return ${body}; }`,
  };
}

/** A step on the result of the step before, or on x where there is none. */
const RELU: Step = { ...step("max(in0[i], vec4f())"), takes: [] };
const DOUBLE = step("in0[i] * 2.0");
const ADD = step("in0[i] + in1[i]", 1);
const MUL = step("in0[i] * in1[i]", 2);

/** relu, scale, add: calls of their own data, and one addend for all of them. */
export const chain: Op = {
  name: "relu-scale-add",
  bounds: { own: 4e-7, builtin: 4e-7 },
  held: { operands: 1, since: "run" },

  calls(count, items) {
    const next = sequence();
    const addend = floats(items, next);
    return Array.from({ length: count }, () => ({
      operands: [floats(items, next), addend],
      t: 0,
    }));
  },

  expected(call) {
    const [x, y] = operands(call);
    return Float64Array.from(x, (v, i) => Math.max(v, 0) * 2 + y[i]);
  },

  loop(call) {
    const [x, y] = operands(call);
    const out = new Float32Array(x.length);
    for (let i = 0; i < x.length; i++) out[i] = Math.max(x[i], 0) * 2 + y[i];
    return out;
  },

  framebatch: (gpu, call, [addend]) =>
    gpu.tensor(operands(call)[0]).relu().scale(2).add(addend).read(),

  kernel: kernel(2, "max(in0[i], vec4f()) * 2.0 + in1[i % arrayLength(&in1)]"),
  steps: [RELU, DOUBLE, ADD],

  tfjs: (tf, call, [addend]) =>
    tf.tensor1d(operands(call)[0]).relu().mul(2).add(addend),

  jax: {
    inputs: ({ numpy: np }, call) => [np.array(operands(call)[0])],
    jitted: ({ jit, nn }) => jit((x, y) => nn.relu(x).mul(2).add(y)),
  },
};

const deepChain = (x: Tensor, y: Tensor, m: Tensor) =>
  x.relu().scale(2).add(y).mul(m).relu();

/** relu, scale, add, mul, relu: three vectors up, one down. */
export const deep: Op = {
  name: "deep5",
  bounds: { own: 1e-6, builtin: 1e-6 },

  calls(count, items) {
    const next = sequence();
    return Array.from({ length: count }, () => ({
      operands: [floats(items, next), floats(items, next), floats(items, next)],
      t: 0,
    }));
  },

  expected(call) {
    const [x, y, m] = operands(call);
    return Float64Array.from(x, (v, i) =>
      Math.max((Math.max(v, 0) * 2 + y[i]) * m[i], 0),
    );
  },

  loop(call, into) {
    const [x, y, m] = operands(call);
    const out = into ?? new Float32Array(x.length);
    for (let i = 0; i < x.length; i++) {
      out[i] = Math.max((Math.max(x[i], 0) * 2 + y[i]) * m[i], 0);
    }
    return out;
  },

  framebatch(gpu, call) {
    const [x, y, m] = operands(call).map((operand) => gpu.tensor(operand));
    const answer = deepChain(x, y, m).read();
    // Large data is on the device from here on, until its call is answered.
    for (const tensor of [x, y, m]) tensor.dispose();
    return answer;
  },

  kernel: kernel(
    3,
    "max((max(in0[i], vec4f()) * 2.0 + in1[i]) * in2[i], vec4f())",
  ),
  steps: [RELU, DOUBLE, ADD, MUL, RELU],

  tfjs(tf, call) {
    const [x, y, m] = operands(call).map((operand) => tf.tensor1d(operand));
    return x.relu().mul(2).add(y).mul(m).relu();
  },

  jax: {
    inputs: ({ numpy: np }, call) =>
      operands(call).map((operand) => np.array(operand)),
    jitted: ({ jit, nn }) =>
      jit((x, y, m) => nn.relu(nn.relu(x).mul(2).add(y).mul(m))),
  },
};

/** The same on data that is there already. */
export const deepResident: Op = {
  ...deep,
  name: "deep5-resident",
  held: { operands: 3, since: "open", into: true },
  framebatch: (_gpu, _call, [x, y, m], into) =>
    deepChain(x, y, m).read(into && { into }),
  tfjs: (_tf, _call, [x, y, m]) => x.relu().mul(2).add(y).mul(m).relu(),
  jax: { ...deep.jax!, inputs: () => [] },
};
