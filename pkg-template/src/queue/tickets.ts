// How calls get their tickets from the core, and give up what they hold when answered.
//
// Entering a call writes its operands at the cursor and submits it; the core may answer
// the call before `submit` returns. Whoever answers a call takes it from this file's
// `Tickets` first, which gives each pending call out once. A call that the core refuses
// is rejected here, no other is settled.

import type { Call } from "../calls/call.js";
import { about } from "../calls/call-errors.js";
import type { CheckedOptions } from "../calls/call-options.js";
import { fromCore, isCoreFailure } from "../checks/errors.js";
import { PRIORITIES } from "../checks/priority.js";
import { checked, type Core } from "../core/core.js";
import { Arena } from "../memory/arena.js";
import type { Memory } from "../memory/views.js";
import { Keys } from "./keys.js";
import { PendingCalls } from "./pending-calls.js";

/** The tickets of one session. */
export class Tickets {
  /** The calls that have a ticket and no answer. */
  readonly pending = new PendingCalls();
  /** Aborts the calls that give their places in a full queue to others. */
  readonly yielding = new Set<AbortController>();
  arena!: Arena;
  private core!: Core;
  private keys: Keys | undefined;
  /** The call that is being submitted and has no ticket yet. */
  private entering: Call | undefined;

  constructor(
    /** Hears of a defect: what was being done, and what was thrown. */
    private readonly fail: (doing: string, thrown: unknown) => void,
  ) {}

  /** The session is open; `keyed` says whether its core asks for keys. */
  open(core: Core, memory: Memory, keyed: boolean): void {
    this.core = core;
    this.arena = new Arena(core, memory);
    if (keyed) this.keys = new Keys();
  }

  /** Gives the core a call. What the core refuses rejects. */
  enter(call: Call): void {
    const { core, keys } = this;
    const { operands, terms } = call;
    // Each key is released with its call, whatever becomes of the call.
    const key = keys === undefined ? 0 : keys.hold(terms?.key);
    try {
      if (this.yielding.size > 0 && core.desired_size() <= 0) {
        for (const controller of this.yielding) controller.abort();
      }
      const { elements, rows, scalar } = operands;
      call.elements = elements;
      const structure = operands.write(this.arena, terms);
      const engine = terms === undefined ? 0 : engineOf(terms);
      const priority =
        terms === undefined ? 0 : PRIORITIES.indexOf(terms.priority);
      this.entering = call;
      const ticket = checked(
        core,
        core.submit(structure, rows, scalar, key, engine, priority),
      );
      if (this.entering === undefined) return;
      this.entering = undefined;
      call.ticket = ticket;
      this.pending.put(call);
    } catch (thrown) {
      this.entering = undefined;
      this.turnAway(call, thrown);
    }
  }

  /** Removes, releases and returns the call of a ticket, if it is pending. */
  take(ticket: number): Call | undefined {
    const call = this.pending.take(ticket);
    if (call !== undefined) this.release(call);
    return call;
  }

  /** Takes the call of a ticket that the core answers, which may not be known here yet. */
  takeAnswered(ticket: number): Call | undefined {
    const call = this.pending.take(ticket) ?? this.entering;
    if (call === undefined) return undefined;
    // A full batch is sent, and on the CPU answered, before `submit` returns.
    if (call === this.entering) this.entering = undefined;
    this.release(call);
    return call;
  }

  /**
   * Has a call give up what it holds, which may enter the core. Never throws: the call,
   * and others behind it, are about to be settled.
   */
  release(call: Call): void {
    call.release();
    this.keys?.release(call.terms?.key);
    try {
      call.operands.unpin();
    } catch (thrown) {
      this.fail("release", thrown);
    }
  }

  private turnAway(call: Call, thrown: unknown): void {
    this.release(call);
    call.reject(fromCore(about(call), thrown));
    if (!isCoreFailure(thrown)) this.fail("submit", thrown);
  }
}

// The core's number of the engine that a call asks for; 0 is any.
function engineOf({ engine }: CheckedOptions): number {
  if (engine === undefined) return 0;
  return engine === "gpu" ? 1 : 2;
}
