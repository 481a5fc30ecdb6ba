// Runs a function several times and adds up what its batches were.
//
// Everything is measured by the core; this only sorts and divides.

import { invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import type { BatchFacts, BatchListener } from "./batch-facts.js";

/** What `gpu.profile` takes last. */
export interface ProfileOptions {
  /** Runs that count, after one that warms up. Default: 10. */
  iterations?: number;
}

/** What one run takes: means of all runs, in milliseconds and bytes; null is unknown. */
export interface Profile {
  /** Runs that counted. */
  iterations: number;
  /** From the call of the function until its promise resolved. */
  runMs: { mean: number; p50: number; p95: number };
  /** Batches that came back meanwhile, and what was in them. */
  batches: number;
  calls: number;
  subBatches: number;
  bytesUp: number;
  bytesDown: number;
  /** The time of {@link BatchFacts}, added up over the batches of a run. */
  encodeMs: number;
  transferMs: number;
  /** Null unless it is known of every batch. */
  gpuMs: number | null;
  readMs: number;
  /** `gpuMs / (gpuMs + transferMs + readMs)`. */
  kernelEfficiency: number | null;
  /** `gpuMs / runMs.mean`. */
  utilization: number | null;
}

/** What a profile asks of its session. */
export interface Profiled {
  flush(): void;
  listen(listener: BatchListener): () => void;
}

const ABOUT = "profile";
const NAMES: Record<keyof ProfileOptions, true> = { iterations: true };

/** Runs `run`, and says what a run costs. */
export async function profile(
  session: Profiled,
  run: () => unknown,
  options: ProfileOptions = {},
): Promise<Profile> {
  const iterations = check(run, options);
  let facts: BatchFacts[] = [];
  const times: number[] = [];
  const stop = session.listen((batch) => facts.push(batch));
  try {
    for (let k = 0; k <= iterations; k += 1) {
      const start = performance.now();
      const result = run();
      session.flush();
      await result;
      if (k === 0) facts = [];
      else times.push(performance.now() - start);
    }
  } finally {
    stop();
  }
  return summary(times, facts);
}

function summary(times: number[], facts: BatchFacts[]): Profile {
  const { length } = times;
  const sorted = times.sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((length - 1) * share)];
  const sum = (values: number[]) => values.reduce((a, b) => a + b, 0) / length;
  const mean = (name: NumberName) => sum(facts.map((batch) => batch[name]));
  const known = facts.map(({ gpuMs }) => gpuMs);
  const isKnown = known.length > 0 && !known.includes(null);
  const gpuMs = isKnown ? sum(known as number[]) : null;
  const [transferMs, readMs] = [mean("transferMs"), mean("readMs")];
  const runMs = { mean: sum(times), p50: at(0.5), p95: at(0.95) };
  return {
    iterations: length,
    runMs,
    batches: facts.length / length,
    calls: mean("calls"),
    subBatches: mean("subBatches"),
    bytesUp: mean("bytesUp"),
    bytesDown: mean("bytesDown"),
    encodeMs: mean("encodeMs"),
    transferMs,
    gpuMs,
    readMs,
    kernelEfficiency: gpuMs && gpuMs / (gpuMs + transferMs + readMs),
    utilization: gpuMs && gpuMs / runMs.mean,
  };
}

type NumberName =
  | "calls"
  | "subBatches"
  | "bytesUp"
  | "bytesDown"
  | "encodeMs"
  | "transferMs"
  | "readMs";

function check(run: unknown, options: ProfileOptions): number {
  if (typeof run !== "function") {
    throw invalid(ABOUT, `fn must be a function, got ${kindOf(run)}`);
  }
  checkOptions(ABOUT, options, NAMES);
  const { iterations = 10 } = options;
  if (Number.isSafeInteger(iterations) && iterations >= 1) return iterations;
  throw invalid(
    ABOUT,
    `iterations must be a whole number from 1, got ${String(iterations)}`,
  );
}
