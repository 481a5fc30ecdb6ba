// Allocation of arrays as long as callers ask for, for which the page may have no memory.
//
// What engines throw then has no code and names no way out, so it is worded anew here.
// Memory of the core and of devices is not the subject.

import { FramebatchError } from "./errors.js";

/** An array that is wanted. */
export interface Want {
  /** How the message begins. */
  readonly about: string;
  readonly bytes: number;
  /** What to do where there is no memory for it. */
  readonly instead: string;
}

/** What `make` makes of that many bytes. Throws `out-of-memory` where the page lacks these. */
export function allocate<Made>(want: Want, make: () => Made): Made {
  try {
    return make();
  } catch (cause) {
    throw outOfMemory(want, cause);
  }
}

/** The error where the page lacks memory. */
export function outOfMemory(
  { about, bytes, instead }: Want,
  cause: unknown,
): FramebatchError {
  return new FramebatchError(
    "out-of-memory",
    `${about}: the page has no memory for ${bytes} bytes; ${instead}`,
    { cause },
  );
}
