// TensorFlow.js as a component would call it: a call's tensors, fused products, `data()`.
//
// The library runs on its WebGPU backend, as it comes, where there is a GPU in hardware. On
// software adapters a frame takes it half a minute, so that its CPU backend stands for it there.

import type { Tensor1D, Tensor2D } from "@tensorflow/tfjs-core";
import { startTfjs } from "../bench/systems/tfjs.ts";
import { BRAINS } from "./creatures/brains.ts";
import type { Ask } from "./creatures/creature.ts";
import { HIDDEN, INPUTS, OUTPUTS } from "./creatures/network.ts";
import type { SpeciesName } from "./creatures/species.ts";

/** Where the library computes. */
export type Backend = "webgpu" | "cpu";

export async function openTensorFlow(
  backend: Backend,
): Promise<{ ask: Ask; ranOn: () => string }> {
  const tf = await start(backend);
  const ranOn = backend === "webgpu" ? "GPU" : "CPU";
  const network = (species: SpeciesName) => {
    const { first, firstBias, second, secondBias } = BRAINS[species];
    return {
      first: tf.tensor2d(first, [INPUTS, HIDDEN]),
      firstBias: tf.tensor1d(firstBias),
      second: tf.tensor2d(second, [HIDDEN, OUTPUTS]),
      secondBias: tf.tensor1d(secondBias),
    };
  };
  const networks = { grazer: network("grazer"), hunter: network("hunter") };
  const layer = (a: Tensor2D, b: Tensor2D, bias: Tensor1D) => ({ a, b, bias });
  const ask: Ask = async ({ species, inputs, into }) => {
    const { first, firstBias, second, secondBias } = networks[species];
    const answer = tf.tidy(() => {
      const rows = tf.tensor2d(inputs, [inputs.length / INPUTS, INPUTS]);
      const hidden = tf.fused.matMul({
        ...layer(rows, first, firstBias),
        activation: "relu",
      }) as Tensor2D;
      return tf.fused.matMul(layer(hidden, second, secondBias));
    });
    into.set(await answer.data<"float32">());
    answer.dispose();
  };
  return { ask, ranOn: () => ranOn };
}

async function start(backend: Backend) {
  if (backend === "webgpu") {
    const { tf } = await startTfjs(true);
    return tf;
  }
  const tf = await import("@tensorflow/tfjs-core");
  await import("@tensorflow/tfjs-backend-cpu");
  await tf.setBackend("cpu");
  return tf;
}
