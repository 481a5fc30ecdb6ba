// One reading of tensors: what is wanted, where it goes, and how it is answered.
//
// The outputs of a chain come as one run of words, each from a multiple of four. How
// a reading gets to the core is in `reader.ts`, its promise in `call.ts`.

import { about, lostInto, noMemory } from "../answer.js";
import { aligned, type Memory, Results } from "../arena.js";
import type { Call } from "../call.js";
import type { Result } from "../check.js";
import { checkInto, type Receiver } from "../check-array.js";
import { invalid, subject } from "../errors.js";
import type { Terms } from "../call-options.js";
import { FLOATS } from "./codes.js";
import type { Leaf } from "./leaf.js";
import type { Node } from "./node.js";

/** How reading one tensor is named and settled. */
export const READ = {
  name: "read",
  gives: "float32",
  width: 1,
  option: undefined,
} as const;

/** How reading several at once is. */
export const READ_ALL = { ...READ, name: "readAll" } as const;

/** What is known of a result without its node. */
export type Root = Pick<Node, "shape" | "dtype">;

/** What is read, and what of it must stay until it is answered. */
export class Reading {
  /** The caller's arrays, by root; undefined where none was given. */
  into: readonly (Result | undefined)[] | undefined;
  /** Resident data that the call names; while the session opens, all data. */
  pinned: Leaf[] | undefined;

  constructor(
    readonly method: typeof READ | typeof READ_ALL,
    /** Nodes until the reading is entered. */
    public roots: readonly Root[],
  ) {}

  /**
   * The core has it. What the results were made of can be collected from here on: a
   * frame's calls would otherwise keep many small objects alive together. `asked` are
   * those of its results that hold anything, which calls of one structure share.
   */
  entered(asked: readonly Root[]): void {
    const { roots } = this;
    this.roots =
      asked.length === roots.length
        ? asked
        : roots.map(({ shape, dtype }) => ({ shape, dtype }));
  }

  /** The nodes that the core is asked for: those that hold anything. */
  get asked(): readonly Node[] {
    const roots = this.roots as readonly Node[];
    if (roots.length === 1 && roots[0].shape.count > 0) return roots;
    return roots.filter(({ shape }) => shape.count > 0);
  }

  /** Elements of the result, where it is one array of floats. */
  get elements(): number {
    const [{ shape }] = this.roots;
    return this.isWhole(shape.count) ? shape.count : 0;
  }

  /** Where a result of this many words is put together that comes in parts. */
  room(words: number): Float32Array {
    const into = this.isWhole(words) ? this.into?.[0] : undefined;
    return (into as Float32Array | undefined) ?? new Float32Array(words);
  }

  /** Whether a result of this many words is what the caller gets, as it lies. */
  isWhole(words: number): boolean {
    const [{ shape, dtype }] = this.roots;
    return this.method === READ && dtype === FLOATS && shape.count === words;
  }
}

/** Takes what was given as `into`; throws unless it can hold the results. */
export function takeInto(reading: Reading, { into, label }: Terms): void {
  if (into === undefined) return;
  const { method, roots } = reading;
  const about = subject(method.name, label);
  if (method === READ) {
    checkInto(about, into, receiver("into", roots[0]));
    reading.into = [into as Result];
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
  reading.into = targets;
}

/** Resolves a call with its results: the run of words from word `offset` on. */
export function deliverReading(
  call: Call,
  results: Results,
  offset: number,
): void {
  const { method, roots, into, elements } = call.reading!;
  // What was put together of parts is no result by itself, unless it is whole.
  const made = elements > 0 ? call.begun : undefined;
  let words = 0;
  try {
    if (method === READ) {
      words = roots[0].shape.count;
      const array = filled(results, offset, roots[0], into?.[0] ?? made);
      return array ? call.resolve(array) : call.reject(lostInto(about(call)));
    }
    const arrays = new Array<Result>(roots.length);
    let at = offset;
    for (let i = 0; i < roots.length; i += 1) {
      words = roots[i].shape.count;
      const array = filled(results, at, roots[i], into?.[i] ?? made);
      if (array === undefined) return call.reject(lostInto(about(call)));
      arrays[i] = array;
      at += aligned(words);
    }
    call.resolve(arrays);
  } catch (error) {
    call.reject(noMemory(about(call), words, error));
  }
}

/** Resolves a call with a result that was put together in its room. */
export function finishReading(call: Call, result: Result): void {
  if (call.reading!.isWhole(result.length)) call.resolve(result);
  else deliverReading(call, new Results(result as Memory), 0);
}

/** The answer where no tensor holds anything. */
export function emptyReading({
  method,
  roots,
  into,
}: Reading): Result | Result[] {
  const arrays = roots.map(
    ({ dtype }, i) =>
      into?.[i] ??
      (dtype === FLOATS ? new Float32Array(0) : new Uint32Array(0)),
  );
  return method === READ ? arrays[0] : arrays;
}

/** The array of a result, a new one without a target; undefined where the target shrank. */
function filled(
  results: Results,
  offset: number,
  { shape: { count }, dtype }: Root,
  target: Result | undefined,
): Result | undefined {
  if (target === undefined) {
    if (dtype === FLOATS) return results.floatsAt(offset, count);
    return new Uint32Array(results.bytesAt(offset, count).buffer);
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
