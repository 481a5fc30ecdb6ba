// The time of one product of matrices by itself: what a chain of many on the device
// takes longer than a chain of few, which have all transfers and waits in common.

import type { Terms } from "../measure.ts";
import { products } from "../ops/matmul.ts";
import type { System } from "../systems/system.ts";
import type { Finding } from "../run.ts";
import { measureCalls } from "./calls.ts";

export async function measureKernel(
  side: number,
  [few, many]: readonly [few: number, many: number],
  system: System,
  terms: Terms,
): Promise<Finding> {
  const chain = (count: number) =>
    measureCalls(
      products(side, count),
      { calls: 1, items: side },
      system,
      terms,
    );
  const short = await chain(few);
  const long = await chain(many);
  const each = (ms: number) => (ms - short.median) / (many - few);
  const median = each(long.median);
  return {
    runs: Math.min(short.runs, long.runs),
    median,
    p95: each(long.p95),
    min: each(long.min),
    quartiles: long.quartiles && [
      each(long.quartiles[0]),
      each(long.quartiles[1]),
    ],
    error: Math.max(short.error!, long.error!),
    parts: {
      teraflops: (2 * side ** 3) / (median * 1e9),
      [`chainOf${few}`]: short.median,
      [`chainOf${many}`]: long.median,
    },
  };
}
