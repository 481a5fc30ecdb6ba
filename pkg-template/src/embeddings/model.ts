// A model on the device: its weights, and the structures of its forward passes.
//
// Each length of text has a structure, and all of these share every kernel. A model stays
// on the device until it is disposed of and the last call that reads it is answered.

import { endedError } from "../calls/call-errors.js";
import { FramebatchError } from "../checks/errors.js";
import { checked, forget } from "../core/core.js";
import type { Arena } from "../memory/arena.js";
import { aligned } from "../memory/arrays.js";
import type { Calls } from "../session/calls.js";
import { PACKED } from "../tensor/codes.js";
import type { StorageType } from "../tensor/input.js";
import type { Node } from "../tensor/node.js";
import type { TensorStorage } from "../tensor/storage.js";
import type { Config } from "./config.js";
import type { ModelEncoder } from "./wasm-instance.js";

/** Lengths whose structures are kept. */
const LENGTHS = 256;

const NAMES = Object.entries(PACKED);

/** An encoder and its weights. */
export class Model {
  /** Pending calls of the model. */
  private pins = 0;
  private isDropped = false;
  /** Why no more calls can be made of it: the WebAssembly of its encoder trapped. */
  private ended: FramebatchError | undefined;
  private readonly weights: readonly TensorStorage[];
  private readonly homes: Uint32Array;
  private readonly numbers: readonly number[];
  /** The core's numbers of structures by length, the most recently used last. */
  private readonly structures = new Map<number, number>();

  constructor(
    private readonly calls: Calls,
    readonly config: Config,
    private readonly encoder: ModelEncoder,
    /** The nodes of the weights, kept so that they are not collected. */
    readonly nodes: readonly Node[],
  ) {
    this.weights = nodes.map(({ storage }) => storage!);
    this.homes = Uint32Array.from(this.weights, ({ home }) => home);
    this.numbers = [...encoder.numbers()];
    encoder.ended = (error) => {
      this.ended = error;
      this.drop();
    };
  }

  /** How the device keeps the matrices. */
  get dtype(): Exclude<StorageType, "auto"> | "mixed" {
    const matrices = this.nodes.filter(({ shape }) => shape.dims.length > 1);
    const homes = new Set(matrices.map(({ storage }) => storage!.home));
    if (homes.size > 1) return "mixed";
    const found = NAMES.find(([, home]) => homes.has(home));
    return found === undefined ? "f32" : (found[0] as keyof typeof PACKED);
  }

  /** Writes the operands of a text with these tokens; returns the number of its structure. */
  write(about: string, ids: Uint32Array, arena: Arena): number {
    const { weights, numbers } = this;
    for (const { failure } of weights) if (failure !== undefined) throw failure;
    const structure = this.structure(about, ids.length);
    const values = aligned(ids.length);
    const names = values + aligned(numbers.length);
    const at = arena.reserve(names + aligned(weights.length));
    arena.putNumbers(numbers, numbers.length, at + values);
    const { words } = arena;
    words.set(ids, at);
    for (let i = 0; i < weights.length; i += 1) {
      words[at + names + i] = weights[i].number;
    }
    return structure;
  }

  /** A call of the model was made. */
  pin(): void {
    this.pins += 1;
  }

  /** A call of the model was answered. */
  unpin(): void {
    this.pins -= 1;
    if (this.isDropped && this.pins === 0) this.free();
  }

  /** Frees the model once its pending calls are answered. Returns whether it was not dropped before. */
  drop(): boolean {
    if (this.isDropped) return false;
    this.isDropped = true;
    if (this.pins === 0) this.free();
    return true;
  }

  /** Throws unless the model takes calls. */
  refuseIfOver(about: string): void {
    const { ended } = this.calls;
    const end = ended ?? this.ended;
    if (end !== undefined) throw endedError(about, end);
    if (!this.isDropped) return;
    throw new FramebatchError(
      "disposed",
      `${about}: the embedder is disposed; make it anew`,
    );
  }

  private structure(about: string, tokens: number): number {
    const { structures } = this;
    const core = this.calls.core!;
    let number = structures.get(tokens);
    if (number === undefined) {
      const words = this.encoder.forward(about, tokens, this.homes);
      number = checked(core, core.chain(words));
      if (structures.size === LENGTHS) {
        const [[oldest, dropped]] = structures;
        structures.delete(oldest);
        forget(core, [dropped]);
      }
    } else structures.delete(tokens);
    structures.set(tokens, number);
    return number;
  }

  private free(): void {
    const { calls } = this;
    for (const storage of this.weights) calls.residents.drop(storage);
    const numbers = [...this.structures.values()];
    this.structures.clear();
    this.encoder.free();
    try {
      // A session that has ended has no structures any more.
      if (calls.core !== undefined) forget(calls.core, numbers);
    } catch (thrown) {
      calls.fail("embedder", thrown);
    }
  }
}
