// jax-js on WebGPU: a jitted function a call, then `data()`.

import type { Call } from "../ops/op.ts";
import type { System } from "./system.ts";

export const jaxJs: System = {
  name: "jax-js",
  about: "jax-js 0.1.25 WebGPU, jit",
  bound: "builtin",
  async open(op) {
    if (op.jax === undefined) throw new Error(`it has no ${op.name}`);
    const jax = await import("@jax-js/jax");
    const devices = await jax.init("webgpu");
    if (!devices.includes("webgpu")) throw new Error("no WebGPU adapter");
    jax.defaultDevice("webgpu");
    const jitted = op.jax.jitted(jax);
    const { inputs } = op.jax;
    const answer = async (call: Call) =>
      (await jitted(...inputs(jax, call)).data()) as Float32Array;
    return {
      run: (calls) => Promise.all(calls.map(answer)),
      // Its device is the page's, and cannot be given back.
      close() {},
    };
  },
};
