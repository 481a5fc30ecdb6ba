// Checks the data that a tensor is made of, and copies short data.
//
// A wrong argument is thrown as a sentence. Where data goes afterwards is not decided
// here.

import { allocate, outOfMemory } from "../checks/allocation.js";
import { detached, got, isDetached } from "../checks/arrays.js";
import { invalid, kindOf } from "../checks/errors.js";
import type { Span } from "../memory/arrays.js";
import { SHORT, type Slab } from "../memory/slab.js";
import { FLOATS, INDEXES, INTEGERS } from "./codes.js";
import type { DType } from "./node.js";
import { isSame, type Shape, shapeOf, text } from "./shape.js";
import { FEWER, LARGE } from "./storage.js";

/** What a tensor may be made of. */
export type TensorData =
  Float32Array | Uint32Array | Int32Array | Uint16Array | NestedNumbers;

/** Numbers, or rows of numbers, or rows of rows. */
export type NestedNumbers = readonly number[] | readonly NestedNumbers[];

/** Data that was checked: its words, its shape, and the type of its elements. */
export interface CopiedIn {
  readonly data: Span;
  readonly shape: Shape;
  readonly dtype: DType;
}

/**
 * Checks data against a shape. Short data is copied, so that the caller may change
 * its array; long typed arrays are not. Rows of numbers become elements of `numbersAs`.
 */
export function copyIn(
  slab: Slab,
  about: string,
  data: TensorData,
  dims: readonly number[] | undefined,
  numbersAs: DType = FLOATS,
): CopiedIn {
  if (dims !== undefined && !Array.isArray(dims)) {
    throw invalid(
      about,
      `shape must be an array of numbers, got ${kindOf(dims)}`,
    );
  }
  if (!ArrayBuffer.isView(data)) {
    const { numbers, rows } = numbersOf(about, data);
    const shape = shapeFor(about, dims ?? rows, numbers.length);
    const bytes = numbers.length * 4;
    const given = allocate({ about, bytes, instead: FEWER }, () =>
      arrayOf(numbers, numbersAs),
    );
    const isWhole = numbersAs !== FLOATS;
    if (isWhole && numbers.some((number, at) => number !== given[at])) {
      throw invalid(about, "data must be whole numbers of 32 bits");
    }
    const memory =
      given instanceof Int32Array ? new Uint32Array(given.buffer) : given;
    const words = { memory, start: 0, words: memory.length };
    return { shape, data: words, dtype: numbersAs };
  }
  checkArray(about, data);
  const shape =
    dims === undefined
      ? vectorOf(about, data.length)
      : shapeFor(about, dims, data.length);
  try {
    const dtype = DTYPES[data[Symbol.toStringTag]] ?? FLOATS;
    return { shape, data: dataOf(slab, data), dtype };
  } catch (cause) {
    const { byteLength: bytes } = data;
    throw outOfMemory({ about, bytes, instead: FEWER }, cause);
  }
}

/** The shape of the tensor before, which the next one often has, too. */
let last: Shape = { dims: [0], count: 0 };

function vectorOf(about: string, length: number): Shape {
  if (last.dims.length !== 1 || last.count !== length) {
    last = shapeOf(about, [length]);
  }
  return last;
}

function shapeFor(
  about: string,
  dims: readonly number[],
  length: number,
): Shape {
  if (!isSame(last.dims, dims)) last = shapeOf(about, [...dims]);
  if (last.count === length) return last;
  throw invalid(
    about,
    `data has ${length} elements, but shape ${text(dims)} holds ${last.count}; give as many as the shape holds`,
  );
}

function checkArray(
  about: string,
  data: Exclude<TensorData, NestedNumbers>,
): void {
  if (isDetached(data)) {
    throw invalid(about, detached("data"));
  }
  // Compared by name: an array made in another realm (an iframe) has that realm's class.
  switch (data[Symbol.toStringTag]) {
    case "Float32Array":
    case "Uint32Array":
    case "Int32Array":
    case "Uint16Array":
      return;
  }
  throw wrongData(about, data);
}

const DTYPES: Record<string, DType | undefined> = {
  Uint32Array: INDEXES,
  Int32Array: INTEGERS,
};

function arrayOf(
  numbers: readonly number[],
  dtype: DType,
): Float32Array | Uint32Array | Int32Array {
  if (dtype === FLOATS) return new Float32Array(numbers);
  return dtype === INDEXES ? new Uint32Array(numbers) : new Int32Array(numbers);
}

const CLASSES: Record<string, WordsOf | undefined> = {
  Float32Array,
  Uint16Array,
};
type WordsOf = new (
  buffer: ArrayBufferLike,
  at: number,
  words: number,
) => Span["memory"];

function dataOf(slab: Slab, data: Exclude<TensorData, NestedNumbers>): Span {
  const words = data.length;
  const type = data[Symbol.toStringTag];
  if (type === "Float32Array" && words <= SHORT) {
    return slab.put(data as Float32Array);
  }
  // Short floats do not get here: engines make a small array's buffer only when it is asked for.
  const { buffer, byteOffset } = data;
  // Whole numbers are kept as their bits, whether they have a sign or not.
  const Class = CLASSES[type] ?? Uint32Array;
  const whole = new Class(buffer, byteOffset, words);
  const memory = words < LARGE ? whole.slice() : whole;
  return { memory, start: 0, words };
}

function numbersOf(
  about: string,
  data: unknown,
): { numbers: number[]; rows: number[] } {
  if (!Array.isArray(data)) throw wrongData(about, data);
  const rows: number[] = [];
  for (let row: unknown = data; Array.isArray(row); row = row[0]) {
    rows.push(row.length);
  }
  const numbers: number[] = [];
  flatten(about, data, rows, 0, numbers);
  return { numbers, rows };
}

function flatten(
  about: string,
  row: readonly unknown[],
  dims: readonly number[],
  axis: number,
  into: number[],
): void {
  const isInnermost = axis === dims.length - 1;
  for (const item of row) {
    if (isInnermost && typeof item === "number") into.push(item);
    else if (
      !isInnermost &&
      Array.isArray(item) &&
      item.length === dims[axis + 1]
    ) {
      flatten(about, item, dims, axis + 1, into);
    } else {
      throw invalid(
        about,
        "data must hold numbers, or rows of equal length, throughout",
      );
    }
  }
}

function wrongData(about: string, data: unknown): Error {
  return invalid(
    about,
    `data must be a Float32Array, a Uint32Array, an Int32Array, a Uint16Array or an array of numbers, ${got("Float32Array", "data", data)}`,
  );
}

/** The largest of a tensor's whole numbers, by their bits without a sign; -1 where there is none. */
export function largestOf({ memory, start, words }: Span): number {
  let largest = -1;
  for (let i = start; i < start + words; i += 1) {
    if (memory[i] > largest) largest = memory[i];
  }
  return largest;
}
