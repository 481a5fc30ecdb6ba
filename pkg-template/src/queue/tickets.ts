// The calls that hold a ticket: how they get one, and what they give back with it.
//
// Entering writes a call's operands where the core wants them and submits it; the core
// may answer it before that returns. Whoever answers a call takes it from here first,
// so that it happens once. Only what the core refuses is settled here.

import type { Call } from "../calls/call.js";
import { about } from "../calls/call-errors.js";
import type { CheckedOptions } from "../calls/call-options.js";
import { fromCore, isCoreFailure } from "../checks/errors.js";
import { checked, type Core } from "../core/core.js";
import { Arena } from "../memory/arena.js";
import { Keys } from "./keys.js";
import { PendingCalls } from "./pending-calls.js";

/** The tickets of one session. */
export class Tickets {
  /** The calls that have one. */
  readonly pending = new PendingCalls();
  arena!: Arena;
  private core!: Core;
  private keys: Keys | undefined;
  /** The number of the key of the call that is being submitted. */
  private key = 0;
  /** The call that is being submitted, and has no ticket yet. */
  private entering: Call | undefined;

  constructor(
    /** Hears what is thrown where nothing should be, and while doing what. */
    private readonly fail: (doing: string, thrown: unknown) => void,
  ) {}

  /** The session is open; `keyed` says whether its core asks for keys. */
  open(core: Core, memory: WebAssembly.Memory, keyed: boolean): void {
    this.core = core;
    this.arena = new Arena(core, memory);
    if (keyed) this.keys = new Keys();
  }

  /** Gives the core a call. What the core refuses rejects. */
  enter(call: Call): void {
    const { operands } = call;
    this.holdKey(call);
    try {
      const structure = operands.write(this.arena, call.terms);
      call.elements = operands.elements;
      this.submit(call, structure, operands.rows, operands.scalar);
    } catch (thrown) {
      this.turnAway(call, thrown);
    }
  }

  /** Takes the call of a ticket out of the books, if it is there. */
  take(ticket: number): Call | undefined {
    const call = this.pending.take(ticket);
    if (call !== undefined) this.release(call);
    return call;
  }

  /** As {@link take}, for a ticket that the core answers. */
  takeAnswered(ticket: number): Call | undefined {
    const call = this.pending.take(ticket) ?? this.entering;
    if (call === undefined) return undefined;
    // A full batch is sent, and on the CPU answered, before `submit` returns.
    if (call === this.entering) this.entering = undefined;
    this.release(call);
    return call;
  }

  /**
   * A call gives back what it held, which may enter the core. Never throws: this call, and
   * others behind it, are about to be settled.
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

  // Gives the core a call whose operands lie at the cursor.
  private submit(call: Call, id: number, rows: number, scalar: number): void {
    this.entering = call;
    try {
      const core = this.core;
      const engine = call.terms === undefined ? 0 : engineOf(call.terms);
      const ticket = checked(
        core,
        core.submit(id, rows, scalar, this.key, engine),
      );
      if (this.entering === undefined) return;
      call.ticket = ticket;
      this.pending.put(call);
    } finally {
      this.entering = undefined;
    }
  }

  private turnAway(call: Call, thrown: unknown): void {
    this.release(call);
    call.reject(fromCore(about(call), thrown));
    if (!isCoreFailure(thrown)) this.fail("submit", thrown);
  }

  // Released with the call, however it goes.
  private holdKey(call: Call): void {
    if (this.keys !== undefined) this.key = this.keys.hold(call.terms?.key);
  }
}

// As the core numbers them.
function engineOf({ engine }: CheckedOptions): number {
  if (engine === undefined) return 0;
  return engine === "gpu" ? 1 : 2;
}
