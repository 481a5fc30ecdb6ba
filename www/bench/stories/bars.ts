// The bars of one of the five rows: those of this machine, and those of a kept record.
//
// What is drawn on the page and in the picture is the same list.

import type { KeptRecord } from "kept-records";
import type { Row } from "../record.ts";
import { rounded } from "../ui/results.ts";
import { NAMES, type Story } from "./stories.ts";

export interface Bar {
  readonly system: string;
  readonly name: string;
  /** Milliseconds, 0 where it was over before the clock went on; undefined where it was not measured. */
  readonly here: number | undefined;
  readonly there: number | undefined;
  /** Why there is no time here. */
  readonly problem: string | undefined;
}

/** One for each system that either of both has measured. */
export function barsOf(
  { workload, systems }: Story,
  rows: readonly Row[],
  kept: KeptRecord | undefined,
): Bar[] {
  const there = kept?.medians[workload] ?? {};
  return systems
    .map((system) => {
      const row = rows.find(
        (row) => row.workload === workload && row.system === system,
      );
      return {
        system,
        name: NAMES[system] ?? system,
        here: row && row.problem === undefined ? row.median : undefined,
        there: there[system],
        problem: row?.problem,
      };
    })
    .filter(
      ({ here, there, problem }) => (here ?? there ?? problem) !== undefined,
    );
}

/** A bar's time in words. Clocks of browsers go in steps, some of a whole millisecond. */
export const timeText = (time: number) =>
  time > 0 ? `${rounded(time)} ms` : "less than the clock tells";

/** From here on, times of one row differ too much for bars of their lengths. */
const FAR_APART = 20;
const SHORTEST = 0.1;

/** How long the bar of a time is, as a share of the longest of its row. */
export function lengthOf(time: number, bars: readonly Bar[]): number {
  const times = bars.flatMap(({ here, there }) => [here ?? 0, there ?? 0]);
  const known = times.filter((time) => time > 0);
  if (time === 0) return SHORTEST;
  const [least, most] = [Math.min(...known), Math.max(...known)];
  if (most / least < FAR_APART) return time / most;
  const share = Math.log(time / least) / Math.log(most / least);
  return SHORTEST + (1 - SHORTEST) * share;
}

/** The scale, in a sentence. */
export const SCALE = `Milliseconds from the first call to the last result. Shorter is better. Where times differ more than ${FAR_APART}-fold, each tenfold is as long as the one before.`;
