// What is compared: states that stay on the GPU are stepped, and read at the end.
//
// A step is relu(s · DECAY + INFLOW), three operations, of every state. Nothing here is timed.

import type { Named } from "../run.ts";

export const DECAY = 0.99;
export const INFLOW = 0.01;

/** States that are open on a system. */
export interface Stepper {
  /** Asks for so many steps of every state, each state by a caller of its own. */
  steps(count: number): void;
  /** The first state, once all steps are done. */
  first(): Promise<Float32Array>;
  close(): void | Promise<void>;
}

export interface Stepping extends Named {
  /** Opens these states, which have equally many elements. */
  open(states: readonly Float32Array<ArrayBuffer>[]): Promise<Stepper>;
}

/** States of drawn numbers from 0 to 2. */
export function newStates(
  count: number,
  items: number,
): Float32Array<ArrayBuffer>[] {
  return Array.from({ length: count }, (_, state) =>
    Float32Array.from(
      { length: items },
      (_, i) => ((state * 7919 + i * 104_729) % 2000) / 1000,
    ),
  );
}

/** A number after so many steps, in double precision. */
export function stepped(start: number, steps: number): number {
  let value = start;
  for (let step = 0; step < steps; step++) {
    value = Math.max(0, value * DECAY + INFLOW);
  }
  return value;
}
