// The open batch's memory, as TypeScript writes to it and reads from it.
//
// Views and copies only: what lies where is the core's decision, which it tells
// through two words of its memory. Whatever enters the core may grow that memory, which
// detaches every view of it; so views are asked for each time, and never kept across an
// entry. Short arrays are copied by a loop and long ones by `set`, because a built-in
// costs as much as a dozen assignments.

import type { Operand, Result } from "./check.js";
import { checked, type Core } from "./core.js";
import type { Data } from "./tensor/leaf.js";

/** Beyond this many elements, `set` and `slice` are faster than a loop. */
const LOOP_LIMIT = 16;

/** What has a buffer, and may have another one later: WebAssembly memory that grows. */
export interface Memory {
  readonly buffer: ArrayBuffer;
}

const NO_WORDS = new Uint32Array(0);
const NO_FLOATS = new Float32Array(0);
const NO_BYTES = new Uint8Array(0);

/**
 * Memory as words, floats and bytes, whatever became of its buffer since: growing detaches
 * a buffer, and a view of it then has no length.
 */
class Views {
  private asWords = NO_WORDS;
  private asFloats = NO_FLOATS;
  private asBytes = NO_BYTES;

  constructor(private readonly memory: Memory) {}

  get words(): Uint32Array {
    if (this.asWords.length === 0) {
      this.asWords = new Uint32Array(this.memory.buffer);
    }
    return this.asWords;
  }

  get floats(): Float32Array {
    if (this.asFloats.length === 0) {
      this.asFloats = new Float32Array(this.memory.buffer);
    }
    return this.asFloats;
  }

  get bytes(): Uint8Array {
    if (this.asBytes.length === 0) {
      this.asBytes = new Uint8Array(this.memory.buffer);
    }
    return this.asBytes;
  }
}

/** Wasm memory seen as the core's arena. */
export class Arena {
  private readonly views: Views;
  private readonly header: number;

  constructor(
    private readonly core: Core,
    readonly memory: Memory,
  ) {
    this.header = core.header();
    this.views = new Views(memory);
  }

  /** Wasm memory as words, until the core is entered next. */
  get words(): Uint32Array {
    return this.views.words;
  }

  /** Batches on their way, as the core last said. */
  get flights(): number {
    return this.words[this.header + 2];
  }

  /** Those of them that a GPU has something of. */
  get owed(): number {
    return this.words[this.header + 3];
  }

  /** Makes room for this many words; returns the cursor. */
  room(words: number): number {
    const { words: before } = this;
    const cursor = before[this.header];
    if (cursor + words <= before[this.header + 1]) return cursor;
    checked(this.core, this.core.reserve(words));
    return this.words[this.header];
  }

  /** Copies an operand to word `word`. The room for it is made. */
  put(operand: Operand, word: number): void {
    if (operand.BYTES_PER_ELEMENT === 4)
      copyFloats(operand as Float32Array, this.views.floats, word);
    else copyBytes(operand as Uint8Array, this.views.bytes, word * 4);
  }

  /** Copies a tensor's data to word `word`, its bits as they are. */
  putData({ memory, start, words }: Data, word: number): void {
    if (memory instanceof Uint32Array) {
      this.words.set(memory, word);
    } else if (words > LOOP_LIMIT) {
      const isWhole = words === memory.length;
      const part = isWhole ? memory : memory.subarray(start, start + words);
      this.views.floats.set(part, word);
    } else {
      const { floats } = this.views;
      for (let i = 0; i < words; i += 1) floats[word + i] = memory[start + i];
    }
  }

  /** Writes a number as a float. */
  putNumber(number: number, word: number): void {
    this.views.floats[word] = number;
  }

  /** Writes the first `count` numbers as floats. */
  putNumbers(numbers: readonly number[], count: number, word: number): void {
    const { floats } = this.views;
    for (let i = 0; i < count; i += 1) floats[word + i] = numbers[i];
  }
}

/** The results of one batch, wherever they lie: in a mapped range, or in wasm memory. */
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
    this.copy(into, offset, wordsIn(into), 0);
  }

  /** Copies `words` from word `offset` on to word `at` of an array. */
  copy(to: Result, offset: number, words: number, at: number): void {
    const { views } = this;
    if (to.BYTES_PER_ELEMENT === 4)
      to.set(views.floats.subarray(offset, offset + words), at);
    else to.set(views.bytes.subarray(offset * 4, (offset + words) * 4), at * 4);
  }
}

/** As many words, rounded up to a multiple of four. */
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

function copyBytes(from: Uint8Array, to: Uint8Array, at: number): void {
  const length = from.length;
  if (length > LOOP_LIMIT) to.set(from, at);
  else for (let i = 0; i < length; i += 1) to[at + i] = from[i];
}
