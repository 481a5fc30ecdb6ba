// The graph of what was recorded: a node for each tensor and each number.
//
// All nodes are of one class with the same fields, so that walking a graph stays fast.
// Nodes have no method and no memory of a device: data is in a `TensorStorage`.

import { CODE, FLOATS, INDEXES, type INTEGERS } from "./codes.js";
import { SCALAR, type Shape } from "./shape.js";
import type { TensorStorage } from "./storage.js";

/** The type of a node's elements. */
export type DType = typeof FLOATS | typeof INDEXES | typeof INTEGERS;

const NOTHING: readonly never[] = [];

/** One value of a chain. */
export class Node {
  /** The node's index in the chain that was encoded last, counted on from all chains before. */
  index = -1;

  constructor(
    readonly code: number,
    readonly operands: readonly Node[],
    /** Parameters of the op beside its operands, as on the wire. */
    readonly attributes: readonly number[],
    readonly shape: Shape,
    readonly dtype: DType,
    /** The storage of an input; undefined for other nodes. */
    readonly storage: TensorStorage | undefined,
    /** The number of a constant; 0 for other nodes. */
    readonly value: number,
  ) {}
}

/** A tensor of data: of floats or of indexes, by its storage, unless said. */
export function input(
  shape: Shape,
  storage: TensorStorage,
  dtype: DType = storage.largest === undefined ? FLOATS : INDEXES,
): Node {
  return new Node(CODE.input, NOTHING, NOTHING, shape, dtype, storage, 0);
}

/** A number, which travels with the call: as a float, or as the whole number that it is. */
export function constant(value: number, dtype: DType = FLOATS): Node {
  return new Node(
    CODE.constant,
    NOTHING,
    NOTHING,
    SCALAR,
    dtype,
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
