// Gives one call its answer: its own value, or its own error.
//
// It resolves or rejects and does nothing else. Which call a settle table answers is
// found in `settlement.ts`; that a call is answered once is the doing of `tickets.ts`,
// which gives each pending call out once.

import type { Results } from "./arena.js";
import { codeOf, FramebatchError, invalid, subject } from "./errors.js";
import type { Call } from "./call.js";
import type { Operand } from "./check.js";
import type { Method } from "./method.js";
import type { Terms } from "./call-options.js";

/** Resolves a call with its result, in the caller's `into` or in an array of its own. */
export function deliver(
  call: Call,
  results: Results,
  offset: number,
  words: number,
): void {
  const given =
    call.terms === undefined ? undefined : (call.terms.into as Operand);
  const into = given ?? call.begun;
  try {
    if (into === undefined) {
      call.resolve(
        call.method.gives === "float32"
          ? results.floatsAt(offset, words)
          : results.bytesAt(offset, words),
      );
    } else if (into.byteLength === words * 4) {
      results.fill(into, offset);
      call.resolve(into);
    } else {
      call.reject(lostInto(about(call)));
    }
  } catch (error) {
    call.reject(noMemory(about(call), words, error));
  }
}

/** Words that a piece has for a call, and where in its result they belong. */
export interface Part {
  readonly offset: number;
  readonly words: number;
  readonly at: number;
  /** Words of the result. */
  readonly total: number;
}

/**
 * Adds a part to a call's result, which the first one begins. Returns the result
 * when it is complete, or why there is none.
 */
export function collect(
  call: Call,
  results: Results,
  { offset, words, at, total }: Part,
): Operand | FramebatchError | undefined {
  try {
    // Made before, it is the same after a lost device, and filled anew.
    const result = (call.begun ??= room(call, total));
    if (result.byteLength !== total * 4) return lostInto(about(call));
    results.copy(result, offset, words, at);
    return at + words === total ? result : undefined;
  } catch (error) {
    return noMemory(about(call), total, error);
  }
}

/** An array for a call's result of this many words; the caller's, if it gave one. */
export function room(call: Call, words: number): Operand {
  const { method, terms, reading } = call;
  if (reading !== undefined) return reading.room(words);
  if (terms?.into !== undefined) return terms.into as Operand;
  return method.gives === "float32"
    ? new Float32Array(words)
    : new Uint8Array(words * 4);
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

/** The result of a call without items: the caller's `into`, or an empty array. */
export function emptyResult<Result extends Operand>(
  method: Method,
  terms: Terms | undefined,
): Result {
  const { gives } = method;
  const empty = gives === "float32" ? new Float32Array(0) : new Uint8Array(0);
  return (terms?.into ?? empty) as Result;
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
  return subject(call.method.name, call.terms?.label);
}
