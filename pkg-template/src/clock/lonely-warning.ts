// Tells a developer, once a session, that calls are awaited one after another.
//
// Batches are counted, nothing else. The stack is read on the one call that is reported,
// never on others, and production builds do not have the warning at all.

import { scriptFolder } from "../script-folder.js";

declare const process: { env: { NODE_ENV?: string } };

/** Successive batches of one call each before a developer is told. */
export const LONELY_BATCHES = 32;

/** Watches for batches that never hold more than one call. */
export class LonelyWarning {
  private lonely = 0;
  private said = false;

  constructor(private readonly warn: (message: string) => void) {}

  /** A batch of this many calls was sent by the session's clock. */
  sent(calls: number): void {
    this.lonely = calls === 1 ? this.lonely + 1 : 0;
  }

  /** A batch gets its first call, whose caller is on the stack. */
  opened(): void {
    if (this.said || this.lonely < LONELY_BATCHES) return;
    this.said = true;
    this.warn(
      `framebatch: the last ${LONELY_BATCHES} batches held one call each, so nothing is shared between calls. ` +
        "If this call is awaited in a loop, make all the calls first and await them together with Promise.all. " +
        `The call was made here:\n${callSite(new Error().stack)}`,
    );
  }
}

/** Whether this is a development build, by the convention that bundlers follow. */
export function isDevelopment(): boolean {
  try {
    // Bundlers replace this expression; in a page without a bundler it throws.
    return process.env.NODE_ENV !== "production";
  } catch {
    return true;
  }
}

/** The frames of a stack that are not this package's own. */
function callSite(stack = ""): string {
  const own = scriptFolder();
  const frames = stack.split("\n").filter((line) => /:\d+:\d+/.test(line));
  const callers = frames.filter((line) => own === "" || !line.includes(own));
  // Bundled with the application, the package has no file of its own to leave out.
  return (callers.length > 0 ? callers : frames).join("\n");
}
