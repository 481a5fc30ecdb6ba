// What a run of the bench leaves behind: the shape of its JSON.
//
// Times are in milliseconds unless a workload says otherwise. The command line writes it
// to benches/record, and the page offers it as a file; native benches write the same rows
// and workloads, and a driver instead of a browser (benches/report). Nothing is measured here.

/** One system on one workload; of several rounds the one in the middle. */
export interface Row {
  workload: string;
  system: string;
  /** Why there is no time: it lacks the operation, failed, or answered wrongly. */
  problem?: string;
  /** Timed runs, after warm-up. */
  runs: number;
  /** The median of the times that the workload says; 0 where there is a problem. */
  median: number;
  p95: number;
  /** Where single calls are timed, so that there are hundreds of times. */
  p99?: number;
  min: number;
  /** A quarter of the runs took less than the first, a quarter more than the second. */
  quartiles?: [number, number];
  /** The median over that of `one-batch`, or of what the workload names, where both have one. */
  ratio?: number;
  /** The same of `p99`. */
  p99Ratio?: number;
  /** The medians of all rounds, in order, where there were several. */
  rounds?: number[];
  /** The same of `p99`. */
  p99Rounds?: number[];
  /** What else is to be known of the time, such as why it is of fewer runs than others. */
  note?: string;
  /** The largest difference from float64 in the answers that were checked. */
  error?: number;
  /** What the time is made of, or stands beside it, by name; the workload says what. */
  parts?: Record<string, number>;
}

/** A workload, as the record explains it. */
export interface About {
  name: string;
  /** What is timed. */
  about: string;
  /** The unit of the times; milliseconds where none is given. */
  unit?: string;
  /** The better one of two values: the lower, where nothing is given. */
  better?: "higher";
  /** What ratios compare with, in two or three words; one batch by hand, where it says nothing. */
  compared?: string;
  /** Calls of a run, and items a call, where it has such. */
  calls?: number;
  items?: number;
}

export interface Result {
  /** When it started, ISO 8601. */
  date: string;
  adapter: string;
  /** Whether the adapter is software: only ratios to one batch by hand count then. */
  software: boolean;
  browser: string;
  cores: number;
  /** Without isolation a browser rounds its clock, to 0.1 ms or worse. */
  isolated: boolean;
  /** What else the machine was doing, where the command line saw it: its load average before. */
  load?: number;
  /** Whether there were too few runs for a record. */
  quick: boolean;
  /** Whether it was stopped before its end. */
  cancelled: boolean;
  /** How long the whole took. */
  seconds: number;
  /** How each system is written. */
  systems: Record<string, string>;
  workloads: About[];
  rows: Row[];
}

/** The value below which this share of the values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

type Timed = Required<
  Pick<Row, "runs" | "median" | "p95" | "min" | "quartiles">
>;

/** A row of these times. */
export function timed(times: readonly number[]): Timed {
  return {
    runs: times.length,
    median: quantile(times, 0.5),
    p95: quantile(times, 0.95),
    min: Math.min(...times),
    quartiles: [quantile(times, 0.25), quantile(times, 0.75)],
  };
}

/** The median of each part over all runs. */
export function medians<Name extends string>(
  runs: readonly Record<Name, number>[],
): Record<Name, number> {
  const names = Object.keys(runs[0]) as Name[];
  return Object.fromEntries(
    names.map((name) => [
      name,
      quantile(
        runs.map((run) => run[name]),
        0.5,
      ),
    ]),
  ) as Record<Name, number>;
}
