// The open batch's memory, as TypeScript writes operands to it.
//
// What lies where is the core's decision, which it tells through words of its memory.
// Whatever enters the core may grow that memory, which detaches every view of it; so
// views are asked for each time, and never kept across an entry.

import { checked, type Core } from "../core/core.js";
import {
  copyBytes,
  copyFloats,
  LOOP_LIMIT,
  type Operand,
  type Span,
} from "./arrays.js";
import { type Memory, Views } from "./views.js";

/** The arena of the open batch, in WebAssembly memory. */
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

  /** Batches in flight, as the core last said. */
  get flights(): number {
    return this.words[this.header + 2];
  }

  /** Batches in flight that a GPU computes. */
  get owed(): number {
    return this.words[this.header + 3];
  }

  /** Makes room for this many words; returns the cursor. */
  reserve(words: number): number {
    const { words: before } = this;
    const cursor = before[this.header];
    if (cursor + words <= before[this.header + 1]) return cursor;
    checked(this.core, this.core.reserve(words));
    return this.words[this.header];
  }

  /** Copies an operand to word `word`, behind a cursor that {@link reserve} returned. */
  put(operand: Operand, word: number): void {
    if (operand.BYTES_PER_ELEMENT === 4)
      copyFloats(operand as Float32Array, this.views.floats, word);
    else copyBytes(operand as Uint8Array, this.views.bytes, word * 4);
  }

  /** Copies a tensor's data to word `word`, its bits as they are. */
  putData({ memory, start, words }: Span, word: number): void {
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

  /** Writes the number of a tensor, which a core in a worker gives another number. */
  putTensor(number: number, word: number): void {
    this.words[word] = number;
    this.core.names?.push(word);
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
