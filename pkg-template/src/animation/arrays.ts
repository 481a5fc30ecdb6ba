// Arrays of clips and motions, which the page may have no memory for.

import { allocate, type Want } from "../checks/allocation.js";

/** An array of this many words. Throws `out-of-memory` where the page lacks the memory. */
export function wordsOf(
  about: string,
  count: number,
): Uint32Array<ArrayBuffer> {
  return allocate(wantOf(about, count), () => new Uint32Array(count));
}

/** An array of this many floats; throws as {@link wordsOf} does. */
export function floatsFor(about: string, count: number): Float32Array {
  return allocate(wantOf(about, count), () => new Float32Array(count));
}

/** A copy of floats; throws as {@link wordsOf} does. */
export function copyOf(about: string, floats: ArrayLike<number>): Float32Array {
  const copy = floatsFor(about, floats.length);
  copy.set(floats);
  return copy;
}

/** The floats that a function gives for each of others, as {@link wordsOf}. */
export function mapped(
  about: string,
  floats: Float32Array,
  each: (float: number, at: number) => number,
): Float32Array {
  const to = floatsFor(about, floats.length);
  for (let i = 0; i < to.length; i += 1) to[i] = each(floats[i], i);
  return to;
}

function wantOf(about: string, count: number): Want {
  return { about, bytes: 4 * count, instead: "give fewer numbers" };
}
