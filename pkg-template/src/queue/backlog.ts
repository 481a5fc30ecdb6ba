// The calls that were made before there is a core to take them.
//
// Calls and flushes keep their order. The calls' operands are checked and copied by now,
// so that callers may change their arrays. Entering the calls is done elsewhere
// (`session/calls.ts`).

import { type Call, UNENTERED } from "../calls/call.js";

/** Calls, and the flushes between them, in the order they were made. */
export class Backlog {
  private entries: (Call | "flush")[] = [];

  /** Calls that still wait: aborted ones do not. */
  get size(): number {
    return this.calls().length;
  }

  /** Adds a call. */
  add(call: Call): void {
    this.entries.push(call);
  }

  /** Notes that the calls before this moment are to be sent. */
  addFlush(): void {
    this.entries.push("flush");
  }

  /** Hands over every call and flush, in order, and forgets them. */
  replay(enter: (call: Call) => void, flush: () => void): void {
    for (const entry of this.entries) {
      if (entry === "flush") flush();
      else if (entry.ticket === UNENTERED) enter(entry);
    }
    this.entries = [];
  }

  /** Removes and returns the calls that still wait. */
  drain(): Call[] {
    const calls = this.calls();
    this.entries = [];
    return calls;
  }

  private calls(): Call[] {
    return this.entries
      .filter((entry) => entry !== "flush")
      .filter((call) => call.ticket === UNENTERED);
  }
}
