// The operands of a sampling of clips: its layers, and how these lie at the cursor.
//
// Rows come first (a time for each layer, then weights and wrap modes as far as these
// differ from row to row), then the header, then the numbers of the tensors;
// `src/graph/sampling.rs` describes the same for the core. What may be wrong with a call
// is found in `clip.ts` and `layers.ts`.

import type { Answer, Call } from "../calls/call.js";
import type { CheckedOptions } from "../calls/call-options.js";
import { type CallMethod, Operands } from "../calls/operands.js";
import { checkInto } from "../checks/arrays.js";
import { type Arena } from "../memory/arena.js";
import { aligned } from "../memory/arrays.js";
import type { Results } from "../memory/results.js";
import type { Node } from "../tensor/node.js";
import type { ResidentTensors } from "../tensor/resident-tensors.js";
import type { TensorStorage } from "../tensor/storage.js";
import { StoredResults } from "../tensor/stored-results.js";
import { copyOf } from "./arrays.js";
import type { StoreRange, ClipStore } from "./store.js";
import type { Encoded } from "./tracks.js";

/** Wrap modes by number. */
export const WRAPS = ["clamp", "loop", "ping-pong"] as const;

/** Words of a header, and of each of its layers. */
export const HEADER = 4;
export const LAYER = 4;
const WEIGHTS = 0x10000;
const MODES = 0x20000;

/** A clip among those of a sampling. */
export interface SampledLayer {
  readonly clip: Encoded;
  readonly range: StoreRange;
  /** One for each row, or for the only one. */
  times: number | Float32Array;
  /** One for all rows, or one each. */
  weight: number | Float32Array;
  /** The number of a wrap mode for all rows, or one each. */
  wrap: number | Uint8Array;
  readonly isAdditive: boolean;
}

/** A tensor that takes the result instead of the caller. */
export interface Target {
  readonly node: Node;
  /** The float of the tensor where the result begins. */
  readonly offset: number;
  readonly residents: ResidentTensors;
}

const FLOATS = { gives: "float32", width: 1, option: undefined } as const;

/** The method of a sampling of one clip. */
export const SAMPLE: CallMethod = { name: "sample", ...FLOATS };
/** The method of a sampling whose result goes to a tensor. */
export const SAMPLE_TO: CallMethod = { name: "sampleTo", ...FLOATS };
/** The method of a blend of several layers. */
export const BLEND: CallMethod = { name: "blend", ...FLOATS };
/** The method of a blend whose result goes to a tensor. */
export const BLEND_TO: CallMethod = { name: "blendTo", ...FLOATS };

/** The layers of one sampling, and the tensor that takes its result, if any. */
export class SampleOperands extends Operands {
  readonly rows: number;
  private readonly results: StoredResults | undefined;

  constructor(
    method: CallMethod,
    private readonly store: ClipStore,
    private readonly layers: readonly SampledLayer[],
    private readonly target: Target | undefined,
  ) {
    super(method);
    const { times } = layers[0];
    this.rows = typeof times === "number" ? 1 : times.length;
    if (target !== undefined) {
      const storages = [target.node.storage!];
      this.results = new StoredResults(target.residents, storages, "given");
    }
  }

  get isEmpty(): boolean {
    return this.rows === 0;
  }

  get elements(): number {
    return this.target === undefined ? this.rows * this.width : 0;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    this.results?.called();
    const into = terms?.into;
    if (into === undefined) return;
    const type = "Float32Array";
    checkInto(about, into, { name: "into", type, length: this.elements });
  }

  override copy(about: string): void {
    for (const layer of this.layers) {
      const { times, weight } = layer;
      if (typeof times !== "number") layer.times = copyOf(about, times);
      if (typeof weight !== "number") layer.weight = copyOf(about, weight);
    }
  }

  override pin(): void {
    if (this.target !== undefined) this.target.node.storage!.pins += 1;
  }

  override unpin(): void {
    this.target?.residents.unpin(this.target.node.storage!);
  }

  override answer(
    call: Call,
    results: Results,
    offset: number,
    words: number,
  ): Answer {
    if (this.results === undefined) {
      return super.answer(call, results, offset, words);
    }
    this.results.stored([]);
    return undefined;
  }

  override rejected(reason: unknown): void {
    this.results?.rejected(reason);
  }

  write(arena: Arena): number {
    const { store, layers, rows, target } = this;
    if (store.failure !== undefined) throw store.failure;
    // The tensor becomes resident before anything is written, because that may move the cursor.
    const storage = this.residentTarget();
    const { lanes } = layers[0].clip;
    const columns = columnsOf(layers);
    const { fields } = columns;
    const id = store.structure(
      layers.length,
      lanes,
      this.width,
      fields,
      target !== undefined,
    );
    const header = aligned(rows * fields);
    const names = header + HEADER + LAYER * layers.length;
    const at = arena.reserve(names + 4);
    this.writeRows(arena, at, columns);
    const { words } = arena;
    const flags =
      (columns.hasWeights ? WEIGHTS : 0) | (columns.hasModes ? MODES : 0);
    let word = at + header;
    words[word++] = lanes;
    words[word++] = layers.length | flags;
    words[word++] = target === undefined ? 0 : target.offset;
    words[word++] = this.width;
    for (let k = 0; k < layers.length; k += 1) {
      const { range, wrap, isAdditive, weight } = layers[k];
      words[word++] = range.at;
      words[word++] = typeof wrap === "number" ? wrap : 0;
      words[word++] = isAdditive ? 1 : 0;
      words[word++] = bitsOf(typeof weight === "number" ? weight : 1);
    }
    arena.putTensor(store.number, word++);
    if (storage === undefined) words[word] = 0;
    else arena.putTensor(storage.number, word);
    this.results?.entered();
    return id;
  }

  private get width(): number {
    return this.layers[0].clip.width;
  }

  private residentTarget(): TensorStorage | undefined {
    const { target } = this;
    if (target === undefined) return undefined;
    const storage = target.node.storage!;
    if (storage.failure !== undefined) {
      // A lost tensor is there again once all of it is written.
      const isWhole = this.rows * this.width === storage.words;
      if (!isWhole) throw storage.failure;
      storage.expect();
    }
    target.residents.makeResident(target.node);
    return storage;
  }

  private writeRows(
    arena: Arena,
    at: number,
    { fields, hasWeights, hasModes }: Columns,
  ): void {
    const { layers, rows } = this;
    const { times } = layers[0];
    if (fields === 1) {
      // Most calls have one column, of times.
      if (typeof times === "number") arena.putNumber(times, at);
      else arena.put(times, at);
      return;
    }
    const { buffer } = arena.words;
    const floats = new Float32Array(buffer, at * 4, rows * fields);
    const words = new Uint32Array(buffer, at * 4, rows * fields);
    layers.forEach(({ times, weight, wrap }, k) => {
      spread(floats, times, k, fields);
      if (hasWeights) spread(floats, weight, layers.length + k, fields);
      if (hasModes) spread(words, wrap, fields - layers.length + k, fields);
    });
  }
}

/** What the rows of a sampling hold beside the times of its layers. */
interface Columns {
  readonly hasWeights: boolean;
  readonly hasModes: boolean;
  /** Words of a row. */
  readonly fields: number;
}

function columnsOf(layers: readonly SampledLayer[]): Columns {
  const hasWeights = layers.some(({ weight }) => typeof weight !== "number");
  const hasModes = layers.some(({ wrap }) => typeof wrap !== "number");
  const columns = 1 + (hasWeights ? 1 : 0) + (hasModes ? 1 : 0);
  return { hasWeights, hasModes, fields: layers.length * columns };
}

/** Writes a column of rows. */
function spread(
  to: Float32Array | Uint32Array,
  column: number | Float32Array | Uint8Array,
  at: number,
  fields: number,
): void {
  for (let i = at, row = 0; i < to.length; i += fields, row += 1) {
    to[i] = typeof column === "number" ? column : column[row];
  }
}

/** The bits of a weight of 1. */
export const ONE = 0x3f80_0000;

const scratch = new Float32Array(1);
const bits = new Uint32Array(scratch.buffer);

function bitsOf(float: number): number {
  scratch[0] = float;
  return bits[0];
}
