// TensorFlow.js and jax-js: a new array for each step, kept on the GPU.

import type { Tensor1D } from "@tensorflow/tfjs-core";
import { startJax } from "../systems/jax-js.ts";
import { startTfjs } from "../systems/tfjs.ts";
import { DECAY, INFLOW, type Stepping } from "./stepping.ts";

export const tfjs: Stepping = {
  name: "tfjs",
  about: "TensorFlow.js 4.22 WebGPU, every operation on the GPU",
  async open(states) {
    const { tf, device } = await startTfjs(false);
    const tensors: Tensor1D[] = states.map((state) => tf.tensor1d(state));
    return {
      steps(count) {
        for (let step = 0; step < count; step++) {
          for (const [at, state] of tensors.entries()) {
            tensors[at] = tf.tidy(() => state.mul(DECAY).add(INFLOW).relu());
            state.dispose();
          }
        }
      },
      first: () => tensors[0].data<"float32">(),
      close() {
        tf.removeBackend("webgpu");
        device.destroy();
      },
    };
  },
};

export const jaxJs: Stepping = {
  name: "jax-js",
  about: "jax-js 0.1.25 WebGPU, jit",
  async open(states) {
    const jax = await startJax();
    const { numpy: np } = jax;
    const arrays = states.map((state) => np.array(state));
    const next = jax.jit((state: (typeof arrays)[0]) =>
      np.maximum(state.mul(DECAY).add(INFLOW), 0),
    );
    return {
      steps(count) {
        for (let step = 0; step < count; step++) {
          // A function takes its argument over.
          for (const [at, state] of arrays.entries()) arrays[at] = next(state);
        }
      },
      async first() {
        return (await arrays[0].ref.data()) as Float32Array;
      },
      // The library's device is the page's, and cannot be given back.
      close() {
        for (const array of arrays) array.dispose();
      },
    };
  },
};
