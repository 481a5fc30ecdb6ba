// `(1 - t) a + t b`, a float at a time: the least work that a call can have.

import { floats, fraction, sequence } from "./inputs.ts";
import type { Call, Op } from "./op.ts";

const operands = ({ operands: [a, b] }: Call) =>
  [a, b] as Float32Array<ArrayBuffer>[];

export const lerp: Op = {
  name: "lerp",
  bounds: { own: 3e-7, builtin: 3e-7 },

  calls(count, items) {
    const next = sequence();
    return Array.from({ length: count }, (_, call) => ({
      operands: [floats(items, next), floats(items, next)],
      t: fraction(call),
    }));
  },

  expected(call) {
    const [a, b] = operands(call);
    const { t } = call;
    return Float64Array.from(a, (x, i) => (1 - t) * x + t * b[i]);
  },

  loop(call) {
    const [a, b] = operands(call);
    const { t } = call;
    const out = new Float32Array(a.length);
    for (let i = 0; i < a.length; i++) out[i] = (1 - t) * a[i] + t * b[i];
    return out;
  },

  framebatch(gpu, call) {
    const [a, b] = call.operands as Float32Array[];
    return gpu.lerp(a, b, call.t);
  },

  kernel: {
    operands: ["vec4f", "vec4f"],
    timed: true,
    bytes: 16,
    code: /* wgsl */ `
      fn compute(i: u32, t: f32) -> vec4f {
        return (1.0 - t) * in0[i] + t * in1[i];
      }`,
  },

  tfjs(tf, call) {
    const [a, b] = operands(call).map((operand) => tf.tensor1d(operand));
    return a.mul(1 - call.t).add(b.mul(call.t));
  },

  jax: {
    inputs: ({ numpy: np }, call) => [
      ...operands(call).map((operand) => np.array(operand)),
      np.array(Float32Array.of(call.t)),
    ],
    jitted: ({ jit }) => jit((a, b, t) => a.ref.add(b.sub(a).mul(t))),
  },
};
