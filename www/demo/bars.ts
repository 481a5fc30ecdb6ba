// The switch between the ways, whose rows are bars: the milliseconds of a frame's calls.
//
// The scale is logarithmic, since the ways differ a hundredfold. The bars show what they are
// told; they make no call and time nothing.

import { element, rounded } from "../ways/panel.ts";
import type { WayName } from "./ways.ts";

/** The ends of the scale, in milliseconds. */
const [SHORT, LONG] = [0.3, 10_000];
/** Frames that a bar is the median of. */
const KEPT = 15;

export class Bars {
  private readonly times = new Map<WayName, number[]>();

  constructor() {
    const budget = element("#ways").style;
    budget.setProperty("--budget", share(1000 / 60));
  }

  /** Adds a frame of a way. */
  push(way: WayName, milliseconds: number): void {
    const times = this.times.get(way) ?? [];
    this.times.set(way, times);
    times.push(milliseconds);
    if (times.length > KEPT) times.shift();
    const median = [...times].sort((a, b) => a - b)[times.length >> 1];
    const row = element(`#ways label:has([value="${way}"])`);
    row.style.setProperty("--share", share(median));
    row.querySelector("output")!.textContent = `${rounded(median)} ms`;
  }
}

/** How far along the scale a time is. */
function share(milliseconds: number): string {
  const at = Math.log(milliseconds / SHORT) / Math.log(LONG / SHORT);
  return `${(100 * Math.min(1, Math.max(0.01, at))).toFixed(2)}%`;
}
