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
import { CODE, FLOATS, PACKED, RESIDENT } from "../tensor/codes.js";
import type { StorageType } from "../tensor/input.js";
import type { Node } from "../tensor/node.js";
import type { Origin } from "../tensor/recomputation.js";
import type { TensorStorage } from "../tensor/storage.js";
import type { Config } from "./config.js";
import type { ModelEncoder } from "./wasm-instance.js";

/** Lengths whose structures are kept. */
const LENGTHS = 256;

const NAMES = Object.entries(PACKED);

/** What products of matrices are computed in. */
export type Arithmetic = "f32" | "f16";

/** What a chain takes besides ids, or where its vector goes: types, or to a tensor. */
type Form = "plain" | "typed" | "stored";

/** The weights of a model on the device. */
export interface LoadedWeights {
  /** The nodes of the weights, in the encoder's order, kept so that they are not collected. */
  readonly nodes: readonly Node[];
  /** Those of them that may be kept in fewer bits. */
  readonly matrices: readonly Node[];
  /** The least cosine of the self-test; undefined where there was none. */
  readonly fidelity: number | undefined;
  /** Texts' vectors before the folder was converted, in place of a self-test. */
  readonly references: readonly Reference[];
  /** The type of a converted folder's blocks; undefined for any other. */
  readonly blocks: keyof typeof PACKED | undefined;
}

/** The tokens of a text, and the vector that it had. */
export interface Reference {
  readonly ids: Uint32Array;
  readonly vector: Float32Array;
}

/** An encoder and its weights. */
export class Model {
  /** Pending calls of the model. */
  private pins = 0;
  private isDropped = false;
  private ownArithmetic: Arithmetic = "f32";
  /** Why no more calls can be made of it: the WebAssembly of its encoder trapped. */
  private ended: FramebatchError | undefined;
  private readonly nodes: LoadedWeights["nodes"];
  private readonly matrices: LoadedWeights["matrices"];
  /** How near vectors come to those of the files' own bits; undefined where nothing says. */
  fidelity: LoadedWeights["fidelity"];
  private readonly weights: readonly TensorStorage[];
  /** What a vector is computed from, by one call. */
  readonly origin: Origin;
  private readonly homes: Uint32Array;
  private readonly numbers: readonly number[];
  /** The core's numbers of structures by form and length; the most recently used last. */
  private readonly structures = new Map<string, number>();

  constructor(
    readonly calls: Calls,
    private readonly encoder: ModelEncoder,
    /** What it is for, in messages. */
    private readonly what: "embedder" | "reranker",
    { nodes, matrices, fidelity }: LoadedWeights,
  ) {
    this.nodes = nodes;
    this.matrices = matrices;
    this.fidelity = fidelity;
    this.weights = nodes.map(({ storage }) => storage!);
    this.origin = { operands: this.weights, depth: 1 };
    this.homes = Uint32Array.from(this.weights, ({ home }) => home);
    this.numbers = [...encoder.numbers()];
    encoder.ended = (error) => {
      this.ended = error;
      this.drop();
    };
  }

  /** What the folder says. */
  get config(): Config {
    return this.encoder.config;
  }

  /** How the device keeps the matrices. */
  get dtype(): Exclude<StorageType, "auto"> | "mixed" {
    const homes = new Set(this.matrices.map(({ storage }) => storage!.home));
    if (homes.size > 1) return "mixed";
    const found = NAMES.find(([, home]) => homes.has(home));
    return found === undefined ? "f32" : (found[0] as keyof typeof PACKED);
  }

  /**
   * Writes the operands of a text with these tokens, whose vector goes to `target` if there is
   * one; returns the number of its structure. `types` has the type of each token, or nothing where
   * all have the first.
   */
  write(
    about: string,
    ids: Uint32Array,
    types: Uint32Array,
    arena: Arena,
    target: Node | undefined,
  ): number {
    const { weights, numbers } = this;
    for (const { failure } of weights) if (failure !== undefined) throw failure;
    const isStored = target !== undefined;
    // Before anything is written, because uploads may move the cursor.
    if (isStored) this.calls.residents.makeResident(target, this.nodes);
    const form = types.length > 0 ? "typed" : isStored ? "stored" : "plain";
    const structure = this.structure(about, form, ids.length);
    const typed = aligned(ids.length);
    const values = typed + aligned(types.length);
    const names = values + aligned(numbers.length);
    const named = weights.length + (isStored ? 1 : 0);
    // Behind the names of what is stored to lies the offset in that, which is 0.
    const at = arena.reserve(names + aligned(isStored ? named + 1 : named));
    arena.putNumbers(numbers, numbers.length, at + values);
    const { words } = arena;
    words.set(ids, at);
    words.set(types, at + typed);
    for (let i = 0; i < weights.length; i += 1) {
      arena.putTensor(weights[i].number, at + names + i);
    }
    if (isStored) {
      arena.putTensor(target.storage!.number, at + names + weights.length);
      words[at + names + named] = 0;
    }
    return structure;
  }

  /** What products of matrices are computed in. */
  get arithmetic(): Arithmetic {
    return this.ownArithmetic;
  }

  /** Has products of calls that are made from now on computed so. */
  computeIn(arithmetic: Arithmetic): void {
    if (arithmetic === this.ownArithmetic) return;
    this.encoder.computeIn(arithmetic);
    this.ownArithmetic = arithmetic;
    this.forgetStructures();
  }

  /** Throws where 16-bit arithmetic does not suit the model, whose vectors have this cosine in it. */
  checkArithmetic(cosine: number): void {
    this.encoder.checkArithmetic(cosine);
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
      `${about}: the ${this.what} is disposed; make it anew`,
    );
  }

  private structure(about: string, form: Form, length: number): number {
    const { structures } = this;
    const core = this.calls.core!;
    const key = form + length;
    let number = structures.get(key);
    if (number === undefined) {
      const chain = this.encoder.forward(
        about,
        length,
        form === "typed",
        this.homes,
      );
      const words =
        form === "stored" ? storing(chain, this.config.dimensions) : chain;
      number = checked(core, core.chain(words));
      if (structures.size === LENGTHS) {
        const [[oldest, dropped]] = structures;
        structures.delete(oldest);
        forget(core, [dropped]);
      }
    } else structures.delete(key);
    structures.set(key, number);
    return number;
  }

  private free(): void {
    for (const storage of this.weights) this.calls.residents.drop(storage);
    this.encoder.free();
    this.forgetStructures();
  }

  private forgetStructures(): void {
    const { calls } = this;
    const numbers = [...this.structures.values()];
    this.structures.clear();
    try {
      // A session that has ended has no structures any more.
      if (calls.core !== undefined) forget(calls.core, numbers);
    } catch (thrown) {
      calls.fail(this.what, thrown);
    }
  }
}

/** The same chain of one result, which a tensor of so many floats takes: its last input. */
function storing(chain: Uint32Array, floats: number): Uint32Array {
  const [nodes] = chain;
  const end = chain.length - 1;
  const words = new Uint32Array(end + 5);
  words.set(chain);
  words[0] = nodes + 1;
  const result = chain[end] | ((nodes + 1) << 16);
  words.set([CODE.input | (3 << 16), FLOATS, RESIDENT, floats, result], end);
  return words;
}
