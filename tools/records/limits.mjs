// How much slower a row of the bench may get unexplained, and what rows are compared by.
//
// Two tables and one day; nothing is read or compared here.

/**
 * Records from this day on are held: a row that got slower needs a note. Those before
 * are only compared with, because nobody compared them when they were made, and why
 * they differ can no longer be found out.
 */
export const HELD_SINCE = "2026-11-23";

/** Share of its time that a row may lose, unless the table below has it. */
export const LIMIT = 0.05;

/** Limits of their own, the first that fits; each says why five in a hundred will not do. */
export const LIMITS = [
  {
    rows: /^first-call, /,
    limit: 0.1,
    reason:
      "a call in each of 15 fresh pages, with all that a browser does when a page opens",
  },
  {
    rows: /^(poisson|burst)-/,
    limit: 0.2,
    reason:
      "which of the calls that come at random share a batch differs from run to run",
  },
  {
    rows: /, framebatch-auto$/,
    limit: 0.1,
    reason:
      "the route is learned while it is measured, and may settle on either of two devices that are as fast",
  },
];

/** How much slower this row may be, as a share of its time. */
export function limitOf(name) {
  const own = LIMITS.find(({ rows }) => rows.test(name));
  return own?.limit ?? LIMIT;
}

/**
 * The workload whose batch by hand stands for that of another workload which has none.
 * Times on software adapters are ratios to it.
 */
export const BY_HAND_OF = [
  // Workloads of the same calls, in a page's own rhythm or measured by parts.
  [/^(?:paced-\w+|trace-lerp)-1000x64$/, "small-lerp-1000x64"],
  [/^(?:main-thread|trace-lerp)-10000x16$/, "small-lerp-10000x16"],
  [/^trace-chain-1000x64$/, "small-1000x64"],
  [/^trace-(.+)$/, "$1"],
  // Natively only gradients are written by hand; the others are held to that yardstick.
  [/^(?:chain|product|callers)-.+$/, "gradients-10000-by-100"],
];

/** The workload that has the batch by hand for this one: itself, unless the table has it. */
export function byHandOf(workload) {
  const own = BY_HAND_OF.find(([pattern]) => pattern.test(workload));
  return own === undefined ? workload : workload.replace(...own);
}
