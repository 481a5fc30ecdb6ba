// Arrays as calls take and give them, and how these are copied.
//
// Short arrays are copied by a loop and long ones by `set`, because a built-in function
// costs as much as a dozen assignments. Whose memory it is, is not known here.

/** What the elements of an operand or a result are. */
export type Element = "float32" | "uint8";

/** An operand of a call. */
export type Operand = Float32Array | Uint8Array;

/** What a call may resolve to, or to a list of. */
export type Result = Operand | Uint32Array | Int32Array;

/** Words of a tensor, or 16-bit floats: `words` of them from `start` on. */
export interface Span {
  readonly memory: Float32Array | Uint32Array | Uint16Array;
  readonly start: number;
  readonly words: number;
}

/** Beyond this many elements, `set` and `slice` are faster than a loop. */
export const LOOP_LIMIT = 16;

/** A count of words, rounded up to a multiple of four. */
export function aligned(words: number): number {
  return words + (-words & 3); // Beyond 2^31 too.
}

/** Words that an array takes. */
export function wordsIn(operand: Result): number {
  return operand.BYTES_PER_ELEMENT === 4
    ? operand.length
    : Math.ceil(operand.length / 4);
}

// Two functions of equal text: each stays fast because it only ever sees one
// kind of array.
/** Copies floats to place `at` of others. */
export function copyFloats(
  from: Float32Array,
  to: Float32Array,
  at: number,
): void {
  const length = from.length;
  if (length > LOOP_LIMIT) to.set(from, at);
  else for (let i = 0; i < length; i += 1) to[at + i] = from[i];
}

/** Copies bytes to place `at` of others. */
export function copyBytes(from: Uint8Array, to: Uint8Array, at: number): void {
  const length = from.length;
  if (length > LOOP_LIMIT) to.set(from, at);
  else for (let i = 0; i < length; i += 1) to[at + i] = from[i];
}
