// Who else answers a load: the libraries of the bench, WebGPU by hand a call at a time, and a loop.
//
// None of them batches calls, so that each is asked as its documentation says.

import type { System } from "../systems/system.ts";
import { openDevice } from "../systems/system.ts";
import { cpuLoop } from "../systems/cpu-loop.ts";
import {
  answererByJax,
  holdInJax,
  jaxJs,
  startJax,
} from "../systems/jax-js.ts";
import { answererByHand, perCall } from "../systems/per-call.ts";
import {
  answerByTfjs,
  holdInTfjs,
  startTfjs,
  tfjsDefault,
  tfjsGpu,
} from "../systems/tfjs.ts";
import type { Kind } from "./mix.ts";
import type { Answering } from "./system.ts";

/** A system of the bench, opened for several operations. */
const answering = (
  { name, about, bound }: System,
  open: Answering["open"],
): Answering => ({ name, about, bound, open });

const tensorFlow = (system: System, forward: boolean) =>
  answering(system, async (kinds) => {
    const { tf, device } = await startTfjs(forward);
    const made = kinds.map(({ op, calls }) => {
      const { tfjs: make } = op;
      if (make === undefined) throw new Error(`it has no ${op.name}`);
      return { make, held: holdInTfjs(tf, op, calls) };
    });
    return {
      ask: (kind, call) =>
        answerByTfjs(tf, made[kind].make, call, made[kind].held),
      close() {
        tf.removeBackend("webgpu");
        device.destroy();
      },
    };
  });

const jax = answering(jaxJs, async (kinds) => {
  const jax = await startJax();
  const made = kinds.map(({ op, calls }) => {
    if (op.jax === undefined) throw new Error(`it has no ${op.name}`);
    return { answer: answererByJax(jax, op), held: holdInJax(jax, op, calls) };
  });
  return {
    ask: (kind, call) => made[kind].answer(call, made[kind].held),
    // The library's device is the page's, and cannot be given back.
    close() {
      for (const array of made.flatMap(({ held }) => held)) array.dispose();
    },
  };
});

const byHand = answering(perCall, async (kinds: readonly Kind[]) => {
  const device = await openDevice();
  const answers = await Promise.all(
    kinds.map(({ op }) => answererByHand(device, op)),
  );
  return {
    ask: (kind, call) => answers[kind](call),
    close: () => device.destroy(),
  };
});

const loop = answering(cpuLoop, async (kinds) => ({
  ask: async (kind, call) => kinds[kind].op.loop(call),
  close() {},
}));

export const RIVALS: readonly Answering[] = [
  loop,
  byHand,
  tensorFlow(tfjsDefault, true),
  tensorFlow(tfjsGpu, false),
  jax,
];
