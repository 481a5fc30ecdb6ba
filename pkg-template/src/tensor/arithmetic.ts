// Records the operations that compute element by element, and products: their rules of
// shape, and what is wrong.
//
// Each takes nodes and gives a node, or throws a sentence that names the op and the
// shapes. The rules are those of `src/graph/chain/shape_inference.rs`. Nothing is computed here.

import { invalid } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import { BINARY, CODE, FLOATS, MAX_RANK, UNARY } from "./codes.js";
import { type Node, operation } from "./node.js";
import {
  broadcast,
  isSame,
  mismatch,
  shapeOf,
  stackOf,
  text,
} from "./shape.js";

/** Names of the functions of one value, by number. */
export const UNARY_NAMES = Object.keys(UNARY);
const BINARY_NAMES = Object.keys(BINARY);
const GELU_NAMES = { approximate: true };

/** One list for each number, so that nodes need none of their own. */
const JUST: readonly (readonly number[])[] = UNARY_NAMES.map((_, i) => [i]);
const NOTHING: readonly number[] = [];
/** The number of the precision of products, 32-bit floats. */
const IN_F32: readonly number[] = [0];

/** A function of each element. */
export function unary(fn: number, x: Node): Node {
  if (x.dtype !== FLOATS) throw notFloats(UNARY_NAMES[fn]);
  return operation(CODE.unary, [x], JUST[fn], x.shape, FLOATS);
}

/** The number of the function that `gelu` is asked for: exact, or by tanh. */
export function geluOf(options: { approximate?: "tanh" } = {}): number {
  checkOptions("gelu", options, GELU_NAMES);
  const { approximate } = options;
  if (approximate === undefined) return UNARY.gelu;
  if (approximate === "tanh") return UNARY.geluTanh;
  throw invalid(
    "gelu",
    `approximate must be 'tanh' or left out, got '${approximate as string}'`,
  );
}

/** A function of elements that broadcasting brings together. */
export function binary(fn: number, a: Node, b: Node): Node {
  const op = BINARY_NAMES[fn];
  if (a.dtype !== FLOATS || b.dtype !== FLOATS) throw notFloats(op);
  const shape = broadcast(op, a.shape, b.shape);
  return operation(CODE.binary, [a, b], JUST[fn], shape, FLOATS);
}

/** The elements of `a` where a condition is true, those of `b` elsewhere; all broadcast. */
export function where(condition: Node, a: Node, b: Node): Node {
  const operands = [condition, a, b];
  if (operands.some(({ dtype }) => dtype !== FLOATS)) throw notFloats("where");
  const both = broadcast("where", condition.shape, a.shape);
  const shape = broadcast("where", both, b.shape);
  return operation(CODE.where, operands, NOTHING, shape, FLOATS);
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

/**
 * The product of matrices: the last two axes of each; those in front broadcast. A vector
 * is one row on the left and one column on the right, for which the result has no axis.
 */
export function matmul(a: Node, b: Node): Node {
  if (a.dtype !== FLOATS || b.dtype !== FLOATS) throw notFloats("matmul");
  const left = a.shape.dims;
  const right = b.shape.dims;
  if (!isFactor(left) || !isFactor(right)) {
    throw mismatch(
      "matmul",
      a.shape,
      b.shape,
      "must have 1 to 7 dimensions each; multiply by a number with mul",
    );
  }
  if (left[left.length - 1] !== right[Math.max(right.length - 2, 0)]) {
    throw mismatch(
      "matmul",
      a.shape,
      b.shape,
      right.length === 1
        ? "must agree in their last dimensions"
        : "must agree in the last dimension of the first and the one before the last of the second",
    );
  }
  const stacked =
    left.length <= 2 && right.length <= 2
      ? NOTHING
      : broadcast("matmul", stackOf(a.shape), stackOf(b.shape)).dims;
  const rows = left.slice(-2, -1);
  const columns = right.length > 1 ? right.slice(-1) : NOTHING;
  const shape = shapeOf("matmul", [...stacked, ...rows, ...columns]);
  return operation(CODE.matmul, [a, b], IN_F32, shape, FLOATS);
}

const isFactor = ({ length }: readonly number[]): boolean =>
  length >= 1 && length < MAX_RANK;

export function notFloats(op: string): Error {
  return invalid(op, "an operand must hold floats, not whole numbers");
}
