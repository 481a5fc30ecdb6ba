// Gradients of states, 16 bytes a state to 32 floats: a table look-up with much to bring back.
//
// The high nibble of a layer is a log-magnitude plus 8 (0 is null); the derivative of
// 2^(rho/4) by rho is wanted, and by the phase, which is 0.

import { sequence } from "./inputs.ts";
import type { Call, Op } from "./op.ts";

const slope = (nibble: number) =>
  nibble === 0 ? 0 : (Math.LN2 / 4) * 2 ** ((nibble - 8) / 4);

const SLOPES = Float32Array.from({ length: 16 }, (_, nibble) => slope(nibble));

const states = ({ operands: [states] }: Call) =>
  states as Uint8Array<ArrayBuffer>;

export const gradients: Op = {
  name: "gradients",
  bounds: { own: 1e-6, builtin: 1e-6 },

  calls(count, items) {
    const next = sequence();
    return Array.from({ length: count }, () => ({
      operands: [Uint8Array.from({ length: items * 16 }, () => next() * 256)],
      t: 0,
    }));
  },

  expected(call) {
    const out = new Float64Array(states(call).length * 2);
    states(call).forEach((byte, layer) => (out[layer * 2] = slope(byte >> 4)));
    return out;
  },

  loop(call) {
    const bytes = states(call);
    const out = new Float32Array(bytes.length * 2);
    for (let i = 0; i < bytes.length; i++) out[2 * i] = SLOPES[bytes[i] >> 4];
    return out;
  },

  framebatch: (gpu, call) => gpu.states.gradients(states(call)),

  kernel: {
    operands: ["u32"],
    timed: false,
    bytes: 2,
    code: /* wgsl */ `
      const SLOPES = array<f32, 16>(${[...SLOPES].join(", ")});
      fn compute(i: u32, t: f32) -> vec4f {
        let pair = in0[i / 2u] >> (16u * (i & 1u));
        return vec4f(SLOPES[(pair >> 4u) & 15u], 0.0, SLOPES[(pair >> 12u) & 15u], 0.0);
      }`,
  },

  tfjs(tf, call) {
    // TensorFlow.js has no shifts and no 8-bit integers: a table has the answer for every byte.
    const table = Float32Array.from({ length: 512 }, (_, k) =>
      k % 2 === 0 ? SLOPES[k >> 5] : 0,
    );
    const indices = tf.tensor1d(states(call), "int32");
    return tf.gather(tf.tensor2d(table, [256, 2]), indices);
  },

  jax: {
    // Four bytes a word, as they lie.
    inputs: ({ numpy: np }, call) => [
      np.array(new Uint32Array(states(call).buffer)),
    ],
    jitted: ({ jit, numpy: np }) =>
      jit((words) => {
        const shifts = np.array(Uint32Array.of(4, 12, 20, 28));
        const count = words.shape[0];
        const nibbles = np.bitwiseAnd(
          np.rightShift(words.reshape([count, 1]), shifts),
          np.array(Uint32Array.of(15)),
        );
        const rho = nibbles.ref.astype(np.float32).sub(8);
        const slopes = np
          .exp(rho.mul(Math.LN2 / 4))
          .mul(np.where(np.equal(nibbles, 0), 0, Math.LN2 / 4));
        return np.stack([slopes, np.zeros([count, 4])], 2);
      }),
  },
};
