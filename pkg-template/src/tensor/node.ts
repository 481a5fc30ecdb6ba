// What was asked, as plain objects: one for each tensor, and for each number.
//
// All nodes are of one class with the same fields, so that walking them stays fast.
// They hold no method and no memory of a device: data is in their `TensorStorage`.

import { CODE, FLOATS, INDEXES } from "./codes.js";
import { SCALAR, type Shape } from "./shape.js";
import type { TensorStorage } from "./storage.js";

/** The type of a node's elements. */
export type DType = typeof FLOATS | typeof INDEXES;

const NOTHING: readonly never[] = [];

/** One value of a chain. */
export class Node {
  /** Its number in the chain that was encoded last, counted on from all before. */
  index = -1;

  constructor(
    readonly code: number,
    readonly operands: readonly Node[],
    /** What the op needs to know beside its operands, as it stands on the wire. */
    readonly attributes: readonly number[],
    readonly shape: Shape,
    readonly dtype: DType,
    /** The data of an input. */
    readonly storage: TensorStorage | undefined,
    /** The number that a constant is. */
    readonly value: number,
  ) {}
}

/** A tensor that comes from outside. */
export function input(shape: Shape, storage: TensorStorage): Node {
  const dtype = storage.largest === undefined ? FLOATS : INDEXES;
  return new Node(CODE.input, NOTHING, NOTHING, shape, dtype, storage, 0);
}

/** A number that travels with the call. */
export function constant(value: number): Node {
  return new Node(
    CODE.constant,
    NOTHING,
    NOTHING,
    SCALAR,
    FLOATS,
    undefined,
    value,
  );
}

/** An operation. */
export function operation(
  code: number,
  operands: readonly Node[],
  attributes: readonly number[],
  shape: Shape,
  dtype: DType,
): Node {
  return new Node(code, operands, attributes, shape, dtype, undefined, 0);
}
