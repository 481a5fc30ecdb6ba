// The operands of a reading of tensors: the chain that is asked for, where its results
// go, and what of it must stay until it is answered.
//
// The results of a chain come as one run of words, each from a multiple of four. How a
// chain gets to the core is in `chain-writer.ts`, its promise in
// `calls/call.ts`.

import type { Answer, Call } from "../calls/call.js";
import { about, noMemory } from "../calls/call-errors.js";
import type { CheckedOptions } from "../calls/call-options.js";
import { Operands } from "../calls/operands.js";
import { checkInto, type Receiver } from "../checks/arrays.js";
import { invalid } from "../checks/errors.js";
import { type Arena } from "../memory/arena.js";
import { aligned, type Operand, type Result } from "../memory/arrays.js";
import type { Results } from "../memory/results.js";
import type { ChainWriter } from "./chain-writer.js";
import { FLOATS } from "./codes.js";
import type { Node } from "./node.js";
import type { TensorStorage } from "./storage.js";

/** The method that reads one tensor. */
export const READ = {
  name: "read",
  gives: "float32",
  width: 1,
  option: undefined,
} as const;

/** The method that reads several tensors at once. */
export const READ_ALL = { ...READ, name: "readAll" } as const;

/** What is known of a result without its node. */
export type Root = Pick<Node, "shape" | "dtype">;

/** The tensors that one call reads. */
export class ChainOperands extends Operands {
  declare readonly method: typeof READ | typeof READ_ALL;
  readonly rows = 0;
  /** The caller's arrays, one for each root; undefined where none was given. */
  private into: readonly (Result | undefined)[] | undefined = undefined;
  /** Storages that the call needs: resident ones, and all of them while the session opens. */
  private pinned: TensorStorage[] | undefined = undefined;

  constructor(
    private readonly writer: ChainWriter,
    method: typeof READ | typeof READ_ALL,
    /** The results that are asked for; nodes until the chain is written. */
    private roots: readonly Root[],
  ) {
    super(method);
  }

  get isEmpty(): boolean {
    return this.asked.length === 0;
  }

  get elements(): number {
    const { count } = this.roots[0].shape;
    return this.isAnswer(count) ? count : 0;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    if (terms?.into !== undefined) this.takeInto(about, terms.into);
    this.writer.encode(about, this);
  }

  override copy(): void {
    this.writer.keep(this);
  }

  write(arena: Arena): number {
    return this.writer.write(this, arena);
  }

  override unpin(): void {
    if (this.pinned === undefined) return;
    for (const storage of this.pinned) this.writer.residents.unpin(storage);
  }

  override empty(): Answer {
    const arrays = this.roots.map(
      ({ dtype }, i) =>
        this.into?.[i] ??
        (dtype === FLOATS ? new Float32Array(0) : new Uint32Array(0)),
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

  override answer(
    call: Call,
    results: Results,
    offset: number,
  ): Answer | undefined {
    const { method, roots, into } = this;
    // An array that fragments were put together in is an answer only where it is whole.
    const made = call.elements > 0 ? call.array : undefined;
    if (method === READ) {
      return filled(call, results, offset, roots[0], into?.[0] ?? made);
    }
    const arrays = new Array<Result>(roots.length);
    let at = offset;
    for (let i = 0; i < roots.length; i += 1) {
      const array = filled(call, results, at, roots[i], into?.[i]);
      if (array === undefined) return undefined;
      arrays[i] = array;
      at += aligned(roots[i].shape.count);
    }
    return arrays;
  }

  /** The nodes that the core is asked for: those that hold anything. */
  get asked(): readonly Node[] {
    const roots = this.roots as readonly Node[];
    if (roots.length === 1 && roots[0].shape.count > 0) return roots;
    return roots.filter(({ shape }) => shape.count > 0);
  }

  /**
   * The core has the chain, and nodes can be collected from here on: a frame's calls
   * would otherwise keep many small objects alive together. `asked` are the results that
   * hold anything, which all calls of one structure share.
   */
  written(asked: readonly Root[]): void {
    const { roots } = this;
    this.roots =
      asked.length === roots.length
        ? asked
        : roots.map(({ shape, dtype }) => ({ shape, dtype }));
  }

  /** Keeps a storage until {@link unpin}. Invariant: a pinned storage keeps its data and its number. */
  pinStorage(storage: TensorStorage): void {
    storage.pins += 1;
    if (this.pinned === undefined) this.pinned = [storage];
    else this.pinned.push(storage);
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

/** The array of a result, a new one without a target; undefined where the target shrank. */
function filled(
  call: Call,
  results: Results,
  offset: number,
  { shape: { count }, dtype }: Root,
  target: Result | undefined,
): Result | undefined {
  if (target === undefined) {
    try {
      if (dtype === FLOATS) return results.floatsAt(offset, count);
      return new Uint32Array(results.bytesAt(offset, count).buffer);
    } catch (cause) {
      throw noMemory(about(call), count, cause);
    }
  }
  if (target.byteLength !== count * 4) return undefined;
  results.fill(dtype === FLOATS ? target : bytesOf(target), offset);
  return target;
}

// Bits are copied as they are: a float array would convert them.
function bytesOf({ buffer, byteOffset, byteLength }: Result): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function receiver(name: string, { shape, dtype }: Root): Receiver {
  const type = dtype === FLOATS ? "Float32Array" : "Uint32Array";
  return { name, type, length: shape.count };
}
