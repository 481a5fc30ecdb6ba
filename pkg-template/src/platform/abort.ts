// How anything listens to a caller's signal.

import { builtin } from "./node.js";

/**
 * Hears of the signal's abort, if there is a signal, until removed. Node takes more than ten
 * listeners for a leak, and warns of it; here each call that is under way is one.
 */
export function listen(
  signal: AbortSignal | undefined,
  listener: EventListenerOrEventListenerObject,
): void {
  if (signal === undefined) return;
  try {
    builtin("node:events")?.setMaxListeners(0, signal);
  } catch {
    // The signal of a simulated page, which warns of nothing.
  }
  signal.addEventListener("abort", listener);
}
