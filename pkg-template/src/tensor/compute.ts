// Records the operations that compute: their rules of shape, and what is wrong.
//
// Each takes nodes and gives a node, or throws a sentence that names the op and the
// shapes. The rules are those of `src/graph/chain/infer.rs`. Nothing is computed here.

import { invalid, kindOf } from "../errors.js";
import {
  BINARY,
  CODE,
  FLOATS,
  INDEXES,
  MAX_RANK,
  NORM,
  REDUCTION,
  UNARY,
} from "./codes.js";
import { type DType, type Node, operation } from "./node.js";
import {
  axisOf,
  broadcast,
  isSame,
  mismatch,
  type Shape,
  shapeOf,
  stackOf,
  text,
} from "./shape.js";

/** Which axes a reduction goes over, and whether they stay. */
export interface ReduceOptions {
  /** One axis or several; negative ones count from the end. Default: all. */
  axis?: number | readonly number[];
  /** Keeps the axes, each with dimension 1. Default: false. */
  keepDims?: boolean;
}

/** Names of the functions of one value, by number. */
export const UNARY_NAMES = Object.keys(UNARY);
const BINARY_NAMES = Object.keys(BINARY);
const REDUCTION_NAMES = Object.keys(REDUCTION);
const NORM_NAMES = Object.keys(NORM);

/** One list for each number, so that nodes need none of their own. */
const JUST: readonly (readonly number[])[] = UNARY_NAMES.map((_, i) => [i]);
const NOTHING: readonly number[] = [];

/** A function of each element. */
export function unary(fn: number, x: Node): Node {
  if (x.dtype !== FLOATS) throw notFloats(UNARY_NAMES[fn]);
  return operation(CODE.unary, [x], JUST[fn], x.shape, FLOATS);
}

/** A function of elements that broadcasting brings together. */
export function binary(fn: number, a: Node, b: Node): Node {
  const op = BINARY_NAMES[fn];
  if (a.dtype !== FLOATS || b.dtype !== FLOATS) throw notFloats(op);
  const shape = broadcast(op, a.shape, b.shape);
  return operation(CODE.binary, [a, b], JUST[fn], shape, FLOATS);
}

/** minimum(maximum(x, low), high), in the shape of x. */
export function clamp(x: Node, low: Node, high: Node): Node {
  for (const { dtype } of [x, low, high]) {
    if (dtype !== FLOATS) throw notFloats("clamp");
  }
  for (const bound of [low, high]) {
    const shape = broadcast("clamp", x.shape, bound.shape);
    if (isSame(shape.dims, x.shape.dims)) continue;
    throw invalid(
      "clamp",
      `shape ${text(bound.shape.dims)} does not broadcast to ${text(x.shape.dims)}`,
    );
  }
  return operation(CODE.clamp, [x, low, high], NOTHING, x.shape, FLOATS);
}

/** The sum of products along the last axis. */
export function dot(a: Node, b: Node): Node {
  if (a.dtype !== FLOATS || b.dtype !== FLOATS) throw notFloats("dot");
  const { shape: ofA } = a;
  const { dims } = broadcast("dot", ofA, b.shape);
  if (dims.length === 0) {
    throw mismatch("dot", ofA, b.shape, "have no axis to sum along");
  }
  const shape = shapeOf("dot", dims.slice(0, -1));
  return operation(CODE.dot, [a, b], NOTHING, shape, FLOATS);
}

/** The product of matrices: the last two axes of each; those in front broadcast. */
export function matmul(a: Node, b: Node): Node {
  if (a.dtype !== FLOATS || b.dtype !== FLOATS) throw notFloats("matmul");
  const [left, right] = [a.shape.dims, b.shape.dims];
  const suits = (rank: number): boolean => rank >= 2 && rank < MAX_RANK;
  if (!suits(left.length) || !suits(right.length)) {
    throw mismatch(
      "matmul",
      a.shape,
      b.shape,
      "must have 2 to 7 dimensions each; reshape a vector to [1, n] or [n, 1]",
    );
  }
  if (left[left.length - 1] !== right[right.length - 2]) {
    throw mismatch(
      "matmul",
      a.shape,
      b.shape,
      "must agree in the last dimension of the first and the one before the last of the second",
    );
  }
  const dims = [
    ...broadcast("matmul", stackOf(a.shape), stackOf(b.shape)).dims,
    left[left.length - 2],
    right[right.length - 1],
  ];
  return operation(
    CODE.matmul,
    [a, b],
    NOTHING,
    shapeOf("matmul", dims),
    FLOATS,
  );
}

/** One value for each place outside of the axes. */
export function reduce(
  reduction: number,
  x: Node,
  { axis, keepDims = false }: ReduceOptions,
): Node {
  const op = REDUCTION_NAMES[reduction];
  if (x.dtype !== FLOATS) throw notFloats(op);
  if (typeof keepDims !== "boolean") {
    throw invalid(
      op,
      `keepDims must be true or false, got ${kindOf(keepDims)}`,
    );
  }
  const { dims } = x.shape;
  const axes = axis === undefined ? dims.map((_, i) => i) : axesOf(op, x, axis);
  if (reduction !== REDUCTION.sum && axes.some((axis) => dims[axis] === 0)) {
    throw invalid(
      op,
      `shape ${text(dims)} holds nothing along an axis that is reduced`,
    );
  }
  const shape = shapeOf(op, without(dims, axes, keepDims));
  const dtype: DType = reduction === REDUCTION.argmax ? INDEXES : FLOATS;
  const attributes = [reduction, keepDims ? 1 : 0, ...axes];
  return operation(CODE.reduce, [x], attributes, shape, dtype);
}

/** Each row along an axis scaled by what it holds; softmax has no epsilon. */
export function norm(
  kind: number,
  x: Node,
  axis: number,
  epsilon: Node | undefined,
): Node {
  const op = NORM_NAMES[kind];
  if (x.dtype !== FLOATS) throw notFloats(op);
  const attributes = [kind, axisOf(op, x.shape, axis)];
  const operands = epsilon === undefined ? [x] : [x, epsilon];
  return operation(CODE.norm, operands, attributes, x.shape, FLOATS);
}

function axesOf(
  op: string,
  { shape }: Node,
  axis: number | readonly number[],
): number[] {
  const given = typeof axis === "number" ? [axis] : axis;
  if (!Array.isArray(given)) {
    throw invalid(
      op,
      `axis must be a number or an array of numbers, got ${kindOf(axis)}`,
    );
  }
  const axes = given.map((axis) => axisOf(op, shape, axis));
  axes.sort((a, b) => a - b);
  if (axes.some((axis, i) => axis === axes[i - 1])) {
    throw invalid(op, "an axis is named twice");
  }
  return axes;
}

function without(
  dims: readonly number[],
  axes: readonly number[],
  keep: boolean,
): Shape["dims"] {
  return keep
    ? dims.map((dim, axis) => (axes.includes(axis) ? 1 : dim))
    : dims.filter((_, axis) => !axes.includes(axis));
}

export function notFloats(op: string): Error {
  return invalid(op, "an operand must hold floats, not indexes");
}
