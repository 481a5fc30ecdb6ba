// Products of square matrices, row-major: one alone with all of its transfers, and a
// chain of them on the device, by which the kernel's own time is found.

import { sequence } from "./inputs.ts";
import type { Call, Kernel, Op } from "./op.ts";

/** Places of a product that are checked, about. */
const CHECKED = 4096;

const operands = ({ operands: [a, b] }: Call) =>
  [a, b] as Float32Array<ArrayBuffer>[];

/** `items` numbers of a side: both matrices between -1 and 1. */
export const matmul: Op = {
  name: "matmul",
  // A sum of 4,096 products of numbers up to 1, each partial sum rounded.
  bounds: { own: 1e-3, builtin: 1e-3 },

  calls(count, items) {
    const next = sequence();
    return Array.from({ length: count }, () => ({
      operands: [
        matrix(items, () => next() * 2 - 1),
        matrix(items, () => next() * 2 - 1),
      ],
      t: 0,
    }));
  },

  // Odd, so that places in all rows and columns come up.
  stride: (call) => Math.floor(call.operands[0].length / CHECKED) | 1,

  expected(call) {
    const [a, b] = operands(call);
    const side = sideOf(call);
    const stride = matmul.stride!(call);
    const out = new Float64Array(Math.ceil(a.length / stride));
    for (let at = 0; at < out.length; at++) {
      const row = Math.floor((at * stride) / side);
      const column = (at * stride) % side;
      for (let k = 0; k < side; k++) {
        out[at] += a[row * side + k] * b[k * side + column];
      }
    }
    return out;
  },

  loop(call) {
    const [a, b] = operands(call);
    const side = sideOf(call);
    const out = new Float32Array(a.length);
    // Along rows of both, which caches like.
    for (let i = 0; i < a.length; i += side) {
      for (let k = 0; k < side; k++) {
        const factor = a[i + k];
        for (let j = 0; j < side; j++) {
          out[i + j] += factor * b[k * side + j];
        }
      }
    }
    return out;
  },

  framebatch(gpu, call) {
    const side = sideOf(call);
    const [a, b] = operands(call).map((data) => gpu.tensor(data, [side, side]));
    const answer = a.matmul(b).read();
    // Large data is on the device from here on, until its call is answered.
    a.dispose();
    b.dispose();
    return answer;
  },

  kernel: tiles(),

  tfjs(tf, call) {
    const side = sideOf(call);
    const [a, b] = operands(call).map((data) =>
      tf.tensor2d(data, [side, side]),
    );
    return tf.matMul(a, b);
  },

  jax: {
    inputs({ numpy: np }, call) {
      const side = sideOf(call);
      return operands(call).map((data) =>
        np.array(data, { shape: [side, side] }),
      );
    },
    jitted: ({ jit, numpy: np }) => jit((a, b) => np.matmul(a, b)),
  },
};

/**
 * A·B·B·…, with `products` factors B, and the mean of that, so that one number comes
 * back. Both are on the device before. All numbers are positive and B keeps means as
 * they are, about, so that neither sums nor chains lose digits.
 */
export function products(side: number, products: number): Op {
  return {
    ...matmul,
    name: "matmul-kernel",
    bounds: { own: 1e-4, builtin: 1e-4 },
    held: {
      operands: 2,
      since: "open",
      shapes: [
        [side, side],
        [side, side],
      ],
    },
    stride: undefined,

    calls(count) {
      const next = sequence();
      const a = matrix(side, next);
      const b = matrix(side, () => (next() * 2) / side);
      return Array.from({ length: count }, () => ({ operands: [a, b], t: 0 }));
    },

    // The mean of A·v, where v is what the factors make of ones.
    expected(call) {
      const [a, b] = operands(call);
      let v = new Float64Array(side).fill(1);
      for (let n = 0; n < products; n++) v = times(b, v);
      const sums = times(a, v);
      return [sums.reduce((sum, value) => sum + value) / (side * side)];
    },

    framebatch(_gpu, _call, [a, b]) {
      let x = a;
      for (let n = 0; n < products; n++) x = x.matmul(b);
      return x.mean().read();
    },

    tfjs(tf, _call, [a, b]) {
      let x = a;
      for (let n = 0; n < products; n++) x = tf.matMul(x, b);
      return x.mean();
    },

    jax: {
      inputs: () => [],
      jitted: ({ jit, numpy: np }) =>
        jit((a, b) => {
          let x = a;
          for (let n = 1; n < products; n++) x = np.matmul(x, b.ref);
          return np.mean(np.matmul(x, b));
        }),
    },
  };
}

const sideOf = (call: Call) => Math.sqrt(call.operands[0].length);

function matrix(side: number, next: () => number) {
  const out = new Float32Array(side * side);
  for (let i = 0; i < out.length; i++) out[i] = next();
  return out;
}

function times(matrix: Float32Array, vector: Float64Array<ArrayBuffer>) {
  const out = new Float64Array(vector.length);
  for (let row = 0; row < out.length; row++) {
    for (let k = 0; k < out.length; k++) {
      out[row] += matrix[row * out.length + k] * vector[k];
    }
  }
  return out;
}

/** A workgroup a tile of 64 x 64, a thread 4 x 4 of it; sides are multiples of 64. */
function tiles(): Kernel {
  return {
    operands: ["vec4f", "vec4f"],
    timed: false,
    bytes: 16,
    whole: {
      output: "vec4f",
      groups: (floats) => [Math.sqrt(floats) / 64, Math.sqrt(floats) / 64],
    },
    code: /* wgsl */ `
      var<workgroup> of_a: array<vec4f, 256>;
      var<workgroup> of_b: array<vec4f, 256>;
      @compute @workgroup_size(16, 16)
      fn main(
        @builtin(local_invocation_id) id: vec3u,
        @builtin(local_invocation_index) local: u32,
        @builtin(workgroup_id) tile: vec3u,
        @builtin(num_workgroups) tiles: vec3u,
      ) {
        let vectors = tiles.x * 16u;
        let row = tile.y * 64u;
        let column = tile.x * 16u;
        var sums: array<vec4f, 4>;
        for (var k = 0u; k < vectors; k += 4u) {
          of_a[local] = in0[(row + local / 4u) * vectors + k + local % 4u];
          of_b[local] = in1[(k * 4u + local / 16u) * vectors + column + local % 16u];
          workgroupBarrier();
          for (var j = 0u; j < 4u; j++) {
            let b0 = of_b[j * 64u + id.x];
            let b1 = of_b[j * 64u + 16u + id.x];
            let b2 = of_b[j * 64u + 32u + id.x];
            let b3 = of_b[j * 64u + 48u + id.x];
            for (var r = 0u; r < 4u; r++) {
              let a = of_a[(id.y * 4u + r) * 4u + j];
              sums[r] = fma(a.xxxx, b0, fma(a.yyyy, b1, fma(a.zzzz, b2, fma(a.wwww, b3, sums[r]))));
            }
          }
          workgroupBarrier();
        }
        for (var r = 0u; r < 4u; r++) {
          output[(row + id.y * 4u + r) * vectors + column + id.x] = sums[r];
        }
      }`,
  };
}
