// Says when calls are due, from a thread of its own: the page it wakes may be busy.
//
// The worker knows times and nothing else. A page's own timers round to milliseconds, and asking
// the clock all the time would keep the page from its work.

import type { Schedule } from "./ticker.ts";

/** Calls that are due within so many milliseconds are told together. */
const SPACING_MS = 0.5;

addEventListener("message", ({ data }: MessageEvent<Schedule>) => {
  void tell(data);
});

async function tell({ times, start, taken }: Schedule): Promise<void> {
  let told = -Infinity;
  for (let next = 0; next < times.length;) {
    const now = performance.timeOrigin + performance.now() - start;
    const due = Math.max(times[next], told + SPACING_MS);
    if (due > now) {
      await sleep(due - now, taken);
      continue;
    }
    while (next < times.length && times[next] <= now) next++;
    told = now;
    if (taken) Atomics.store(taken, 0, 0);
    postMessage(null);
    // A page that is late has one message waiting, and not one for each call.
    if (taken) Atomics.wait(taken, 0, 0);
  }
}

/** To the microsecond where memory is shared, by a timer's steps where it is not. */
async function sleep(
  milliseconds: number,
  shared: Int32Array<SharedArrayBuffer> | undefined,
): Promise<void> {
  if (shared) Atomics.wait(shared, 1, 0, milliseconds);
  else await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
