// jax-js on WebGPU: a jitted function a call, then `data()`.

import type { numpy } from "@jax-js/jax";
import { type Call, heldOf, type Jax, type Op } from "../ops/op.ts";
import type { System } from "./system.ts";

export const jaxJs: System = {
  name: "jax-js",
  about: "jax-js 0.1.25 WebGPU, jit",
  bound: "builtin",
  async open(op) {
    if (op.jax === undefined) throw new Error(`it has no ${op.name}`);
    const jax = await startJax();
    const answer = answererByJax(jax, op);
    let kept: numpy.Array[] | undefined;
    return {
      async run(calls) {
        const held = kept ?? holdInJax(jax, op, calls);
        if (op.held?.since === "open") kept = held;
        const answers = calls.map((call) => answer(call, held));
        if (kept === undefined) for (const array of held) array.dispose();
        return Promise.all(answers);
      },
      // The library's device is the page's, and cannot be given back.
      close() {
        for (const array of kept ?? []) array.dispose();
      },
    };
  },
};

/** The library on WebGPU. */
export async function startJax(): Promise<Jax> {
  const jax = await import("@jax-js/jax");
  const devices = await jax.init("webgpu");
  if (!devices.includes("webgpu")) throw new Error("no WebGPU adapter");
  jax.defaultDevice("webgpu");
  return jax;
}

/** What answers a call of an operation that the library has. */
export function answererByJax(jax: Jax, op: Op) {
  const { inputs, jitted } = op.jax!;
  const run = jitted(jax);
  return async (call: Call, held: readonly numpy.Array[]) => {
    // A function takes its arguments over, but for references.
    const more = held.map((array) => array.ref);
    const result = run(...inputs(jax, call), ...more);
    return (await result.data()) as Float32Array;
  };
}

/** What the calls share, as arrays. */
export const holdInJax = (
  { numpy: np }: Jax,
  op: Op,
  calls: readonly Call[],
): numpy.Array[] =>
  heldOf(op, calls[0]).map(({ data, shape }) => np.array(data, { shape }));
