// Batches in the browser's performance timeline, which DevTools shows.

import type { BatchFacts } from "./batch-facts.js";

/** Adds an entry for a batch, with its facts as `detail`. */
export function mark(facts: BatchFacts): void {
  const { startTime, wallMs, calls } = facts;
  performance.measure("framebatch batch", {
    start: startTime,
    end: startTime + wallMs,
    // `devtools` gives the entries a track of their own in Chromium.
    detail: {
      ...facts,
      devtools: { track: "framebatch", tooltipText: `${calls} calls` },
    },
  });
}
