// Motions whose session has no core: it did not open, or trapped. A page whose panels would
// stay where they began, for want of a file that they hardly need, would be a blank one.

import type { FramebatchError } from "../checks/errors.js";

let hasWarned = false;

/** Whether motions go on, on the page's thread, behind a session that ended for this reason. */
export function canMoveBehind(why: FramebatchError): boolean {
  return why.code !== "disposed";
}

/** Says once what the page lacks: nobody awaits the motions' session, and so hears of it. */
export function warnOfLoss(why: FramebatchError): void {
  if (hasWarned) return;
  hasWarned = true;
  console.warn(
    `framebatch: tweens and springs are computed without WebAssembly and GPU: ${why.message}`,
  );
}
