// A kernel of a caller's own with 20 floating-point operations an element: eˣ by its Taylor
// polynomial of degree 9, times a second operand, plus a number that comes with the call.

import "framebatch/kernels";
import { floats, fraction, sequence } from "../ops/inputs.ts";
import type { Call, Op } from "../ops/op.ts";
import { perSession } from "./per-session.ts";

/** 1/9!, 1/8!, … 1/0!: what Horner's rule takes, one after the other. */
const COEFFICIENTS = [...Array(10).keys()]
  .reverse()
  .map(
    (n) =>
      1 / [...Array(n).keys()].reduce((product, k) => product * (k + 1), 1),
  );

const operands = ({ operands: [x, y] }: Call) =>
  [x, y] as readonly Float32Array<ArrayBuffer>[];

/** The polynomial in `x`: nine products and nine sums. */
const horner = (literal: (coefficient: number) => string): string =>
  COEFFICIENTS.map(literal).reduce((sum, next) => `(${sum} * x + ${next})`);

/** A coefficient as a float of WGSL. */
const float = (coefficient: number): string =>
  coefficient % 1 === 0 ? coefficient.toFixed(1) : String(coefficient);

const kernelOf = perSession((gpu) =>
  gpu.kernel({
    name: "polynomial",
    inputs: { x: "f32", y: "f32" },
    params: { t: "f32" },
    output: "f32",
    code: `fn element(x: f32, y: f32) -> f32 { return ${horner(float)} * y + params.t; }`,
  }),
);

function computed(x: number, y: number, t: number): number {
  let sum = COEFFICIENTS[0];
  for (let n = 1; n < COEFFICIENTS.length; n++) sum = sum * x + COEFFICIENTS[n];
  return sum * y + t;
}

export const polynomial: Op = {
  name: "polynomial",
  bounds: { own: 2e-6, builtin: 2e-6 },

  calls(count, items) {
    const next = sequence();
    return Array.from({ length: count }, (_, call) => ({
      operands: [floats(items, next), floats(items, next)],
      t: fraction(call),
    }));
  },

  expected(call) {
    const [x, y] = operands(call);
    return Float64Array.from(x, (v, i) => computed(v, y[i], call.t));
  },

  loop(call) {
    const [x, y] = operands(call);
    const out = new Float32Array(x.length);
    for (let i = 0; i < x.length; i++) out[i] = computed(x[i], y[i], call.t);
    return out;
  },

  framebatch(gpu, call) {
    const [x, y] = operands(call);
    return kernelOf(gpu)({ x, y }, { t: call.t }).read();
  },

  kernel: {
    operands: ["vec4f", "vec4f"],
    timed: true,
    bytes: 16,
    code: /* wgsl */ `
      fn compute(i: u32, t: f32) -> vec4f {
        let x = in0[i];
        return ${horner((coefficient) => `vec4f(${float(coefficient)})`)} * in1[i] + t;
      }`,
  },

  gpuJs: `function (in0, in1, t) {
    const x = in0[this.thread.x];
    return ${horner(float)} * in1[this.thread.x] + t;
  }`,
};
