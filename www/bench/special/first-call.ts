// The first call of a fresh session, each in a page of its own: nothing is loaded,
// compiled or warm but what the browser keeps between pages.

import { repeatFresh } from "./fresh-page.ts";
import { medians, timed } from "../record.ts";
import type { Terms } from "../measure.ts";
import type { System } from "../systems/system.ts";
import type { Finding } from "../run.ts";

export async function measureFirstCall(
  system: System,
  terms: Terms,
): Promise<Finding> {
  const { effort } = terms;
  // Apart from those that are timed: looking for long tasks costs time.
  const probed = await repeatFresh(system, effort.probed, terms, "probe");
  const runs = await repeatFresh(system, effort.fresh, terms);
  const longest = (of: "longestOpen" | "longestCall") =>
    Math.max(...probed.map((run) => run[of]));
  const { open } = medians(runs.map(({ open }) => ({ open })));
  return {
    ...timed(runs.map((run) => run.call)),
    error: runs[0].error,
    parts: {
      open,
      // The worst task over all probed pages.
      longestTaskInOpen: longest("longestOpen"),
      longestTaskInCall: longest("longestCall"),
    },
  };
}
