// Gives one call its answer: its own value, or its own error.
//
// It resolves or rejects and does nothing else. Which call a settle table answers is
// found in `settlement.ts`; that a call is answered once is the doing of `tickets.ts`,
// which gives each pending call out once.

import type { Results } from "./arena.js";
import { codeOf, FramebatchError, invalid, subject } from "./errors.js";
import type { Call } from "./call.js";
import type { Operand } from "./check.js";

/** Resolves a call with its result, of these words. */
export function deliver(
  call: Call,
  results: Results,
  offset: number,
  words: number,
): void {
  try {
    const answer = call.operands.answer(call, results, offset, words);
    if (answer === undefined) call.reject(lostInto(about(call)));
    else call.resolve(answer);
  } catch (error) {
    call.reject(
      error instanceof FramebatchError
        ? error
        : noMemory(about(call), words, error),
    );
  }
}

/** Words that a chunk of a batch has for a call, and where in its result they belong. */
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

/** The error for an `into` that changed while it was waited for. */
export function lostInto(asked: string): FramebatchError {
  return invalid(
    asked,
    "into was detached or resized while the call was pending; keep it until the promise settles",
  );
}

/** The error where the page has no memory for a new array. The other calls may still fit. */
export function noMemory(
  asked: string,
  words: number,
  cause: unknown,
): FramebatchError {
  return new FramebatchError(
    "out-of-memory",
    `${asked}: no memory for a result of ${words * 4} bytes; give an array as into`,
    { cause },
  );
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

/** The error of a call that has waited for too long. */
export function lateError(call: Call): FramebatchError {
  return new FramebatchError(
    "timeout",
    `${about(call)}: no answer within ${call.terms!.deadlineMs} ms`,
  );
}

/** Rejects a call because its session ended. */
export function endWith(call: Call, end: FramebatchError): void {
  call.reject(endedError(about(call), end));
}

/** The error of whatever is asked of a session that has ended. */
export function endedError(
  asked: string,
  end: FramebatchError,
): FramebatchError {
  return new FramebatchError(end.code, `${asked}: ${end.message}`, {
    cause: end,
  });
}

/** How a message about this call begins. */
export function about(call: Call): string {
  return subject(call.operands.method.name, call.terms?.label);
}
