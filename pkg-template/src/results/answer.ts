// Gives one call its answer: its own value, or its own error.
//
// A call is resolved or rejected here, and nothing else is done. Which call a settle table answers is
// found in `settlement.ts`; that a call is answered once is the doing of `tickets.ts`,
// which gives each pending call out once.

import type { Call } from "../calls/call.js";
import { about, lostInto, noMemory } from "../calls/call-errors.js";
import { codeOf, FramebatchError } from "../checks/errors.js";
import type { Operand } from "../memory/arrays.js";
import type { Results } from "../memory/results.js";

/** Resolves a call with its result, of these words. */
export function deliver(
  call: Call,
  results: Results,
  offset: number,
  words: number,
): void {
  try {
    call.resolve(call.operands.answer(call, results, offset, words));
  } catch (error) {
    call.reject(
      error instanceof FramebatchError
        ? error
        : noMemory(about(call), words, error),
    );
  }
}

/** Words of a result that came with one chunk of a batch, and where in the result they belong. */
export interface Fragment {
  readonly offset: number;
  readonly words: number;
  readonly at: number;
  /** Words of the result. */
  readonly total: number;
}

/**
 * Adds a fragment to a call's result, whose array the first one makes. Returns the array
 * when it is full, or why there is none.
 */
export function collect(
  call: Call,
  results: Results,
  { offset, words, at, total }: Fragment,
): Operand | FramebatchError | undefined {
  try {
    // After a lost device the array that was begun is filled anew.
    const array = (call.array ??= call.operands.array(total, call.terms));
    if (array.byteLength !== total * 4) return lostInto(about(call));
    results.copy(array, offset, words, at);
    return at + words === total ? array : undefined;
  } catch (error) {
    return noMemory(about(call), total, error);
  }
}

/** Rejects a call with the status and message that the core settled it with. */
export function refuse(
  call: Call,
  status: number,
  message: string | undefined,
): void {
  call.reject(
    new FramebatchError(codeOf(status), `${about(call)}: ${message}`),
  );
}
