// The data of a tensor: where it comes from, and what the device has of it.
//
// A record without a device and without a node: the node of a tensor may be collected
// while this is still needed, to release memory or to answer a pending call.

import { isDetached } from "../check.js";
import { FramebatchError, invalid, kindOf, subject } from "../errors.js";
import { type Shape, shapeOf, text } from "./shape.js";

/** What a tensor may be made of. */
export type TensorData =
  Float32Array | Uint32Array | Int32Array | NestedNumbers;

/** Numbers, or rows of numbers, or rows of rows. */
export type NestedNumbers = readonly number[] | readonly NestedNumbers[];

/** Words from which on data lies on the device at once, and is not copied. */
export const LARGE = 16_384;

/** The core's number of a tensor that lies nowhere yet. */
export const NOWHERE = -1;

/** The data of one tensor. */
export class Leaf {
  /** The core's number of it, or {@link NOWHERE}. */
  number = NOWHERE;
  /** Calls that took the data along. */
  uses = 0;
  /** Calls that still need it. */
  pins = 0;
  /** Disposed of, or collected. */
  dropped = false;
  /** Why the device has it no more. */
  failure: FramebatchError | undefined;
  /** The largest of its indexes. */
  readonly largest: number | undefined;
  readonly words: number;
  readonly isIndexes: boolean;

  constructor(
    /** Undefined once the device alone has it. */
    public source: Float32Array | Uint32Array | undefined,
    readonly keep: boolean,
    readonly label: string | undefined,
  ) {
    this.words = source!.length;
    this.isIndexes = source instanceof Uint32Array;
    if (this.isIndexes) this.largest = largestOf(source!);
  }

  /** Whether its next call finds it on the device. Data used twice is used often. */
  get isResident(): boolean {
    if (this.number !== NOWHERE) return true;
    return this.words > 0 && (this.words >= LARGE || this.uses > 0);
  }
}

/** Data and its shape, once both are looked at. */
export interface Intake {
  readonly source: Float32Array | Uint32Array;
  readonly shape: Shape;
}

/**
 * Checks data against a shape. Short data is copied, so that the caller may change
 * its array; long typed arrays are not.
 */
export function takeIn(
  about: string,
  data: TensorData,
  dims: readonly number[] | undefined,
): Intake {
  const given = ArrayBuffer.isView(data)
    ? { source: wordsOf(about, data), dims: [data.length] }
    : numbersOf(about, data);
  if (dims !== undefined && !Array.isArray(dims)) {
    throw invalid(
      about,
      `shape must be an array of numbers, got ${kindOf(dims)}`,
    );
  }
  const shape = shapeOf(about, dims === undefined ? given.dims : [...dims]);
  const { source } = given;
  if (shape.count === source.length) return { source, shape };
  throw invalid(
    about,
    `data has ${source.length} elements, but shape ${text(shape.dims)} holds ${shape.count}; give as many as the shape holds`,
  );
}

function wordsOf(
  about: string,
  data: Float32Array | Uint32Array | Int32Array,
): Float32Array | Uint32Array {
  if (isDetached(data)) {
    throw invalid(
      about,
      "data is detached (its buffer was transferred); give an array that still has its memory",
    );
  }
  // By name: an array made in another realm (an iframe) has that realm's class.
  const name = data[Symbol.toStringTag];
  if (name === "Float32Array") return ownOf(Float32Array, data);
  if (name === "Int32Array") refuseNegative(about, data as Int32Array);
  else if (name !== "Uint32Array") throw wrongData(about, data);
  return ownOf(Uint32Array, data);
}

/** A copy of short data, or a view of the same memory. */
function ownOf<Own>(
  Own: {
    new (data: ArrayLike<number>): Own;
    new (memory: ArrayBufferLike, offset: number, length: number): Own;
  },
  data: Float32Array | Uint32Array | Int32Array,
): Own {
  const { buffer, byteOffset, length } = data;
  return length < LARGE ? new Own(data) : new Own(buffer, byteOffset, length);
}

function refuseNegative(about: string, data: Int32Array): void {
  const at = data.findIndex((index) => index < 0);
  if (at < 0) return;
  throw invalid(
    about,
    `data has ${data[at]} at place ${at}, but whole numbers are places, from 0; give a Float32Array to compute with it`,
  );
}

function numbersOf(
  about: string,
  data: unknown,
): { source: Float32Array; dims: number[] } {
  if (!Array.isArray(data)) throw wrongData(about, data);
  const dims: number[] = [];
  for (let row: unknown = data; Array.isArray(row); row = row[0]) {
    dims.push(row.length);
  }
  const numbers: number[] = [];
  flatten(about, data, dims, 0, numbers);
  return { source: new Float32Array(numbers), dims };
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
    `data must be a Float32Array, a Uint32Array, an Int32Array or an array of numbers, got ${kindOf(data)}`,
  );
}

function largestOf(words: Float32Array | Uint32Array): number {
  let largest = -1;
  for (let i = 0; i < words.length; i += 1) {
    if (words[i] > largest) largest = words[i];
  }
  return largest;
}

/** The error of whatever is asked of a tensor that was disposed of. */
export function disposedError(
  about: string,
  label: string | undefined,
): FramebatchError {
  return new FramebatchError(
    "disposed",
    `${about}: ${subject("the tensor", label)} is disposed; make it anew`,
  );
}
