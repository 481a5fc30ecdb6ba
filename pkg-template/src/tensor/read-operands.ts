// The operands of a reading of tensors: where the results of a chain go.
//
// The results of a chain come as one run of words, each from a multiple of four. How a
// chain gets to the core is in `chain-writer.ts`, its promise in `calls/call.ts`.

import type { Answer, Call } from "../calls/call.js";
import { about, lostInto, noMemory } from "../calls/call-errors.js";
import type { CheckedOptions } from "../calls/call-options.js";
import { checkInto, type Receiver } from "../checks/arrays.js";
import { invalid } from "../checks/errors.js";
import { aligned, type Operand, type Result } from "../memory/arrays.js";
import type { Results } from "../memory/results.js";
import { ChainOperands, type Root } from "./chain-operands.js";
import { FLOATS } from "./codes.js";

/** The method that reads one tensor. */
export const READ = {
  name: "read",
  gives: "float32",
  width: 1,
  option: undefined,
} as const;

/** The method that reads several tensors at once. */
export const READ_ALL = { ...READ, name: "readAll" } as const;

/** The tensors that one call reads. */
export class ReadOperands extends ChainOperands {
  declare readonly method: typeof READ | typeof READ_ALL;
  /** The caller's arrays, one for each root; undefined where none was given. */
  private into: readonly (Result | undefined)[] | undefined = undefined;

  get elements(): number {
    const { count } = this.roots[0].shape;
    return this.isAnswer(count) ? count : 0;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    if (terms?.into !== undefined) this.takeInto(about, terms.into);
    super.check(about, terms);
  }

  override empty(): Answer {
    const arrays = this.roots.map(
      ({ dtype }, i) => this.into?.[i] ?? new CLASSES[dtype](0),
    );
    return this.method === READ ? arrays[0] : arrays;
  }

  override array(words: number): Operand {
    const into = this.isAnswer(words) ? this.into?.[0] : undefined;
    return (into as Operand | undefined) ?? new Float32Array(words);
  }

  override isAnswer(words: number): boolean {
    const { shape, dtype } = this.roots[0];
    return this.method === READ && dtype === FLOATS && shape.count === words;
  }

  override answer(call: Call, results: Results, offset: number): Answer {
    const { method, roots, into } = this;
    // An array that fragments were put together in is an answer only where it is whole.
    const made = call.elements > 0 ? call.array : undefined;
    if (method === READ) {
      return filled(call, results, offset, roots[0], into?.[0] ?? made);
    }
    const arrays = new Array<Result>(roots.length);
    let at = offset;
    for (let i = 0; i < roots.length; i += 1) {
      arrays[i] = filled(call, results, at, roots[i], into?.[i]);
      at += aligned(roots[i].shape.count);
    }
    return arrays;
  }

  private takeInto(
    about: string,
    into: NonNullable<CheckedOptions["into"]>,
  ): void {
    const { method, roots } = this;
    if (method === READ) {
      checkInto(about, into, receiver("into", roots[0]));
      this.into = [into as Result];
      return;
    }
    if (!Array.isArray(into) || into.length !== roots.length) {
      throw invalid(
        about,
        `into must be an array with one array for each of the ${roots.length} tensors`,
      );
    }
    // A copy: the caller may change its list while the call waits.
    const targets: readonly (Result | undefined)[] = [...into];
    roots.forEach((root, i) => {
      if (targets[i] === undefined) return;
      checkInto(about, targets[i], receiver(`into[${i}]`, root));
    });
    this.into = targets;
  }
}

/** The array of a result, a new one without a target. Throws where the target shrank. */
function filled(
  call: Call,
  results: Results,
  offset: number,
  { shape: { count }, dtype }: Root,
  target: Result | undefined,
): Result {
  if (target === undefined) {
    try {
      if (dtype === FLOATS) return results.floatsAt(offset, count);
      const { buffer } = results.bytesAt(offset, count);
      return new CLASSES[dtype](buffer as ArrayBuffer);
    } catch (cause) {
      throw noMemory(about(call), count, cause);
    }
  }
  if (target.byteLength !== count * 4) throw lostInto(about(call));
  const isFloats = target instanceof Float32Array;
  results.fill(isFloats ? target : bytesOf(target), offset);
  return target;
}

// Bits are copied as they are: a float array would convert them.
function bytesOf({ buffer, byteOffset, byteLength }: Result): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The arrays of results, and their names, by the type of elements. */
const CLASSES = [Float32Array, Uint32Array, Int32Array] as const;
const TYPES = ["Float32Array", "Uint32Array", "Int32Array"] as const;

function receiver(name: string, { shape, dtype }: Root): Receiver {
  const type = TYPES[dtype];
  return { name, type, length: shape.count };
}
