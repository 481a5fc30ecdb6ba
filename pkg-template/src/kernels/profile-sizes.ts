// Profiles of batches of several sizes, and which size does the most for its time.
//
// One size is profiled in `metrics/profile.ts`; here profiles are only compared.

import { invalid, kindOf } from "../checks/errors.js";
import type { Profile } from "../metrics/profile.js";

/** What batches of one size take. */
export interface SizedProfile {
  readonly size: number;
  readonly profile: Profile;
  /** `size`, over the median of `runMs`; null where that took no time that a clock could tell. */
  readonly perSecond: number | null;
}

/** What batches of several sizes take. */
export interface SizesProfile {
  /** In the order of the sizes. */
  readonly sizes: readonly SizedProfile[];
  /**
   * The smallest size that reaches 95 % of the largest `perSecond`: larger ones keep their
   * callers waiting for next to nothing. Null where no time is known.
   */
  readonly best: number | null;
  /** All of it as text, a line for each size. */
  readonly table: string;
}

const ABOUT = "profileSizes";

/** The share of the largest rate that is good enough. */
const ENOUGH = 0.95;

const giga = (number: number | null): number | null => number && number / 1e9;

/** The columns of a table. */
const COLUMNS: readonly (readonly [
  string,
  (row: SizedProfile) => number | null,
])[] = [
  ["size", ({ size }) => size],
  ["ms", ({ profile }) => profile.runMs.p50],
  ["sd", ({ profile }) => profile.runMs.sd],
  ["batches", ({ profile }) => profile.batches],
  ["kernels ms", ({ profile }) => profile.gpuMs && profile.gpuMs.p50],
  ["per second", ({ perSecond }) => perSecond],
  ["GB/s up", ({ profile }) => giga(profile.upBytesPerSecond)],
  ["GB/s down", ({ profile }) => giga(profile.downBytesPerSecond)],
  ["GB/s kernels", ({ profile }) => giga(profile.kernelBytesPerSecond)],
  ["GFLOP/s", ({ profile }) => giga(profile.flopsPerSecond)],
];

/** Profiles `run` at each size, one after the other. */
export async function profileSizes(
  profile: (run: () => unknown) => Promise<Profile>,
  run: (size: number) => unknown,
  sizes: readonly number[],
): Promise<SizesProfile> {
  const own = check(run, sizes);
  const rows: SizedProfile[] = [];
  for (const size of own) {
    const told = await profile(() => run(size));
    const { p50 } = told.runMs;
    const perSecond = p50 > 0 ? (size / p50) * 1000 : null;
    rows.push({ size, profile: told, perSecond });
  }
  return { sizes: rows, best: bestOf(rows), table: tableOf(rows) };
}

function bestOf(rows: readonly SizedProfile[]): number | null {
  const rates = rows.map(({ perSecond }) => perSecond ?? 0);
  const enough = ENOUGH * Math.max(...rates);
  const good = rows.filter((_, i) => enough > 0 && rates[i] >= enough);
  return good.length === 0 ? null : Math.min(...good.map(({ size }) => size));
}

function tableOf(rows: readonly SizedProfile[]): string {
  const lines = [
    COLUMNS.map(([name]) => name),
    ...rows.map((row) => COLUMNS.map(([, of]) => text(of(row)))),
  ];
  const widths = COLUMNS.map((_, k) =>
    Math.max(...lines.map((line) => line[k].length)),
  );
  const padded = lines.map((line) =>
    line.map((cell, k) => cell.padStart(widths[k])).join("  "),
  );
  return padded.join("\n");
}

/** Four digits, and more where there are that many whole ones. */
function text(value: number | null): string {
  if (value === null) return "-";
  return value >= 1000 ? value.toFixed(0) : String(+value.toPrecision(4));
}

function check(run: unknown, sizes: unknown): number[] {
  if (typeof run !== "function") {
    throw invalid(ABOUT, `fn must be a function, got ${kindOf(run)}`);
  }
  const isSize = (size: unknown): boolean =>
    Number.isSafeInteger(size) && (size as number) >= 1;
  if (Array.isArray(sizes) && sizes.length > 0 && sizes.every(isSize)) {
    return [...sizes] as number[];
  }
  const got = Array.isArray(sizes) ? `[${sizes.join(", ")}]` : kindOf(sizes);
  throw invalid(
    ABOUT,
    `sizes must be an array of whole numbers from 1, got ${got}`,
  );
}
