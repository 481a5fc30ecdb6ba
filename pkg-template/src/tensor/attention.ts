// Records attention: its rules of shape, and what is wrong.
//
// The rules are those of `src/graph/chain/attention.rs`. Nothing is computed here.

import { invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import { notFloats } from "./arithmetic.js";
import { CODE, FLOATS, MAX_HEAD, MAX_RANK } from "./codes.js";
import { constant, type Node, operation } from "./node.js";
import { broadcast, mismatch, shapeOf, stackOf, text } from "./shape.js";

/** What `attention` takes beside keys and values. */
export interface AttentionOptions {
  /** How many heads share a row; each has as many of its floats, 1 to 512. */
  heads: number;
  /** What products of queries and keys are multiplied with. Default: 1 / √(floats of a head). */
  scale?: number;
  /**
   * Whether a query looks at no keys behind its own: the last query has the last key, and
   * so on back. Default: false.
   */
  causal?: boolean;
  /**
   * How far from its own key a query looks at keys, on both sides; its own is that of `causal`.
   * 0 is its own alone. Default: however far.
   */
  window?: number;
}

const OP = "attention";
const NAMES: Record<keyof AttentionOptions, true> = {
  heads: true,
  scale: true,
  causal: true,
  window: true,
};

/** The farthest that a window reaches: no tensor has so many keys. */
const MAX_WINDOW = 2 ** 30;

/** Heads of all matrices of a stack. */
const MAX_HEADS = 2 ** 24;

/** softmax(q kᵀ · scale) v, for each head its own floats of every row. */
export function attention(
  q: Node,
  k: Node,
  v: Node,
  options: AttentionOptions,
): Node {
  for (const { dtype, shape } of [q, k, v]) {
    if (dtype !== FLOATS) throw notFloats(OP);
    if (shape.dims.length >= 2 && shape.dims.length < MAX_RANK) continue;
    throw invalid(
      OP,
      `shape ${text(shape.dims)} must have 2 to 7 dimensions, the last two rows and floats`,
    );
  }
  const { heads, scale, causal, window } = checked(options);
  const [rows, width] = q.shape.dims.slice(-2);
  const [keys, widthOfKeys] = k.shape.dims.slice(-2);
  if (v.shape.dims.at(-1) !== widthOfKeys) {
    throw mismatch(OP, k.shape, v.shape, "must agree in the last dimension");
  }
  if (v.shape.dims.at(-2) !== keys) {
    throw mismatch(
      OP,
      k.shape,
      v.shape,
      "must agree in the dimension before the last: a value for each key",
    );
  }
  const size = width / heads;
  if (!Number.isInteger(size) || size < 1 || size > MAX_HEAD) {
    throw invalid(
      OP,
      `rows of shape ${text(q.shape.dims)} are not ${heads} heads of 1 to ${MAX_HEAD} floats`,
    );
  }
  const headsOfKeys = widthOfKeys / size;
  const isShared = Number.isInteger(headsOfKeys) && headsOfKeys > 0;
  if (!isShared || heads % headsOfKeys !== 0) {
    throw mismatch(
      OP,
      q.shape,
      k.shape,
      "do not suit: keys have as many heads as queries, or a number that divides it",
    );
  }
  if (keys === 0) {
    throw mismatch(OP, q.shape, k.shape, "leave the queries no keys");
  }
  if ((causal || window !== undefined) && rows > keys) {
    throw mismatch(
      OP,
      q.shape,
      k.shape,
      "have more queries than keys, so that the first of them would see none; leave causal and window out",
    );
  }
  let stack = broadcast(OP, stackOf(q.shape), stackOf(k.shape));
  stack = broadcast(OP, stack, stackOf(v.shape));
  if (stack.count * heads > MAX_HEADS) {
    throw mismatch(OP, q.shape, k.shape, "give more than 2^24 heads");
  }
  const shape = shapeOf(OP, [...stack.dims, rows, width]);
  const operands = [q, k, v, constant(scale ?? 1 / Math.sqrt(size))];
  const attributes = [heads, causal ? 1 : 0];
  if (window !== undefined) attributes.push(Math.min(window, MAX_WINDOW));
  return operation(CODE.attention, operands, attributes, shape, FLOATS);
}

function checked(options: AttentionOptions): AttentionOptions {
  checkOptions(OP, options, NAMES);
  const { heads, scale, causal, window } = options;
  if (!Number.isInteger(heads) || heads < 1) {
    throw invalid(OP, `heads must be a whole number from 1, got ${heads}`);
  }
  if (scale !== undefined && typeof scale !== "number") {
    throw invalid(OP, `scale must be a number, got ${kindOf(scale)}`);
  }
  if (causal !== undefined && typeof causal !== "boolean") {
    throw invalid(OP, `causal must be true or false, got ${kindOf(causal)}`);
  }
  if (window !== undefined && !(Number.isInteger(window) && window >= 0)) {
    throw invalid(OP, `window must be a whole number from 0, got ${window}`);
  }
  return options;
}
