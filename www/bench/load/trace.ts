// The latencies of a load in few numbers: for a row of the record, and for plots.

import type { Row } from "../record.ts";
import type { Waits } from "./latencies.ts";

/** What a load did, as it is plotted. */
export interface Trace {
  /** The latency below which each of `SHARES` lies. */
  readonly curve: readonly number[];
  readonly moments: readonly Moment[];
}

/** Calls that were due within a part of a load. */
export interface Moment {
  /** Seconds from the beginning. */
  readonly at: number;
  readonly median: number;
  readonly longest: number;
}

/** Shares of calls, as one reads tails: to the first nine, to the second, to the third. */
export const SHARES = [
  ...[0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85],
  ...[0.9, 0.92, 0.94, 0.96, 0.98, 0.985],
  ...[0.99, 0.992, 0.994, 0.996, 0.998, 0.999],
];

/** How long a moment is. */
const MOMENT_MS = 50;

/** What a row has of single calls' times. */
type Timed = Required<
  Pick<Row, "runs" | "median" | "p95" | "p99" | "min" | "quartiles">
>;

/** A row of single calls, and the tails that stand in its parts. */
export function summary(ms: Float64Array): {
  timed: Timed;
  tails: { p90: number; p999: number; max: number };
} {
  const below = quantiles(ms);
  return {
    timed: {
      runs: ms.length,
      median: below(0.5),
      p95: below(0.95),
      p99: below(0.99),
      min: below(0),
      quartiles: [below(0.25), below(0.75)],
    },
    tails: { p90: below(0.9), p999: below(0.999), max: below(1) },
  };
}

/** `start` is the time that the load began. */
export function traceOf({ due, ms }: Waits, start: number): Trace {
  const moments = Map.groupBy(ms.keys(), (at) =>
    Math.floor((due[at] - start) / MOMENT_MS),
  );
  return {
    curve: SHARES.map(quantiles(ms)),
    moments: Array.from(moments, ([moment, calls]) => {
      const below = quantiles(Float64Array.from(calls, (at) => ms[at]));
      const at = (moment * MOMENT_MS) / 1000;
      return { at, median: below(0.5), longest: below(1) };
    }),
  };
}

/** The value below which a share of the values lies; there may be a million of them. */
export function quantiles(values: Float64Array): (share: number) => number {
  const sorted = values.slice().sort();
  return (share) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
