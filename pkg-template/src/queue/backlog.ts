// The calls made before there is a core to take them.
//
// It keeps order. The calls' operands are checked, and are copies of their own by now,
// so that callers may change their arrays; entering is done in `calls.ts`.

import { type Call, UNENTERED } from "../calls/call.js";

/** Calls, and the flushes between them, in the order they were made. */
export class Backlog {
  private entries: (Call | "flush")[] = [];

  /** Calls that still wait; those that were aborted do not. */
  get size(): number {
    return this.calls().length;
  }

  /** Adds a call. */
  add(call: Call): void {
    this.entries.push(call);
  }

  /** Notes that everything up to here was to be sent. */
  addFlush(): void {
    this.entries.push("flush");
  }

  /** Hands every entry over, in order, and keeps none. */
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
