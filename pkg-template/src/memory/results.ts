// The results of a batch, as TypeScript copies them out.
//
// The settle table says which words are whose result; it is not read here.

import { LOOP_LIMIT, type Result, wordsIn } from "./arrays.js";
import { type Memory, Views } from "./views.js";

/** The results of one batch, in a mapped range or in WebAssembly memory. */
export class Results {
  private readonly views: Views;

  constructor(source: Memory) {
    this.views = new Views(source);
  }

  /** A new array with the `words` from word `offset` on. */
  floatsAt(offset: number, words: number): Float32Array {
    const from = this.views.floats;
    if (words > LOOP_LIMIT) return from.slice(offset, offset + words);
    const result = new Float32Array(words);
    for (let i = 0; i < words; i += 1) result[i] = from[offset + i];
    return result;
  }

  /** A new array with the bytes of the `words` from word `offset` on. */
  bytesAt(offset: number, words: number): Uint8Array {
    return this.views.bytes.slice(offset * 4, (offset + words) * 4);
  }

  /** Fills an array, whose length is that of the result, from word `offset` on. */
  fill(into: Result, offset: number): void {
    const words = wordsIn(into);
    if (into.BYTES_PER_ELEMENT === 1 || words > LOOP_LIMIT) {
      return this.copy(into, offset, words, 0);
    }
    const { floats } = this.views;
    for (let i = 0; i < words; i += 1) into[i] = floats[offset + i];
  }

  /**
   * Copies `words` from word `offset` on to word `at` of an array, bit for bit: they may be
   * integers in an array of floats, which a loop over floats would take for numbers.
   */
  copy(to: Result, offset: number, words: number, at: number): void {
    const end = offset + words;
    if (to.BYTES_PER_ELEMENT === 1) {
      to.set(this.views.bytes.subarray(offset * 4, end * 4), at * 4);
    } else {
      to.set(this.views.floats.subarray(offset, end), at);
    }
  }
}
