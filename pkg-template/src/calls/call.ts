// One call: its promise, and what is needed to answer it.
//
// A call is made for every request on the hot path, so it is one small object and no
// closure. It knows nothing of other calls, and does not answer itself.

import type { Operand } from "../memory/arrays.js";
import { listen } from "../platform/abort.js";
import type { CheckedOptions } from "./call-options.js";
import type { Operands } from "./operands.js";

/** What a call resolves to: arrays of results, or a tensor of them, or nothing. */
export type Answer = object | undefined;

/** A call that still waits to be entered into the core. */
export const UNENTERED = -1;

/** A call that has been answered. */
export const ANSWERED = -2;

/** One call, from its method until its answer. */
export class Call {
  /** The call's number in the core, or {@link UNENTERED}, or {@link ANSWERED}. */
  ticket = UNENTERED;
  /** Elements of the result; 0 where it is not one new array. */
  elements = 0;
  /** The array of the result, once it is made: before the answer, or with its first fragment. */
  array: Operand | undefined = undefined;
  /** The timer of the call's deadline, if it has one. */
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;

  /** What the caller awaits. */
  readonly promise: Promise<Answer>;
  readonly resolve: (result: Answer) => void;
  private readonly rejectPromise: (reason: unknown) => void;

  constructor(
    readonly operands: Operands,
    /** The call's options; undefined where none were given. */
    readonly terms: CheckedOptions | undefined,
    /** Ends the call when its signal aborts or its deadline passes. */
    private readonly owner: {
      abort(call: Call): void;
      expire(call: Call): void;
    },
  ) {
    this.promise = new Promise(capture);
    this.resolve = resolveNew;
    this.rejectPromise = rejectNew;
  }

  /** Starts to listen to the call's signal, and starts the timer of its deadline. */
  watch(): void {
    listen(this.terms?.signal, this);
    const deadline = this.terms?.deadlineMs;
    // A deadline beyond the longest wait of a timer never passes.
    if (deadline !== undefined && deadline < 2 ** 31) {
      this.timer = setTimeout(() => this.owner.expire(this), deadline);
    }
  }

  /** Stops listening. Invariant: a call is released before it is resolved or rejected. */
  release(): void {
    this.ticket = ANSWERED;
    if (this.terms !== undefined) {
      this.terms.signal?.removeEventListener("abort", this);
      if (this.timer !== undefined) clearTimeout(this.timer);
    }
  }

  /** Rejects the call's promise. */
  reject(reason: unknown): void {
    this.operands.rejected(reason);
    this.rejectPromise(reason);
  }

  /** Makes the call itself the listener of its signal, so that no closure is needed. */
  handleEvent(): void {
    this.owner.abort(this);
  }
}

// Captures a promise's functions without a closure of each call's own.
let resolveNew!: (result: Answer) => void;
let rejectNew!: (reason: unknown) => void;
function capture(
  resolve: (result: Answer) => void,
  reject: (reason: unknown) => void,
): void {
  resolveNew = resolve;
  rejectNew = reject;
}
