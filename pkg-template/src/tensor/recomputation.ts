// How a computed tensor is computed again on another device.
//
// A record of the computation has nodes of its own, of the storages of its operands:
// tensors that nobody holds any more are collected, whatever was computed from them. When
// records are used is told in `stored-calls.ts`.

import type { Operands } from "../calls/operands.js";
import { Node } from "./node.js";
import type { TensorStorage } from "./storage.js";

/** Calls that one after another lead to a tensor at most, for it to be computed again. */
export const MOST_CALLS = 32;

/** What a tensor was computed from. */
export interface Origin {
  readonly operands: readonly TensorStorage[];
  /** Calls that one after another led to the tensor. */
  readonly depth: number;
}

/** What is remembered of a computed tensor. */
export interface Recomputation extends Origin {
  /** The operands of the call that computes the tensor again. */
  readonly again: (target: TensorStorage) => Operands;
}

/** A chain that was recorded, and can be computed again. */
export interface Recording extends Origin {
  readonly root: Node;
}

/** The nodes of records. A tensor is not gone when one of these is collected. */
const copied = new WeakSet<Node>();

/** Whether a node is a record's own, and not that of a tensor. */
export function isOfRecord(node: Node): boolean {
  return copied.has(node);
}

/** The record of a chain; undefined where it could not be computed again. */
export function recordingOf(root: Node): Recording | undefined {
  const operands: TensorStorage[] = [];
  const copies = new Map<Node, Node>();
  let depth = 0;
  const copy = (node: Node): Node => {
    const known = copies.get(node);
    if (known !== undefined) return known;
    const { code, attributes, shape, dtype, storage, value } = node;
    if (storage !== undefined) {
      operands.push(storage);
      depth = Math.max(depth, storage.depth);
    }
    const own = new Node(
      code,
      node.operands.map(copy),
      attributes,
      shape,
      dtype,
      storage,
      value,
    );
    copies.set(node, own);
    if (storage !== undefined) copied.add(own);
    return own;
  };
  const own = copy(root);
  if (depth >= MOST_CALLS) return undefined;
  return { root: own, operands, depth: depth + 1 };
}

/** Whether all operands are what they were, as far as the page knows. */
export function isRepeatable({ operands }: Origin): boolean {
  return operands.every(
    ({ dropped, failure, depth }) =>
      !dropped && failure === undefined && depth < MOST_CALLS,
  );
}
