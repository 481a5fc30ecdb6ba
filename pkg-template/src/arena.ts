// The open batch's memory, as TypeScript writes to it and reads from it.
//
// Views and copies only: what lies where is the core's decision, which it tells
// through two words of its memory. Short arrays are copied by a loop and long
// ones by `set`, because a built-in costs as much as a dozen assignments.

import type { Operand, Result } from "./check.js";
import { checked, type Core } from "./core.js";
import type { Data } from "./tensor/leaf.js";

/** Beyond this many elements, `set` and `slice` are faster than a loop. */
const LOOP_LIMIT = 16;

/** Wasm memory seen as the core's arena. */
export class Arena {
  /** Wasm memory as words. Read it after {@link refresh}, and do not keep it. */
  words!: Uint32Array;
  private floats!: Float32Array;
  private bytes!: Uint8Array;
  private readonly header: number;

  constructor(
    private readonly core: Core,
    private readonly memory: WebAssembly.Memory,
  ) {
    this.header = core.header();
    this.view();
  }

  /**
   * Copies a call's operands to the cursor, each from a multiple of four words.
   * Throws what the core throws when they fit no batch.
   */
  write(
    a: Operand,
    b: Operand | undefined,
    t: Float32Array | undefined,
    rest: readonly Operand[] | undefined,
  ): void {
    // All of a call's operands have one length.
    const each = aligned(wordsIn(a));
    let words = b === undefined ? each : each * 2;
    if (rest !== undefined) words += each * rest.length;
    const at = this.room(t === undefined ? words : words + aligned(t.length));
    this.put(a, at);
    if (b !== undefined) this.put(b, at + each);
    if (rest !== undefined) {
      for (let k = 0; k < rest.length; k += 1)
        this.put(rest[k], at + each * (k + 2));
    }
    if (t !== undefined) copyFloats(t, this.floats, at + words);
  }

  /** Makes the views whole again after wasm memory has grown. */
  refresh(): void {
    // Growing detaches the old buffer, and a view of it then has no length.
    if (this.words.length === 0) this.view();
  }

  /** Batches on their way, as the core last said. */
  get flights(): number {
    this.refresh();
    return this.words[this.header + 2];
  }

  /** Those of them that a GPU has something of. */
  get owed(): number {
    this.refresh();
    return this.words[this.header + 3];
  }

  /** The memory that holds results which the core did not map. */
  get buffer(): ArrayBuffer {
    return this.memory.buffer;
  }

  /** Makes room for this many words; returns the cursor. */
  room(words: number): number {
    this.refresh();
    const cursor = this.words[this.header];
    if (cursor + words <= this.words[this.header + 1]) return cursor;
    checked(this.core, this.core.reserve(words));
    this.refresh();
    return this.words[this.header];
  }

  /** Copies an operand to word `word`. The room for it is made. */
  put(operand: Operand, word: number): void {
    if (operand.BYTES_PER_ELEMENT === 4)
      copyFloats(operand as Float32Array, this.floats, word);
    else copyBytes(operand as Uint8Array, this.bytes, word * 4);
  }

  /** Copies a tensor's data to word `word`, its bits as they are. */
  putData({ memory, start, words }: Data, word: number): void {
    if (memory instanceof Uint32Array) {
      this.words.set(memory, word);
    } else if (words > LOOP_LIMIT) {
      const isWhole = words === memory.length;
      const part = isWhole ? memory : memory.subarray(start, start + words);
      this.floats.set(part, word);
    } else {
      const { floats } = this;
      for (let i = 0; i < words; i += 1) floats[word + i] = memory[start + i];
    }
  }

  /** Writes a number as a float. */
  putNumber(number: number, word: number): void {
    this.floats[word] = number;
  }

  /** Writes the first `count` numbers as floats. */
  putNumbers(numbers: readonly number[], count: number, word: number): void {
    for (let i = 0; i < count; i += 1) this.floats[word + i] = numbers[i];
  }

  private view(): void {
    const { buffer } = this.memory;
    this.words = new Uint32Array(buffer);
    this.floats = new Float32Array(buffer);
    this.bytes = new Uint8Array(buffer);
  }
}

/** The results of one batch, wherever they lie. */
export class Results {
  private readonly floats: Float32Array;
  private readonly bytes: Uint8Array;

  constructor(source: ArrayBuffer) {
    this.floats = new Float32Array(source);
    this.bytes = new Uint8Array(source);
  }

  /** A new array with the `words` from word `offset` on. */
  floatsAt(offset: number, words: number): Float32Array {
    if (words > LOOP_LIMIT) return this.floats.slice(offset, offset + words);
    const from = this.floats;
    const result = new Float32Array(words);
    for (let i = 0; i < words; i += 1) result[i] = from[offset + i];
    return result;
  }

  /** A new array with the bytes of the `words` from word `offset` on. */
  bytesAt(offset: number, words: number): Uint8Array {
    return this.bytes.slice(offset * 4, (offset + words) * 4);
  }

  /** Fills an array, whose length is that of the result, from word `offset` on. */
  fill(into: Result, offset: number): void {
    this.copy(into, offset, wordsIn(into), 0);
  }

  /** Copies `words` from word `offset` on to word `at` of an array. */
  copy(to: Result, offset: number, words: number, at: number): void {
    if (to.BYTES_PER_ELEMENT === 4)
      to.set(this.floats.subarray(offset, offset + words), at);
    else to.set(this.bytes.subarray(offset * 4, (offset + words) * 4), at * 4);
  }
}

/** As many words, rounded up to a multiple of four. */
export function aligned(words: number): number {
  return words + (-words & 3); // Beyond 2^31 too.
}

function wordsIn(operand: Result): number {
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
