// The errors of calls that more than one file gives, and how these begin.
//
// What is wrong with arguments is said in `arguments.ts`, with options in
// `call-options.ts`; the core words its own errors.

import { FramebatchError, invalid, subject } from "../checks/errors.js";
import type { Call } from "./call.js";

/** The error for an `into` that changed while the call was pending. */
export function lostInto(asked: string): FramebatchError {
  return invalid(
    asked,
    "into was detached or resized while the call was pending; keep it until the promise settles",
  );
}

/** The error where the page has no memory for the array of a result. */
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

/** The error of a call whose deadline has passed. */
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

/** The error of anything that is asked of a session that has ended. */
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
