// The network in WGSL, for the systems written by hand: in one pass, and in the six
// operations that it is made of.

import type { Kernel, Step } from "./op.ts";

/** Numbers of a row on its way. */
export const [INPUTS, HIDDEN, CLASSES] = [32, 64, 10];

// Abramowitz and Stegun, 7.1.26: to 1.5e-7.
const [P, A1, A2, A3] = [0.3275911, 0.254829592, -0.284496736, 1.421413741];
const [A4, A5] = [-1.453152027, 1.061405429];

export function nearErf(x: number): number {
  const t = 1 / (1 + P * Math.abs(x));
  const polynomial = ((((A5 * t + A4) * t + A3) * t + A2) * t + A1) * t;
  return Math.sign(x) * (1 - polynomial * Math.exp(-x * x));
}

/** The same of a type of WGSL. */
const gelu = (type: string) => /* wgsl */ `
  fn gelu(v: ${type}) -> ${type} {
    let x = v * ${Math.SQRT1_2};
    let t = 1.0 / (1.0 + ${P} * abs(x));
    let polynomial = ((((${A5} * t + ${A4}) * t + ${A3}) * t + ${A2}) * t + ${A1}) * t;
    return v * 0.5 * (1.0 + sign(x) * (1.0 - polynomial * exp(-x * x)));
  }`;

/** All of it in one pass, a thread a row. */
export const rowByRow: Kernel = {
  operands: ["vec4f", "vec4f", "vec4f", "f32", "f32"],
  timed: false,
  bytes: (INPUTS * 16) / CLASSES,
  whole: {
    output: "f32",
    groups: (floats) => [Math.ceil(floats / CLASSES / 64), 1],
  },
  code: /* wgsl */ `
      ${gelu("vec4f")}
      @compute @workgroup_size(64)
      fn main(@builtin(global_invocation_id) id: vec3u) {
        let row = id.x;
        if (row >= arrayLength(&output) / 10u) { return; }
        var x: array<vec4f, 8>;
        for (var k = 0u; k < 8u; k++) { x[k] = in0[row * 8u + k]; }
        var scores: array<f32, 10>;
        for (var c = 0u; c < 10u; c++) { scores[c] = in4[c]; }
        for (var h = 0u; h < 16u; h++) {
          var sum = in2[h];
          for (var k = 0u; k < 8u; k++) {
            let at = k * 64u + h;
            sum += x[k].x * in1[at] + x[k].y * in1[at + 16u]
              + x[k].z * in1[at + 32u] + x[k].w * in1[at + 48u];
          }
          let v = gelu(sum);
          for (var c = 0u; c < 10u; c++) {
            let at = h * 40u + c;
            scores[c] += v.x * in3[at] + v.y * in3[at + 10u]
              + v.z * in3[at + 20u] + v.w * in3[at + 30u];
          }
        }
        var most = scores[0];
        for (var c = 1u; c < 10u; c++) { most = max(most, scores[c]); }
        var sum = 0.0;
        for (var c = 0u; c < 10u; c++) {
          scores[c] = exp(scores[c] - most);
          sum += scores[c];
        }
        for (var c = 0u; c < 10u; c++) { output[row * 10u + c] = scores[c] / sum; }
      }`,
};

/** Six operations, a thread an element. */
export const steps: readonly Step[] = made();

function made(): Step[] {
  const product = (inner: number, outer: number) =>
    step(inner, outer, `dotted(i / ${outer}u, i % ${outer}u)`, {
      takes: 1,
      code: /* wgsl */ `
        fn dotted(row: u32, column: u32) -> f32 {
          var sum = 0.0;
          for (var k = 0u; k < ${inner}u; k++) {
            sum += in0[row * ${inner}u + k] * in1[k * ${outer}u + column];
          }
          return sum;
        }`,
    });
  const bias = (width: number) =>
    step(width, width, `in0[i] + in1[i % ${width}u]`, { takes: 1 });
  const softmax = step(CLASSES, CLASSES, `share(i)`, {
    takes: 0,
    code: /* wgsl */ `
      fn share(i: u32) -> f32 {
        let first = i - i % 10u;
        var most = in0[first];
        for (var c = 1u; c < 10u; c++) { most = max(most, in0[first + c]); }
        var sum = 0.0;
        for (var c = 0u; c < 10u; c++) { sum += exp(in0[first + c] - most); }
        return exp(in0[i] - most) / sum;
      }`,
  });
  const kernels = [
    product(INPUTS, HIDDEN),
    bias(HIDDEN),
    step(HIDDEN, HIDDEN, "gelu(in0[i])", { takes: 0, code: gelu("f32") }),
    product(HIDDEN, CLASSES),
    bias(CLASSES),
    softmax,
  ];
  // The weights in order, where an operation takes some.
  let operand = 1;
  return kernels.map((kernel) => ({
    kernel,
    takes: kernel.operands.slice(1).map(() => operand++),
  }));
}

/** One operation from rows of `from` floats to rows of `to`. */
function step(
  from: number,
  to: number,
  body: string,
  { takes, code = "" }: { takes: number; code?: string },
): Kernel {
  return {
    operands: new Array<string>(1 + takes).fill("f32"),
    timed: false,
    bytes: (from * 16) / to,
    whole: {
      output: "f32",
      groups: (floats) => [Math.ceil(floats / 64), 1],
    },
    code: /* wgsl */ `
      ${code}
      @compute @workgroup_size(64)
      fn main(@builtin(global_invocation_id) id: vec3u) {
        let i = id.x;
        if (i >= arrayLength(&output)) { return; }
        output[i] = ${body};
      }`,
  };
}
