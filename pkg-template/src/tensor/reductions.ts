// Records the operations along axes: reductions, and norms, which scale rows by what
// these hold.
//
// Each takes nodes and gives a node, or throws a sentence that names the op and the
// shapes. The rules are those of `src/graph/chain/shape_inference.rs`.

import { invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import { notFloats } from "./arithmetic.js";
import { CODE, FLOATS, INDEXES, NORM, REDUCTION } from "./codes.js";
import { constant, type DType, type Node, operation } from "./node.js";
import { axisOf, type Shape, shapeOf, text } from "./shape.js";

/** The axes that a reduction goes over, and whether they stay. */
export interface ReduceOptions {
  /** One axis or several; negative ones count from the end. Default: all. */
  axis?: number | readonly number[];
  /** Keeps the axes, each with dimension 1. Default: false. */
  keepDims?: boolean;
}

/** An axis, or an axis and an epsilon, which keeps a norm from dividing by zero. */
export type NormOptions = number | { axis?: number; epsilon?: number };

/** Names of reductions and norms, by number. */
export const REDUCTION_NAMES = Object.keys(REDUCTION);
export const NORM_NAMES = Object.keys(NORM);

const REDUCE_NAMES: Record<keyof ReduceOptions, true> = {
  axis: true,
  keepDims: true,
};
const SOFTMAX_NAMES = { axis: true };
const NORM_OPTIONS = { axis: true, epsilon: true };
/** What each norm takes where no epsilon is given; softmax has none. */
const EPSILONS = [undefined, 1e-5, 1e-6, 1e-12];

/** One value for each place outside of the axes. */
export function reduce(
  reduction: number,
  x: Node,
  given: ReduceOptions["axis"] | ReduceOptions,
): Node {
  const op = REDUCTION_NAMES[reduction];
  const isAxis = typeof given !== "object" || Array.isArray(given);
  if (!isAxis) checkOptions(op, given, REDUCE_NAMES);
  const { axis, keepDims = false } = isAxis
    ? { axis: given }
    : (given as ReduceOptions);
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
export function norm(kind: number, x: Node, given: NormOptions = {}): Node {
  const op = NORM_NAMES[kind];
  const usual = EPSILONS[kind];
  const options = typeof given === "number" ? { axis: given } : given;
  checkOptions(op, options, usual === undefined ? SOFTMAX_NAMES : NORM_OPTIONS);
  const { axis = -1, epsilon = usual } = options;
  if (epsilon !== undefined && !(epsilon >= 0)) {
    throw invalid(op, `epsilon must be a number from 0, got ${epsilon}`);
  }
  if (x.dtype !== FLOATS) throw notFloats(op);
  const attributes = [kind, axisOf(op, x.shape, axis)];
  const operands = epsilon === undefined ? [x] : [x, constant(epsilon)];
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
