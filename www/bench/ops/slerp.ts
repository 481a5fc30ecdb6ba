// Unit quaternions along the shorter arc: a few dozen operations for four floats.

import { fraction, quaternions, sequence } from "./inputs.ts";
import type { Call, Op } from "./op.ts";

const operands = ({ operands: [a, b] }: Call) =>
  [a, b] as Float32Array<ArrayBuffer>[];

export const slerp: Op = {
  name: "slerp",
  bounds: { own: 1e-6, builtin: 1e-3 },

  calls(count, items) {
    const next = sequence();
    return Array.from({ length: count }, (_, call) => ({
      operands: [quaternions(items, next), quaternions(items, next)],
      // A call alone is measured in the middle of the arc.
      t: count === 1 ? 0.4 : fraction(call),
    }));
  },

  expected(call) {
    const [a, b] = operands(call);
    const { t } = call;
    const out = new Float64Array(a.length);
    for (let at = 0; at < a.length; at += 4) {
      let dot = 0;
      for (let k = at; k < at + 4; k++) dot += a[k] * b[k];
      const angle = Math.acos(Math.min(1, Math.abs(dot)));
      const sine = Math.sin(angle);
      const near = sine < 1e-9;
      const from = near ? 1 - t : Math.sin((1 - t) * angle) / sine;
      const to = (near ? t : Math.sin(t * angle) / sine) * (dot < 0 ? -1 : 1);
      for (let k = at; k < at + 4; k++) out[k] = from * a[k] + to * b[k];
    }
    return out;
  },

  loop(call) {
    const [a, b] = operands(call);
    const { t } = call;
    const out = new Float32Array(a.length);
    for (let at = 0; at < a.length; at += 4) {
      const dot =
        a[at] * b[at] +
        a[at + 1] * b[at + 1] +
        a[at + 2] * b[at + 2] +
        a[at + 3] * b[at + 3];
      const cosine = Math.min(1, Math.abs(dot));
      let from = 1 - t;
      let to = t;
      if (cosine < 0.999999) {
        const angle = Math.acos(cosine);
        const scale = 1 / Math.sqrt(1 - cosine * cosine);
        from = Math.sin(from * angle) * scale;
        to = Math.sin(to * angle) * scale;
      }
      if (dot < 0) to = -to;
      out[at] = from * a[at] + to * b[at];
      out[at + 1] = from * a[at + 1] + to * b[at + 1];
      out[at + 2] = from * a[at + 2] + to * b[at + 2];
      out[at + 3] = from * a[at + 3] + to * b[at + 3];
    }
    return out;
  },

  framebatch(gpu, call) {
    const [a, b] = call.operands as Float32Array[];
    return gpu.slerp(a, b, call.t);
  },

  kernel: {
    operands: ["vec4f", "vec4f"],
    timed: true,
    bytes: 16,
    code: /* wgsl */ `
      fn compute(i: u32, t: f32) -> vec4f {
        let a = in0[i];
        let b = in1[i];
        let cosine = dot(a, b);
        let angle = acos(min(abs(cosine), 1.0));
        let sine = sin(angle);
        var weights = vec2f(1.0 - t, t);
        if (sine > 1e-4) { weights = sin(weights * angle) / sine; }
        return a * weights.x + b * select(weights.y, -weights.y, cosine < 0.0);
      }`,
  },

  tfjs(tf, call) {
    const [a, b] = operands(call).map((operand) =>
      tf.tensor2d(operand, [operand.length / 4, 4]),
    );
    // TensorFlow.js's `sum` over so short an axis takes 200 times as long.
    const [x, y, z, w] = tf.unstack(a.mul(b), 1);
    const dot = x.add(y).add(z.add(w)).expandDims(1);
    const angle = dot.abs().minimum(tf.scalar(1)).acos();
    const sine = angle.sin();
    const from = angle
      .mul(1 - call.t)
      .sin()
      .div(sine);
    const to = angle.mul(call.t).sin().div(sine).mul(dot.sign());
    return a.mul(from).add(b.mul(to));
  },

  jax: {
    inputs: ({ numpy: np }, call) => [
      ...operands(call).map((operand) =>
        np.array(operand, { shape: [operand.length / 4, 4] }),
      ),
      np.array(Float32Array.of(call.t)),
    ],
    jitted: ({ jit, numpy: np }) =>
      jit((a, b, t) => {
        const dot = np.sum(a.ref.mul(b.ref), 1, { keepdims: true });
        const angle = np.acos(np.minimum(np.abs(dot.ref), 1));
        const sine = np.sin(angle.ref);
        const rest = np.subtract(1, t.ref);
        const from = np.sin(angle.ref.mul(rest)).div(sine.ref);
        const to = np.sin(angle.mul(t)).div(sine).mul(np.sign(dot));
        return a.mul(from).add(b.mul(to));
      }),
  },
};
