// The calls that hold a ticket: how they get one, and what they give back with it.
//
// Entering writes a call's operands where the core wants them and submits it; the core
// may answer it before that returns. Whoever answers a call takes it from here first,
// so that it happens once. Only what the core refuses is settled here.

import { about } from "./answer.js";
import { Arena } from "./arena.js";
import type { Call } from "./call.js";
import type { Terms } from "./call-options.js";
import type { Fraction, Operand } from "./check.js";
import { checked, type Core } from "./core.js";
import { fromCore, isCoreFailure } from "./errors.js";
import { Keys } from "./keys.js";
import { type Method, Structures } from "./method.js";
import { Pending } from "./pending.js";
import type { Reader } from "./tensor/reader.js";
import type { Residents } from "./tensor/residents.js";

/** The tickets of one session. */
export class Tickets {
  /** The calls that have one. */
  readonly pending = new Pending();
  arena!: Arena;
  private core!: Core;
  private structures!: Structures;
  private keys: Keys | undefined;
  /** The number of the key of the call that is being submitted. */
  private key = 0;
  /** The call that is being submitted, and has no ticket yet. */
  private entering: Call | undefined;

  constructor(
    private readonly reader: Reader,
    private readonly residents: Residents,
    /** Hears what is thrown where nothing should be, and while doing what. */
    private readonly fail: (doing: string, thrown: unknown) => void,
  ) {}

  /** The session is open; `keyed` says whether its core asks for keys. */
  open(core: Core, memory: WebAssembly.Memory, keyed: boolean): void {
    this.core = core;
    this.arena = new Arena(core, memory);
    this.structures = new Structures(core);
    this.reader.open(core, this.arena);
    if (keyed) this.keys = new Keys();
  }

  /** Gives the core a call. What the core refuses rejects. */
  enter(
    call: Call,
    a: Operand,
    b: Operand | undefined,
    t: Fraction | undefined,
    rest: readonly Operand[] | undefined,
  ): void {
    const { terms } = call;
    const method = call.method as Method;
    const each = typeof t === "object" ? t : undefined;
    let width = terms === undefined ? method.width : terms.width;
    if (method.last === "steps") width = t as number;
    const rows = each === undefined ? a.length / method.width : each.length;
    const scalar = typeof t === "number" ? t : 0;
    call.elements = a.length * method.growth;
    if (method.last === "steps") call.elements *= width;
    this.holdKey(call);
    try {
      const id =
        terms?.field === undefined
          ? this.structures.id(method, each !== undefined, width)
          : this.structures.fieldId(terms.field);
      this.arena.write(a, b, each, rest);
      this.submit(call, id, rows, scalar);
    } catch (thrown) {
      this.turnAway(call, thrown);
    }
  }

  /** Gives the core a reading that its reader has just encoded, as {@link enter} does. */
  enterReading(call: Call): void {
    const reading = call.reading!;
    call.elements = reading.elements;
    this.holdKey(call);
    try {
      this.submit(call, this.reader.lay(reading), 0, 0);
    } catch (thrown) {
      this.turnAway(call, thrown);
    }
  }

  /** Gives the core a call that lays its own operands, as {@link enter} does. */
  enterLaid(call: Call): void {
    const laid = call.laid!;
    call.elements = laid.elements;
    this.holdKey(call);
    try {
      this.submit(call, laid.lay(this.arena), laid.rows, 0);
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
      call.laid?.release();
      if (call.reading?.pinned === undefined) return;
      for (const leaf of call.reading.pinned) this.residents.unpin(leaf);
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
function engineOf({ engine }: Terms): number {
  if (engine === undefined) return 0;
  return engine === "gpu" ? 1 : 2;
}
