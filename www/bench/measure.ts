// How often something is run, and whether its answers are right.

import type { Call, Op } from "./ops/op.ts";
import type { System } from "./systems/system.ts";

/** How much is run, and until when. */
export interface Terms {
  readonly signal: AbortSignal;
  readonly effort: Effort;
}

export interface Effort {
  /** Runs that are not counted: they compile, make buffers, and let a system learn. */
  readonly warm: number;
  /** Runs that are counted, at most. */
  readonly most: number;
  /** Fresh pages that are timed, and that look for long tasks. */
  readonly fresh: number;
  readonly probed: number;
  /** Fresh pages that load a model. */
  readonly embedded: number;
  /** Batches over which memory may grow. */
  readonly batches: number;
  /** Seconds of a load, its warm-up not counted. */
  readonly seconds: number;
  /** Calls that are awaited one after the other. */
  readonly awaited: number;
}

/** For a record. */
export const FULL: Effort = {
  warm: 20,
  most: 40,
  fresh: 15,
  probed: 5,
  embedded: 3,
  batches: 30,
  seconds: 5,
  awaited: 200,
};
/** For a look, and for tests of the page. */
export const QUICK: Effort = {
  warm: 1,
  most: 3,
  fresh: 2,
  probed: 1,
  embedded: 1,
  batches: 3,
  seconds: 1.5,
  awaited: 20,
};

/** Warming up ends after so long. */
const WARM_MS = 500;
/** A system has run often enough when both are reached. */
const ENOUGH = 15;
const SOME_MS = 1500;
/** A slow system is stopped with fewer runs. */
const LONG_MS = 5000;

/** Between two runs, so that nothing of the first is left to do in the second. */
const PAUSE_MS = 5;

/** Warms `run` up, then runs it until its median means something. */
export async function repeat<Run>(
  run: () => Promise<Run>,
  { signal, effort }: Terms,
): Promise<Run[]> {
  const begin = performance.now();
  for (let n = 0; n < effort.warm; n++) {
    await step(run, signal);
    if (performance.now() - begin > WARM_MS) break;
  }
  const runs: Run[] = [];
  const start = performance.now();
  while (runs.length < effort.most) {
    runs.push(await step(run, signal));
    const spent = performance.now() - start;
    if (spent > LONG_MS || (spent > SOME_MS && runs.length >= ENOUGH)) break;
  }
  return runs;
}

async function step<Run>(
  run: () => Promise<Run>,
  signal: AbortSignal,
): Promise<Run> {
  signal.throwIfAborted();
  const result = await run();
  await pause(PAUSE_MS);
  return result;
}

/** Milliseconds of `work`. */
export async function clocked(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export const pause = (milliseconds: number) =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Resolves inside the next frame's callbacks. */
export const frame = () =>
  new Promise<void>((resolve) => requestAnimationFrame(() => resolve()));

/** The largest difference from float64; throws where it is out of bounds. */
export function check(
  op: Op,
  system: Pick<System, "bound">,
  calls: Call[],
  answers: Float32Array[],
): number {
  const bound = op.bounds[system.bound];
  let worst = 0;
  calls.forEach((call, at) => {
    const expected = op.expected(call);
    const answer = answers[at];
    const stride = op.stride?.(call) ?? 1;
    if (Math.ceil(answer.length / stride) !== expected.length) {
      throw new Error(
        `call ${at} has ${answer.length} floats, not ${expected.length * stride}`,
      );
    }
    for (let i = 0; i < expected.length; i++) {
      const difference = Math.abs(answer[i * stride] - expected[i]);
      // Written so that NaN counts as wrong.
      if (!(difference <= bound)) {
        throw new Error(
          `call ${at} is wrong by ${difference} at ${i * stride}`,
        );
      }
      if (difference > worst) worst = difference;
    }
  });
  return worst;
}
