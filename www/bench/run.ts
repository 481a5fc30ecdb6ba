// Runs what was chosen: every workload on every system, one after the other; in rounds,
// if there are several, so that slow moments of the page meet all systems alike.
//
// The run shows nothing. Stopping takes effect between two runs, which is when nothing is
// on its way; what was measured until then is kept.

import { type Effort, pause, QUICK, type Terms } from "./measure.ts";
import { type About, quantile, type Result, type Row } from "./record.ts";
import { REFERENCE } from "./systems/index.ts";

/** What a measurement found: a row without its names. */
export type Finding = Omit<
  Row,
  "workload" | "system" | "ratio" | "rounds" | "p99Ratio" | "p99Rounds"
>;

/** What is compared, by name. */
export interface Named {
  /** The name in the record, and in `?systems=`. */
  readonly name: string;
  /** How it is written, in a few words. */
  readonly about: string;
}

/** What is measured of systems of a kind. */
export interface Measured<System extends Named> extends About {
  /** The systems that the measurement is about, in order. */
  readonly systems: readonly System[];
  /** Seconds a run on a software adapter: measured there only where it is asked for. */
  readonly isLong?: true;
  /** The system that this one is compared with, by name; one batch by hand where it is undefined. */
  referenceOf?(system: string): string;
  measure(system: System, terms: Terms): Promise<Finding>;
}

export interface Choice<System extends Named> {
  workloads: readonly Measured<System>[];
  systems: readonly System[];
  effort: Effort;
  /** How often the systems of a workload take their turn. */
  rounds: number;
}

export interface Listener {
  /** The next measurement, and the share of all that is done. */
  next(workload: string, system: string, done: number): void;
  /** All rows so far, and what the last measurement found. */
  rows(rows: readonly Row[], last: Row): void;
}

/** A system has this long to let go of its device before the next one starts. */
const REST_MS = 50;

export async function run<System extends Named>(
  { workloads, systems, effort, rounds }: Choice<System>,
  signal: AbortSignal,
  listener: Listener,
): Promise<Result> {
  const start = performance.now();
  const date = new Date().toISOString();
  const turns = workloads.flatMap((workload) => {
    const own = workload.systems.filter((system) => systems.includes(system));
    const round = own.map((system) => ({ workload, system }));
    return Array.from({ length: rounds }, () => round).flat();
  });
  const found: Row[] = [];
  let rows: Row[] = [];
  for (const [done, { workload, system }] of turns.entries()) {
    if (signal.aborted) break;
    listener.next(workload.name, system.name, done / turns.length);
    await pause(REST_MS);
    const row = await measure(workload, system, { signal, effort });
    if (row === undefined) break;
    found.push(row);
    rows = summed(found, workloads);
    listener.rows(rows, row);
  }
  return {
    date,
    ...(await machine()),
    quick: effort === QUICK,
    cancelled: signal.aborted,
    seconds: Math.round((performance.now() - start) / 100) / 10,
    systems: Object.fromEntries(
      systems.map(({ name, about }) => [name, about]),
    ),
    workloads: workloads.map(
      ({ name, about, unit, compared, calls, items }) => ({
        name,
        about,
        unit,
        compared,
        calls,
        items,
      }),
    ),
    rows,
  };
}

/** Undefined where it was stopped. */
async function measure<System extends Named>(
  workload: Measured<System>,
  system: System,
  terms: Terms,
): Promise<Row | undefined> {
  const names = { workload: workload.name, system: system.name };
  try {
    return { ...names, ...(await workload.measure(system, terms)) };
  } catch (error) {
    if (terms.signal.aborted) return undefined;
    const problem = error instanceof Error ? error.message : String(error);
    return { ...names, problem, runs: 0, median: 0, p95: 0, min: 0 };
  }
}

/** One row of each workload and system. */
function summed<System extends Named>(
  found: readonly Row[],
  workloads: readonly Measured<System>[],
): Row[] {
  const pairs = Map.groupBy(found, (row) => `${row.workload} ${row.system}`);
  const rows = Array.from(pairs.values(), middle);
  return rows.map((row) => {
    const { referenceOf } = workloads.find(
      ({ name }) => name === row.workload,
    )!;
    return compared(row, rows, referenceOf?.(row.system) ?? REFERENCE);
  });
}

/** The round whose median is the middle one of all; the first round that failed, if one did. */
function middle(rounds: readonly Row[]): Row {
  const failed = rounds.find((row) => row.problem !== undefined);
  if (failed || rounds.length === 1) return failed ?? rounds[0];
  const medians = rounds.map((row) => row.median);
  const row = rounds[medians.indexOf(quantile(medians, 0.5))];
  const tails = rounds.flatMap(({ p99 }) => p99 ?? []);
  return {
    ...row,
    rounds: medians,
    // The tail of the round in the middle is as good as any: that of all rounds says more.
    ...(tails.length > 0 && { p99: quantile(tails, 0.5), p99Rounds: tails }),
  };
}

function compared(row: Row, rows: readonly Row[], reference: string): Row {
  const other = rows.find(
    ({ workload, system }) => workload === row.workload && system === reference,
  );
  if (row.problem !== undefined || !other?.median) return row;
  return {
    ...row,
    ratio: row.median / other.median,
    ...(row.p99 && other.p99 && { p99Ratio: row.p99 / other.p99 }),
  };
}

/** Where it runs. */
export async function machine() {
  const adapter = await navigator.gpu?.requestAdapter();
  const {
    vendor = "",
    architecture = "",
    description = "",
    isFallbackAdapter = false,
  } = adapter?.info ?? {};
  const name = [vendor, architecture, description].filter(Boolean).join(" ");
  return {
    adapter: adapter ? name || "nameless adapter" : "no adapter",
    software: isFallbackAdapter || /swiftshader|llvmpipe|software/i.test(name),
    browser: navigator.userAgent,
    cores: navigator.hardwareConcurrency,
    isolated: crossOriginIsolated,
  };
}
