// The calls made before there is a core to take them.
//
// Their arguments are already checked, and are copied here, so the caller may
// change its arrays at once. It keeps order; entering is done in `calls.ts`.

import { about } from "./answer.js";
import type { Fraction, Operand } from "./check.js";
import { type Call, UNENTERED } from "./call.js";
import { allocate } from "./memory.js";

/** A call and its own copies of what it was given. */
export interface Waiting {
  readonly call: Call;
  /** Undefined for a reading, which has no operands. */
  readonly a: Operand | undefined;
  readonly b: Operand | undefined;
  readonly t: Fraction | undefined;
  readonly rest: readonly Operand[] | undefined;
}

/** Calls, and the flushes between them, in the order they were made. */
export class Backlog {
  private entries: (Waiting | "flush")[] = [];

  /** Calls that still wait; those that were aborted do not. */
  get size(): number {
    return this.calls().length;
  }

  /** Adds a call with copies of its arguments. Throws where there is no memory for them. */
  add(
    call: Call,
    a: Operand,
    b: Operand | undefined,
    t: Fraction | undefined,
    rest: readonly Operand[] | undefined,
  ): void {
    const copy = <Kind extends Operand>(of: Kind): Kind => copyOf(call, of);
    this.entries.push({
      call,
      a: copy(a),
      b: b && copy(b),
      t: typeof t === "object" ? copy(t) : t,
      rest: rest?.map(copy),
    });
  }

  /** Adds a reading of tensors, which keep their own data. */
  addReading(call: Call): void {
    this.entries.push({
      call,
      a: undefined,
      b: undefined,
      t: undefined,
      rest: undefined,
    });
  }

  /** Notes that everything up to here was to be sent. */
  addFlush(): void {
    this.entries.push("flush");
  }

  /** Hands every entry over, in order, and keeps none. */
  replay(enter: (waiting: Waiting) => void, flush: () => void): void {
    for (const entry of this.entries) {
      if (entry === "flush") flush();
      else if (entry.call.ticket === UNENTERED) enter(entry);
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
      .map((entry) => entry.call)
      .filter((call) => call.ticket === UNENTERED);
  }
}

// Of Node's buffers, `slice` is a view.
function copyOf<Kind extends Operand>(call: Call, operand: Kind): Kind {
  const Kind = operand.BYTES_PER_ELEMENT === 4 ? Float32Array : Uint8Array;
  const { byteLength: bytes } = operand;
  const instead = "await gpu.ready, so that it need not be kept";
  return allocate(
    { about: about(call), bytes, instead },
    () => new Kind(operand) as Kind,
  );
}
