// When calls are due: the times of a load, drawn before it begins.
//
// Times come from a seed, so that every system meets the same load. Nobody is called here.

import { sequence } from "../ops/inputs.ts";

/** `poisson`: each by itself, at random. `burst`: so many at once, at equal distances. */
export const ARRIVALS = ["poisson", "burst"] as const;
export type Arrivals = (typeof ARRIVALS)[number];

/** From one burst to the next. */
export const BURST_MS = 100;

/** Calls that come without regard to answers. */
export interface Rhythm {
  readonly arrivals: Arrivals;
  /** Calls a second, on average. */
  readonly rate: number;
}

/** Milliseconds from the beginning at which calls are due within `seconds`, in order. */
export function dueTimes(
  { arrivals, rate }: Rhythm,
  seconds: number,
): Float64Array<ArrayBuffer> {
  const times = arrivals === "poisson" ? poisson(rate) : bursts(rate);
  const due: number[] = [];
  for (const time of times) {
    if (time >= seconds * 1000) break;
    due.push(time);
  }
  return Float64Array.from(due);
}

function* poisson(rate: number) {
  const next = sequence();
  for (let time = 0; ;) {
    // The distance of independent arrivals is exponential.
    time -= (Math.log(1 - next()) * 1000) / rate;
    yield time;
  }
}

function* bursts(rate: number) {
  const size = Math.max(1, Math.round((rate * BURST_MS) / 1000));
  for (let call = 0; ; call++) yield Math.floor(call / size) * BURST_MS;
}
