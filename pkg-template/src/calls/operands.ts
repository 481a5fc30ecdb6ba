// What a call computes on: one form for every kind of call.
//
// Operands are checked, written at the arena's cursor, and decide which array a result
// is. A call's promise and ticket are in `call.ts`; when a call is sent, and which settle
// table answers it, is not known here.

import type { Arena } from "../memory/arena.js";
import type { Operand, Element } from "../memory/arrays.js";
import type { Results } from "../memory/results.js";
import type { Answer, Call } from "./call.js";
import { about, lostInto } from "./call-errors.js";
import type { CheckedOptions } from "./call-options.js";

/** What is known of a call's method: how it is named, answered, and its options checked. */
export interface CallMethod {
  readonly name: string;
  /** Elements of the result. */
  readonly gives: Element;
  /** Elements of one item, unless the caller may choose. */
  readonly width: number;
  /**
   * The option that the method has beside those of every call; `keep` and `target` stand for
   * methods without `into`, because tensors take the result.
   */
  readonly option: "width" | "field" | "keep" | "target" | undefined;
}

/** The operands of one call. Unless a kind says otherwise, its result is one array. */
export abstract class Operands {
  /** Rows of the call. To be asked for before the operands are written. */
  abstract readonly rows: number;
  /** Elements of the result, likewise; 0 where the result is not one new array. */
  abstract readonly elements: number;
  /** Whether there is nothing to compute. */
  abstract readonly isEmpty: boolean;

  constructor(readonly method: CallMethod) {}

  /** The number that the core takes beside the operands. */
  get scalar(): number {
    return 0;
  }

  /** Throws unless the call can be made. */
  check(_about: string, _terms: CheckedOptions | undefined): void {}

  /** Takes hold of what the call needs until {@link unpin}. */
  pin(): void {}

  /** Copies what the caller may change, because the session still opens. */
  copy(_about: string): void {}

  /** Writes the operands at the cursor; returns the core's number of their structure. */
  abstract write(arena: Arena, terms: CheckedOptions | undefined): number;

  /** Lets go of what {@link pin} took: the call is answered. */
  unpin(): void {}

  /** Hears why the call is rejected. */
  rejected(_reason: unknown): void {}

  /** The answer where there is nothing to compute. */
  empty(terms: CheckedOptions | undefined): Answer {
    return this.array(0, terms);
  }

  /** The array for a result of this many words: the caller's, if it gave one. */
  array(words: number, terms: CheckedOptions | undefined): Operand {
    if (terms?.into !== undefined) return terms.into as Operand;
    return this.method.gives === "float32"
      ? new Float32Array(words)
      : new Uint8Array(words * 4);
  }

  /** Whether a filled {@link array} is the answer as it is. */
  isAnswer(_words: number): boolean {
    return true;
  }

  /**
   * The answer: the result's words, in the array that was made for them or in a new one.
   * Throws where the caller's array has another length by now.
   */
  answer(call: Call, results: Results, offset: number, words: number): Answer {
    const { terms, array: made } = call;
    const into = (terms?.into ?? made) as Operand | undefined;
    if (into === undefined) {
      return this.method.gives === "float32"
        ? results.floatsAt(offset, words)
        : results.bytesAt(offset, words);
    }
    if (into.byteLength !== words * 4) throw lostInto(about(call));
    results.fill(into, offset);
    return into;
  }
}
