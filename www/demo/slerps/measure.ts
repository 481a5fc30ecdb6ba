// Runs the same thousand slerps the three ways, counts, times and checks them.
//
// Nothing is shown here; the page and the command line show what is returned.

import { counted, type Counts } from "../../ways/counting.ts";
import { type Component, field } from "./component.ts";
import { slerp64 } from "./quaternion.ts";
import type { SlerpWay, SlerpWayName, SlerpWays } from "./ways.ts";

/** One way's figures for one frame. */
export interface SlerpRow extends Counts {
  way: SlerpWayName;
  calls: number;
  /** Median over `runs`, from the first call to the last result. */
  milliseconds: number;
  runs: number;
  /** The largest difference from a slerp in double precision. */
  error: number;
}

const WARM = 3;
const RUNS = 25;
// The slow way gets fewer runs: what counts is that nobody waits for minutes.
const ENOUGH_MS = 10_000;
const AT_LEAST = 5;

/** Measures every way that works here, one after another. */
export async function measureSlerps({ ways }: SlerpWays): Promise<SlerpRow[]> {
  const components = field(40, 25);
  const rows: SlerpRow[] = [];
  for (const [name, way] of Object.entries(ways)) {
    rows.push(await measureWay(name as SlerpWayName, way, components));
  }
  return rows;
}

async function measureWay(
  name: SlerpWayName,
  way: SlerpWay,
  components: Component[],
): Promise<SlerpRow> {
  const times: number[] = [];
  let error = 0;
  let last: Counts = { submissions: 0, readbacks: 0, dispatches: 0 };
  const start = performance.now();
  for (let run = 0; run < WARM + RUNS; run++) {
    const seconds = run / 3;
    await frame();
    const { milliseconds, ...counts } = await counted(() =>
      way(components, seconds),
    );
    error = Math.max(error, worst(components, seconds));
    if (run < WARM) continue;
    last = counts;
    times.push(milliseconds);
    if (times.length >= AT_LEAST && performance.now() - start > ENOUGH_MS) {
      break;
    }
  }
  times.sort((a, b) => a - b);
  return {
    way: name,
    calls: components.length,
    ...last,
    milliseconds: times[times.length >> 1],
    runs: times.length,
    error,
  };
}

/** The largest difference between what the components got and what is right. */
function worst(components: Component[], seconds: number): number {
  let error = 0;
  for (const component of components) {
    const t = component.progress(seconds);
    slerp64(component.from, component.to, t).forEach((expected, i) => {
      const difference = Math.abs(component.rotation[i] - expected);
      // Written so that NaN counts as wrong.
      if (!(difference <= error)) error = difference;
    });
  }
  return error;
}

/** Resolves inside the next frame's callbacks. */
const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
