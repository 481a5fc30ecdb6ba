// What the page measures: steps of one large state, and of a thousand small ones. A table.

import { clocked, repeat, type Terms } from "../measure.ts";
import { timed } from "../record.ts";
import type { Finding, Measured } from "../run.ts";
import { oneBatch } from "./by-hand.ts";
import { framebatchAuto, framebatchGpu } from "./framebatch.ts";
import { jaxJs, tfjs } from "./rivals.ts";
import { newStates, stepped, type Stepping } from "./stepping.ts";

export type Workload = Measured<Stepping>;

export const SYSTEMS: readonly Stepping[] = [
  oneBatch,
  framebatchAuto,
  framebatchGpu,
  tfjs,
  jaxJs,
];

/** How many states of how many elements take how many steps before one is read. */
interface Steps {
  readonly states: number;
  readonly items: number;
  readonly steps: number;
}

/** A float's error grows by about two roundings of numbers up to 2 a step, and decays. */
const BOUND = 1e-4;

async function measureSteps(
  { states, items, steps }: Steps,
  system: Stepping,
  terms: Terms,
): Promise<Finding> {
  const start = newStates(states, items);
  const stepper = await system.open(start);
  let [done, error] = [0, 0];
  try {
    const times = await repeat(async () => {
      let floats = new Float32Array(0);
      const time = await clocked(async () => {
        stepper.steps(steps);
        floats = new Float32Array(await stepper.first());
      });
      done += steps;
      for (let i = 0; i < items; i += 97) {
        const apart = Math.abs(floats[i] - stepped(start[0][i], done));
        if (!(apart <= BOUND)) throw new Error(`element ${i} is ${apart} off`);
        error = Math.max(error, apart);
      }
      return time;
    }, terms);
    return { ...timed(times), error };
  } finally {
    await stepper.close();
  }
}

const workload = (name: string, about: string, steps: Steps): Workload => ({
  name,
  about,
  calls: steps.states * steps.steps,
  items: steps.items,
  systems: SYSTEMS,
  measure: (system, terms) => measureSteps(steps, system, terms),
});

export const WORKLOADS: readonly Workload[] = [
  workload(
    "steps-100-of-1m",
    "100 steps of relu(s · 0.99 + 0.01) on a state of 1,000,000 floats that stays on the GPU, and one read of it at the end",
    { states: 1, items: 1_000_000, steps: 100 },
  ),
  workload(
    "steps-of-1000x64",
    "a frame of 1,000 callers, each of whom steps a state of 64 floats that stays on the GPU, and one read of one state",
    { states: 1000, items: 64, steps: 1 },
  ),
];
