// Encodes chains as words, by which the core recognizes equal structures.
//
// `[nodes, outputs]`, then for each node `op | operands << 8 | attributes << 16`, its
// operands and its attributes, then the outputs; `src/graph/chain/wire.rs` reads them.
// An output that a tensor takes is `node | target + 1 << 16`, where the target is the node
// of that tensor; with {@link PART} the output fills a part of the tensor.
// Neither data nor numbers are among the words: both come with each call.

import { invalid } from "../checks/errors.js";
import { CODE, MAX_DEPTH, MAX_NODES, WITH_CALL } from "./codes.js";
import type { Node } from "./node.js";
import type { TensorStorage } from "./storage.js";

/** Said of an output that fills a part of its target. */
const PART = 1 << 15;

/** The tensors that take the results of a chain. */
export interface Targets {
  /** An input for each result. */
  readonly nodes: readonly Node[];
  /** Elements in front of the result in its target; undefined where a result fills all of it. */
  readonly offset: number | undefined;
}

/** Encodes the chains of one session, one after the other, in memory that is kept. */
export class ChainEncoder {
  words = new Uint32Array(256);
  /** Words in use. */
  length = 0;
  /** The inputs in order, as many as {@link inputs} says. */
  readonly inputNodes: (Node | undefined)[] = [];
  inputs = 0;
  /** The first of these inputs, as many as are read; the others are targets alone. */
  operands = 0;
  /** The numbers in order, as many as {@link numbers} says. */
  readonly constants: Node[] = [];
  numbers = 0;

  /**
   * The index of the next chain's first node. Indexes only grow: a node whose index is
   * smaller is not in this chain yet, and no index need be taken back.
   */
  private base = 0;
  private nodes = 0;

  /** Encodes the chain that computes these nodes. Throws for one that is too long. */
  encode(
    op: string,
    roots: readonly Node[],
    targets: Targets | undefined,
  ): void {
    this.clear();
    if (roots.length > MAX_NODES) {
      throw invalid(
        op,
        `a chain has at most ${MAX_NODES} results; read some of them first`,
      );
    }
    for (let i = 0; i < roots.length; i += 1) this.visit(op, roots[i], 0);
    this.operands = this.inputs;
    if (targets !== undefined) {
      for (const target of targets.nodes) this.visit(op, target, 0);
    }
    this.reserve(roots.length);
    for (let i = 0; i < roots.length; i += 1) {
      this.words[this.length++] =
        (roots[i].index - this.base) | this.placeOf(targets, i);
    }
    this.words[0] = this.nodes;
    this.words[1] = roots.length;
  }

  /** The storage of an input. */
  storage(at: number): TensorStorage {
    return this.inputNodes[at]!.storage!;
  }

  /** Forgets the chain, so that its nodes can be collected. */
  clear(): void {
    for (let i = 0; i < this.inputs; i += 1) this.inputNodes[i] = undefined;
    this.inputs = 0;
    this.numbers = 0;
    this.base += this.nodes;
    this.nodes = 0;
    this.length = 2;
  }

  // What the word of an output says of the output's target.
  private placeOf(targets: Targets | undefined, at: number): number {
    if (targets === undefined) return 0;
    const { nodes, offset } = targets;
    const part = offset === undefined ? 0 : PART;
    return ((nodes[at].index - this.base + 1) << 16) | part;
  }

  private visit(op: string, node: Node, depth: number): void {
    if (node.index >= this.base) return;
    // A bound of the depth bounds the stack.
    if (depth >= MAX_DEPTH) {
      throw invalid(
        op,
        `a chain is at most ${MAX_DEPTH} operations deep; read an intermediate result`,
      );
    }
    const { operands } = node;
    for (let i = 0; i < operands.length; i += 1) {
      this.visit(op, operands[i], depth + 1);
    }
    if (this.nodes >= MAX_NODES) throw tooLong(op);
    node.index = this.base + this.nodes;
    this.nodes += 1;
    this.write(node);
  }

  private write(node: Node): void {
    const { code, operands, attributes } = node;
    // An input's attributes are two words and its dimensions, at most eight.
    this.reserve(11 + operands.length + attributes.length);
    if (code === CODE.input) return this.writeInput(node);
    const { words } = this;
    let at = this.length;
    words[at++] = code | (operands.length << 8) | (attributes.length << 16);
    for (let i = 0; i < operands.length; i += 1) {
      words[at++] = operands[i].index - this.base;
    }
    for (let i = 0; i < attributes.length; i += 1) {
      words[at++] = attributes[i];
    }
    this.length = at;
    if (code === CODE.constant) this.constants[this.numbers++] = node;
  }

  private writeInput(node: Node): void {
    const { words } = this;
    const { dims } = node.shape;
    let at = this.length;
    words[at++] = CODE.input | ((2 + dims.length) << 16);
    words[at++] = node.dtype;
    words[at++] = node.storage!.isResident ? node.storage!.home : WITH_CALL;
    for (let i = 0; i < dims.length; i += 1) words[at++] = dims[i];
    this.length = at;
    this.inputNodes[this.inputs++] = node;
  }

  private reserve(words: number): void {
    if (this.length + words <= this.words.length) return;
    const longer = new Uint32Array(2 * this.words.length + words);
    longer.set(this.words);
    this.words = longer;
  }
}

function tooLong(op: string): Error {
  return invalid(
    op,
    `a chain has at most ${MAX_NODES} nodes; read an intermediate result`,
  );
}
