// A small network that many callers share: 32 numbers a row, 64 hidden ones by the
// exact gelu, 10 probabilities. Each caller has a few rows, as many as its seed says.

import { floats, sequence } from "./inputs.ts";
import {
  CLASSES,
  HIDDEN,
  INPUTS,
  nearErf,
  rowByRow,
  steps,
} from "./network-by-hand.ts";
import type { Call, Op } from "./op.ts";

const operands = ({ operands }: Call) =>
  operands as readonly Float32Array<ArrayBuffer>[];
const rowsOf = (call: Call) => call.operands[0].length / INPUTS;

export const network: Op = {
  name: "network",
  bounds: { own: 2e-6, builtin: 2e-5 },
  held: {
    operands: 4,
    since: "open",
    shapes: [[INPUTS, HIDDEN], [HIDDEN], [HIDDEN, CLASSES], [CLASSES]],
  },

  /** Calls of 1 to `items` rows. */
  calls(count, items) {
    const next = sequence();
    // Scaled weights keep hidden numbers at about 1, and probabilities apart.
    const [w1, b1] = [INPUTS * HIDDEN, HIDDEN].map((n) => floats(n, next));
    const [w2, b2] = [HIDDEN * CLASSES, CLASSES].map((n) => floats(n, next));
    for (let i = 0; i < w1.length; i++) w1[i] *= 0.3;
    for (let i = 0; i < w2.length; i++) w2[i] *= 0.3;
    return Array.from({ length: count }, () => {
      const rows = 1 + Math.floor(next() * items);
      return { operands: [floats(rows * INPUTS, next), w1, b1, w2, b2], t: 0 };
    });
  },

  expected: (call) => forward(call, erf, Float64Array),

  loop: (call) => forward(call, nearErf, Float32Array),

  framebatch: (gpu, call, [w1, b1, w2, b2]) =>
    gpu
      .tensor(operands(call)[0], [rowsOf(call), INPUTS])
      .matmul(w1)
      .add(b1)
      .gelu()
      .matmul(w2)
      .add(b2)
      .softmax()
      .read(),

  kernel: rowByRow,
  steps,

  tfjs(tf, call, [w1, b1, w2, b2]) {
    const a = tf.tensor2d(operands(call)[0], [rowsOf(call), INPUTS]);
    const { matMul } = tf.fused;
    const hidden = matMul({ a, b: w1 as typeof a, bias: b1 });
    const gelu = hidden
      .mul(Math.SQRT1_2)
      .erf()
      .add(1)
      .mul(hidden)
      .mul(0.5) as typeof a;
    return matMul({ a: gelu, b: w2 as typeof a, bias: b2 }).softmax();
  },

  jax: {
    inputs: ({ numpy: np }, call) => [
      np.array(operands(call)[0], { shape: [rowsOf(call), INPUTS] }),
    ],
    jitted: ({ jit, nn, numpy: np }) =>
      jit((x, w1, b1, w2, b2) => {
        const hidden = nn.gelu(np.matmul(x, w1).add(b1), {
          approximate: false,
        });
        return nn.softmax(np.matmul(hidden, w2).add(b2), -1);
      }),
  },
};

type Floats = Float32ArrayConstructor | Float64ArrayConstructor;

/** A row after the other, in numbers of a class. */
function forward(call: Call, erf: (x: number) => number, Class: Floats) {
  const [x, w1, b1, w2, b2] = operands(call);
  const rows = rowsOf(call);
  const hidden = new Class(HIDDEN);
  const scores = new Class(CLASSES);
  const out = new Class(rows * CLASSES) as Float32Array<ArrayBuffer>;
  for (let row = 0; row < rows; row++) {
    hidden.set(b1);
    for (let k = 0; k < INPUTS; k++) {
      const factor = x[row * INPUTS + k];
      for (let h = 0; h < HIDDEN; h++) hidden[h] += factor * w1[k * HIDDEN + h];
    }
    scores.set(b2);
    for (let h = 0; h < HIDDEN; h++) {
      const v = hidden[h];
      const gelu = v * 0.5 * (1 + erf(v * Math.SQRT1_2));
      for (let c = 0; c < CLASSES; c++) scores[c] += gelu * w2[h * CLASSES + c];
    }
    let [most, sum] = [-Infinity, 0];
    for (let c = 0; c < CLASSES; c++) most = Math.max(most, scores[c]);
    for (let c = 0; c < CLASSES; c++) {
      sum += scores[c] = Math.exp(scores[c] - most);
    }
    for (let c = 0; c < CLASSES; c++) out[row * CLASSES + c] = scores[c] / sum;
  }
  return out;
}

/** By its Taylor series, to 1e-9 or better. */
function erf(x: number): number {
  if (Math.abs(x) > 4.5) return Math.sign(x);
  let [sum, term] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
