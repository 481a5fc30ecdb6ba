// Runs a function several times and says how the times of its batches are spread.
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

/** How a number differs from run to run. */
export interface Spread {
  mean: number;
  min: number;
  max: number;
  /** The standard deviation: the root of Σ (xᵢ − mean)² / (runs − 1), and 0 of one run. */
  sd: number;
  /** The median and the 95th percentile: the smallest that so many are not above. */
  p50: number;
  p95: number;
}

/** What one run takes, in milliseconds and bytes; null is unknown. */
export interface Profile {
  /** Runs that counted. */
  iterations: number;
  /** From the call of the function until its promise resolved. */
  runMs: Spread;
  /** Means of a run: the batches that came back meanwhile, and what was in them. */
  batches: number;
  calls: number;
  items: number;
  subBatches: number;
  bytesUp: number;
  bytesDown: number;
  /**
   * Means of a run: operations of the kernels, and bytes that these read and wrote. Null unless
   * they are known of every batch.
   */
  flops: number | null;
  kernelBytes: number | null;
  /** The time of {@link BatchFacts}, added up over the batches of a run. */
  encodeMs: Spread;
  transferMs: Spread;
  /** Null unless it is known of every batch. */
  gpuMs: Spread | null;
  readMs: Spread;
  /** `items`, over the mean of `runMs`. */
  itemsPerSecond: number | null;
  /** `bytesUp`, over the mean of `transferMs`. */
  upBytesPerSecond: number | null;
  /** `bytesDown`, over the mean of `readMs`, which is more than the copying. */
  downBytesPerSecond: number | null;
  /** `kernelBytes`, over the mean of `gpuMs`: what caches hold counts, too. */
  kernelBytesPerSecond: number | null;
  /** `flops`, over the mean of `gpuMs`. A billion is 1 GFLOP/s. */
  flopsPerSecond: number | null;
  /** `gpuMs / (gpuMs + transferMs + readMs)`, of the means. */
  kernelEfficiency: number | null;
  /** `gpuMs / runMs`, of the means. */
  utilization: number | null;
}

/** What a profile asks of its session. */
export interface Profiled {
  flush(): void;
  listen(listener: BatchListener): () => void;
}

/** A run that counts. */
interface Run {
  readonly ms: number;
  /** The batches that came back meanwhile. */
  readonly facts: readonly BatchFacts[];
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
  const runs: Run[] = [];
  let facts: BatchFacts[] = [];
  const stop = session.listen((batch) => facts.push(batch));
  try {
    for (let k = 0; k <= iterations; k += 1) {
      facts = [];
      const start = performance.now();
      const result = run();
      session.flush();
      await result;
      if (k > 0) runs.push({ ms: performance.now() - start, facts });
    }
  } finally {
    stop();
  }
  return summary(runs);
}

function summary(runs: readonly Run[]): Profile {
  const sums = (name: NumberName): number[] =>
    runs.map(({ facts }) => sum(facts.map((batch) => batch[name] ?? 0)));
  const of = (name: NumberName): number => mean(sums(name));
  const all = runs.flatMap(({ facts }) => facts);
  const known = (name: NumberName): Spread | null =>
    all.length > 0 && all.every((batch) => batch[name] !== null)
      ? spread(sums(name))
      : null;
  const gpuMs = known("gpuMs");
  const kernelMs = gpuMs && gpuMs.mean;
  const flops = known("flops")?.mean ?? null;
  const kernelBytes = known("kernelBytes")?.mean ?? null;
  const runMs = spread(runs.map(({ ms }) => ms));
  const [transferMs, readMs] = [
    spread(sums("transferMs")),
    spread(sums("readMs")),
  ];
  const [bytesUp, bytesDown] = [of("bytesUp"), of("bytesDown")];
  const moved = transferMs.mean + readMs.mean;
  return {
    iterations: runs.length,
    runMs,
    batches: all.length / runs.length,
    calls: of("calls"),
    items: of("items"),
    subBatches: of("subBatches"),
    bytesUp,
    bytesDown,
    flops,
    kernelBytes,
    encodeMs: spread(sums("encodeMs")),
    transferMs,
    gpuMs,
    readMs,
    itemsPerSecond: perSecond(of("items"), runMs.mean),
    upBytesPerSecond: perSecond(bytesUp, transferMs.mean),
    downBytesPerSecond: perSecond(bytesDown, readMs.mean),
    kernelBytesPerSecond: perSecond(kernelBytes, kernelMs),
    flopsPerSecond: perSecond(flops, kernelMs),
    kernelEfficiency: gpuMs && gpuMs.mean / (gpuMs.mean + moved),
    utilization: gpuMs && gpuMs.mean / runMs.mean,
  };
}

/** How these numbers are spread; there is at least one. */
function spread(values: readonly number[]): Spread {
  const { length } = values;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.ceil(length * share) - 1];
  const middle = mean(values);
  const squares = sum(values.map((x) => (x - middle) ** 2));
  return {
    mean: middle,
    min: sorted[0],
    max: sorted[length - 1],
    sd: Math.sqrt(squares / Math.max(1, length - 1)),
    p50: at(0.5),
    p95: at(0.95),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

function perSecond(count: number | null, ms: number | null): number | null {
  const isKnown = count !== null && ms !== null && ms > 0;
  return isKnown ? (count / ms) * 1000 : null;
}

type NumberName =
  | "calls"
  | "items"
  | "subBatches"
  | "bytesUp"
  | "bytesDown"
  | "flops"
  | "kernelBytes"
  | "encodeMs"
  | "transferMs"
  | "gpuMs"
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
