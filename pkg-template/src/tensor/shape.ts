// Shapes of tensors: dimensions, broadcasting, axes.
//
// Numbers only, row-major, NumPy's rules. The messages are those of the core, which
// has the same rules in `src/graph/shape.rs`.

import { type FramebatchError, invalid } from "../checks/errors.js";
import { MAX_ELEMENTS, MAX_RANK } from "./codes.js";

/** Dimensions, outermost first. Never changed, so nodes share them. */
export interface Shape {
  readonly dims: readonly number[];
  /** Elements of a tensor of this shape. */
  readonly count: number;
}

/** The shape of one value. */
export const SCALAR: Shape = { dims: [], count: 1 };

/** A shape of these dimensions, for `op`. The array must not change any more. */
export function shapeOf(op: string, dims: readonly number[]): Shape {
  if (dims.length > MAX_RANK) {
    throw invalid(op, `a tensor has at most 8 dimensions, not ${dims.length}`);
  }
  let count = 1;
  // Strides are products too, so dimensions of 0 hide nothing.
  let span = 1;
  for (const dim of dims) {
    if (!Number.isInteger(dim) || dim < 0) {
      throw invalid(
        op,
        `dimensions must be whole numbers from 0, got ${text(dims)}`,
      );
    }
    count *= dim;
    span *= dim || 1;
  }
  if (span > MAX_ELEMENTS) {
    throw invalid(
      op,
      `a tensor has at most 2^30 elements; ${text(dims)} has more`,
    );
  }
  return { dims, count };
}

/** The shape that two shapes broadcast to: aligned at their last dimensions, equal or 1. */
export function broadcast(op: string, a: Shape, b: Shape): Shape {
  if (b === SCALAR || a === b || isSame(a.dims, b.dims)) return a;
  const rank = Math.max(a.dims.length, b.dims.length);
  const dims: number[] = [];
  let span = 1;
  for (let axis = 0; axis < rank; axis += 1) {
    const ofA = fromEnd(a.dims, rank, axis);
    const ofB = fromEnd(b.dims, rank, axis);
    if (ofA !== ofB && ofA !== 1 && ofB !== 1) {
      throw mismatch(op, a, b, "do not broadcast");
    }
    const dim = ofA === 1 ? ofB : ofA;
    dims.push(dim);
    span *= dim || 1;
  }
  if (span > MAX_ELEMENTS) {
    throw mismatch(op, a, b, "broadcast to more than 2^30 elements");
  }
  // A number beside a tensor, or a row beside rows, is the usual case.
  if (isSame(dims, a.dims)) return a;
  if (isSame(dims, b.dims)) return b;
  return shapeOf(op, dims);
}

/** The axes in front of rows and columns. */
export const stackOf = ({ dims }: Shape): Shape =>
  shapeOf("", dims.slice(0, -2));

/** An axis counted from the front; negative ones count from the end. */
export function axisOf(op: string, shape: Shape, axis: number): number {
  const rank = shape.dims.length;
  const counted = axis < 0 ? axis + rank : axis;
  if (Number.isInteger(axis) && counted >= 0 && counted < rank) return counted;
  throw invalid(op, `axis ${axis} is outside of shape ${text(shape.dims)}`);
}

/** The error for two shapes that do not suit each other. */
export function mismatch(
  op: string,
  a: Shape,
  b: Shape,
  problem: string,
): FramebatchError {
  return invalid(op, `shapes ${text(a.dims)} and ${text(b.dims)} ${problem}`);
}

/** Dimensions as people write them: `[3, 4]`. */
export function text(dims: readonly number[]): string {
  return `[${dims.join(", ")}]`;
}

/** Whether two lists of dimensions are equal. */
export function isSame(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return false;
  return true;
}

function fromEnd(dims: readonly number[], rank: number, axis: number): number {
  const own = axis + dims.length - rank;
  return own < 0 ? 1 : dims[own];
}
