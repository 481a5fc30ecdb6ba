// What a function of tensors recorded when it was called with stand-ins: nodes that are computed
// from its parameters, and from nothing else but numbers and tensors that it holds on to.
//
// A trace is of parameters of certain kinds and shapes. It has no arguments: what it gives for
// some is `application.ts`.

import { FramebatchError, invalid } from "../checks/errors.js";
import * as arithmetic from "../tensor/arithmetic.js";
import { FORGOTTEN, type Known } from "../tensor/chain-structures.js";
import { CODE, FLOATS, MAX_DEPTH, RESIDENT } from "../tensor/codes.js";
import * as movement from "../tensor/data-movement.js";
import { constant, input, Node, operation } from "../tensor/node.js";
import * as reductions from "../tensor/reductions.js";
import { isSame } from "../tensor/shape.js";
import { TensorStorage, UNKNOWN } from "../tensor/storage.js";
import type { Argument } from "./arguments.js";

/** What a parameter is: as much of an argument as traces depend on. */
export type Kind = Pick<Argument, "code" | "dtype" | "shape">;

/** A parameter, while the function is traced: an input without data, or a number that is not known. */
export function parameterLike(
  name: string,
  { code, dtype, shape }: Kind,
): Node {
  if (code === CODE.constant) return constant(NaN, dtype);
  const largest = dtype === FLOATS ? undefined : UNKNOWN;
  const data = { memory: new Float32Array(0), start: 0, words: 0 };
  const storage = new TensorStorage(
    data,
    shape.count,
    RESIDENT,
    largest,
    true,
    name,
  );
  storage.failure = tracingError(name);
  return input(shape, storage, dtype);
}

/** The error of whatever would need the values of parameters. */
export const tracingError = (name: string): FramebatchError =>
  invalid(
    name,
    "the tensors that a traced function is given have no values to read; record operations of them, and return the result",
  );

/** Operations of other entries than tensors', by the attributes that their nodes share. */
export const recordedAgain = new WeakMap<
  readonly number[],
  (operands: readonly Node[]) => Node
>();

/** One result of a trace. */
export class TracedResult {
  /** What is read, in the order in which chains are written: parameters by number, or inputs. */
  readonly inputs: (number | Node)[] = [];
  /** The numbers, likewise. */
  readonly numbers: (number | Node)[] = [];
  /** The inputs among them that are no parameters. */
  readonly captured: Node[] = [];
  private readonly layouts: { homes: readonly number[]; known: Known }[] = [];

  constructor(
    readonly root: Node,
    parameters: readonly Node[],
  ) {
    const places = new Map(parameters.map((node, at) => [node, at]));
    walk(root, new Set(), (node) => {
      const source = places.get(node) ?? node;
      if (node.code === CODE.constant) this.numbers.push(source);
      if (node.code !== CODE.input) return;
      this.inputs.push(source);
      if (source === node) this.captured.push(node);
    });
  }

  /** The structure of the result where its inputs have these homes, if it was asked for before. */
  structure(homes: readonly number[]): Known | undefined {
    const { layouts } = this;
    for (let at = 0; at < layouts.length; at += 1) {
      const { known, homes: own } = layouts[at];
      if (known.number !== FORGOTTEN && isSame(own, homes)) return known;
    }
    return undefined;
  }

  /** Keeps a structure for {@link structure}. */
  keep(homes: readonly number[], known: Known): void {
    const { layouts } = this;
    const old = layouts.findIndex(({ homes: own }) => isSame(own, homes));
    if (old >= 0) layouts.splice(old, 1);
    else if (layouts.length === MOST_LAYOUTS) layouts.shift();
    layouts.push({ homes: [...homes], known });
  }
}

/** Combinations of inputs on the device and with the call that are kept. */
const MOST_LAYOUTS = 8;

/** What a function recorded for parameters of certain kinds and shapes. */
export class Trace {
  readonly results: readonly TracedResult[];

  constructor(
    readonly parameters: readonly Node[],
    roots: readonly Node[],
    /** Where the results go: in a list, under names, or undefined for one alone. */
    readonly names: readonly string[] | "list" | undefined,
    /** Whether other sizes may lead to something else. */
    readonly isSized: boolean,
  ) {
    this.results = roots.map((root) => new TracedResult(root, parameters));
  }

  /** Whether this is the trace for arguments. */
  suits(given: readonly Argument[]): boolean {
    const { parameters } = this;
    if (parameters.length !== given.length) return false;
    for (let at = 0; at < given.length; at += 1) {
      const [{ code, dtype, shape }, own] = [given[at], parameters[at]];
      const isNumber = code === CODE.constant;
      if (isNumber !== (own.code === CODE.constant)) return false;
      if (dtype !== own.dtype) return false;
      if (shape !== own.shape && !isSame(shape.dims, own.shape.dims))
        return false;
    }
    return true;
  }

  /** The same trace for arguments of other sizes. Throws where these do not fit. */
  resized(name: string, given: readonly Kind[]): Trace {
    const parameters = given.map((kind) => parameterLike(name, kind));
    const roots = replaced(this, parameters, again);
    return new Trace(parameters, roots, this.names, false);
  }

  /** A result's node, computed from these nodes. */
  expanded(at: number, nodes: readonly Node[]): Node {
    const { parameters } = this;
    const results = [this.results[at]];
    return replaced({ parameters, results }, nodes, likeBefore)[0];
  }
}

/** Whether what computes these nodes may be another for parameters of other sizes. */
export function dependOnSizes(roots: readonly Node[]): boolean {
  const seen = new Set<Node>();
  let isSized = false;
  for (const root of roots) {
    walk(root, seen, ({ code, attributes }) => {
      isSized ||= SIZED.has(code);
      isSized ||= code === CODE.call && !recordedAgain.has(attributes);
    });
  }
  return isSized;
}

/** The ops whose attributes follow from sizes. */
const SIZED = new Set<number>([CODE.slice, CODE.reshape, CODE.attention]);

type Recording = (node: Node, operands: readonly Node[]) => Node;

// Ranges, shapes and epsilons of other ops than those of `SIZED` are the same for all sizes.
const again: Recording = (node, operands) => {
  const { code, attributes } = node;
  const [x, y, z] = operands;
  const [first, second, ...rest] = attributes;
  switch (code) {
    case CODE.unary:
      return arithmetic.unary(first, x);
    case CODE.binary:
      return arithmetic.binary(first, x, y);
    case CODE.where:
      return arithmetic.where(x, y, z);
    case CODE.clamp:
      return arithmetic.clamp(x, y, z);
    case CODE.dot:
      return arithmetic.dot(x, y);
    case CODE.matmul:
      return arithmetic.matmul(x, y);
    case CODE.reduce:
      return reductions.reduce(first, x, {
        axis: rest,
        keepDims: second === 1,
      });
    case CODE.norm:
      return operation(code, operands, attributes, x.shape, FLOATS);
    case CODE.transpose:
      return movement.transpose(x, attributes);
    case CODE.gather:
      return movement.gather(x, y, first);
    case CODE.concat:
      return movement.concat(operands, first);
    default:
      return recordedAgain.get(attributes)!(operands);
  }
};

const likeBefore: Recording = ({ code, attributes, shape, dtype }, operands) =>
  operation(code, operands, attributes, shape, dtype);

/** The roots of a trace with other nodes in the places of its parameters. */
function replaced(
  {
    parameters,
    results,
  }: { parameters: readonly Node[]; results: readonly { root: Node }[] },
  nodes: readonly Node[],
  record: Recording,
): Node[] {
  const made = new Map(parameters.map((node, at) => [node, nodes[at]]));
  const seen = new Set<Node>(parameters);
  for (const { root } of results) {
    walk(root, seen, (node) => {
      const isSame = node.operands.every((own) => made.get(own) === own);
      const operands = node.operands.map((own) => made.get(own)!);
      made.set(node, isSame ? node : record(node, operands));
    });
  }
  return results.map(({ root }) => made.get(root)!);
}

/** Visits nodes behind their operands, each once, in the order in which chains are written. */
function walk(
  root: Node,
  seen: Set<Node>,
  visit: (node: Node) => void,
  depth = 0,
): void {
  if (seen.has(root)) return;
  // A bound of the depth bounds the stack.
  if (depth >= MAX_DEPTH) {
    throw invalid(
      "fn",
      `a chain is at most ${MAX_DEPTH} operations deep; trace less`,
    );
  }
  seen.add(root);
  for (const operand of root.operands) walk(operand, seen, visit, depth + 1);
  visit(root);
}
