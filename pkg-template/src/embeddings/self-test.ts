// The self-test of a model whose matrices the device keeps in fewer bits than its files have: a
// few texts pass the encoder in both, stage by stage as weights arrive.
//
// What stages compute and which texts pass is said by the WebAssembly. The page and the device
// have the whole weights of a stage until it was computed, and no longer.

import { type CallMethod, Operands } from "../calls/operands.js";
import { checked, forget } from "../core/core.js";
import type { Arena } from "../memory/arena.js";
import { aligned } from "../memory/arrays.js";
import type { Calls } from "../session/calls.js";
import { PACKED, RESIDENT } from "../tensor/codes.js";
import { input, type Node } from "../tensor/node.js";
import { TensorStorage } from "../tensor/storage.js";
import { widen } from "./half-floats.js";
import type { ModelEncoder } from "./wasm-instance.js";
import type { Memory } from "./weights.js";

const VERIFY: CallMethod = {
  ...{ name: "verify", gives: "float32", width: 1, option: undefined },
};

/** The stages that begin a pass, by their numbers; the layers come behind. */
const Stage = { tables: 0, rows: 1, layers: 2 } as const;

/** The tables that a model may have. */
const Table = { words: 0, positions: 1, types: 2 } as const;

type Floats = Float32Array<ArrayBuffer>;
/** Of converted folders no test hears: the bits of their model are gone. */
type Unconverted = Exclude<Memory, Uint32Array>;

/** The vectors of a text's tokens, by the matrices as they are kept and by those of the files. */
interface Pair {
  readonly kept: Floats;
  readonly whole: Floats;
}

/** The test of one model, while its weights arrive. */
export class SelfTest {
  private readonly nodes: Node[] = [];
  /** The floats of weights that are kept in fewer bits, until their stage is computed. */
  private readonly whole = new Map<number, Floats>();
  /** Rows of the tables: of each text's tokens, of their positions if these have one, of the first type. */
  private readonly rows: Floats[][] = [];
  /** The weights that are tables. */
  private readonly tables: number;
  private readonly last: number;
  /** The number of the next stage; none is computed before a weight has lost bits. */
  private next: number = Stage.tables;
  private pairs: Pair[] = [];
  /** The kind of the first weight that lost bits. */
  private cut: string | undefined;
  private readonly structures: number[] = [];

  constructor(
    private readonly calls: Calls,
    private readonly encoder: ModelEncoder,
    /** The tokens of the texts. */
    private readonly texts: readonly Uint32Array[],
    private readonly signal: AbortSignal,
    /** Resolves when the session takes calls; rejects when it has ended, or with the signal. */
    private readonly hasRoom: () => Promise<void>,
    /** Whether it ends with the tokens' vectors: of a reranker's one number there is no cosine. */
    isReranker: boolean,
  ) {
    // Some models have nothing but tables before their layers.
    const before = encoder.stage(Stage.tables).length;
    this.tables = before - encoder.stage(Stage.rows).length;
    const { layers } = encoder.config;
    this.last = Stage.layers + layers - (isReranker ? 1 : 0);
  }

  /** A weight is going to the device, whose 16-bit floats are `dtype` where it has any. */
  arrived(at: number, node: Node, dtype: string): void {
    const memory = node.storage!.data!.memory as Unconverted;
    this.nodes[at] = node;
    if (at < this.tables) this.rows[at] = this.rowsOf(at, node, memory, dtype);
    const isCut = node.storage!.home !== RESIDENT;
    if (!isCut || memory instanceof Uint16Array) return;
    this.whole.set(at, memory);
  }

  /** Computes the stages whose weights are there. */
  async advance(): Promise<void> {
    if (this.cut === undefined) {
      const at = [...this.whole.keys()].find((at) => this.isCut(at));
      if (at === undefined) return;
      this.cut = nameOf(this.nodes[at]);
    }
    while (this.next <= this.last && this.isThere(this.next)) {
      this.pairs =
        this.next === Stage.tables
          ? await this.begin()
          : await this.pass(this.next, this.pairs);
      this.next = Math.max(this.next + 1, Stage.layers);
    }
  }

  /**
   * The least cosine of the texts' vectors, once all weights are there: 1 where none lost bits.
   * Throws `unsupported` where it is too small.
   */
  finish(): number {
    if (this.cut === undefined) return 1;
    const cosines = this.pairs.map(({ kept, whole }) => cosine(kept, whole));
    const least = Math.min(1, ...cosines);
    this.encoder.checkFidelity(this.cut, least);
    return least;
  }

  /** Gives up what the test made of its own. */
  free(): void {
    const { core } = this.calls;
    if (core !== undefined) forget(core, this.structures);
  }

  /** Whether a weight that may have lost bits has, now that it is on the device. */
  private isCut(at: number): boolean {
    return this.nodes[at].storage!.home !== RESIDENT;
  }

  private isThere(stage: number): boolean {
    const places = [...this.encoder.stage(stage)];
    return places.every((at) => this.nodes[at] !== undefined);
  }

  private rowsOf(at: number, node: Node, memory: Unconverted, dtype: string) {
    const [, width] = node.shape.dims;
    const { firstPosition, hasPositions } = this.encoder.config;
    const kind = at === 0 || hasPositions ? at : Table.types;
    const row = (number: number, to: Floats, place: number): void => {
      const from = number * width;
      if (memory instanceof Float32Array) {
        to.set(memory.subarray(from, from + width), place * width);
        return;
      }
      const halves = memory.slice(from, from + width);
      widen(dtype, new Uint8Array(halves.buffer), to, place * width);
    };
    return this.texts.map((ids) => {
      const count = kind === Table.types ? 1 : ids.length;
      const rows = new Float32Array(count * width);
      for (let i = 0; i < count; i += 1) {
        row([ids[i], firstPosition + i, 0][kind], rows, i);
      }
      return rows;
    });
  }

  /** What goes to the first layer. */
  private begin(): Promise<Pair[]> {
    return this.compute([Stage.tables, Stage.rows], (text) => ({
      kept: [this.texts[text]],
      whole: this.rows.map((rows) => rows[text]),
    }));
  }

  private pass(stage: number, pairs: readonly Pair[]): Promise<Pair[]> {
    return this.compute([stage, stage], (text) => ({
      kept: [pairs[text].kept],
      whole: [pairs[text].whole],
    }));
  }

  /** Computes a stage of all texts in both storages, of what is given there. */
  private async compute(
    [ofKept, ofWhole]: readonly [number, number],
    given: (text: number) => Record<keyof Pair, readonly Given[]>,
  ): Promise<Pair[]> {
    await this.hasRoom();
    const { texts, nodes } = this;
    const { residents } = this.calls;
    const kept = this.weightsOf(ofKept, false);
    const whole = this.weightsOf(ofWhole, true);
    const own = whole.filter((node) => !nodes.includes(node));
    try {
      for (const node of own) residents.makeResident(node);
      const answers = texts.map(async ({ length }, text) => {
        const data = given(text);
        const pair = [
          this.take(ofKept, length, data.kept, kept),
          this.take(ofWhole, length, data.whole, whole),
        ];
        const [first, second] = await Promise.all(pair);
        return { kept: first, whole: second };
      });
      return await Promise.all(answers);
    } finally {
      for (const { storage } of own) residents.drop(storage!);
      for (const at of this.encoder.stage(ofKept)) this.whole.delete(at);
    }
  }

  private take(
    stage: number,
    tokens: number,
    given: readonly Given[],
    nodes: readonly Node[],
  ): Promise<Floats> {
    const { calls, encoder, signal } = this;
    const { layers, dimensions, staged } = encoder.config;
    const isVector = stage === Stage.layers + layers;
    const operands = new StageOperands(calls, given, {
      ...{ tokens, nodes },
      floats: isVector ? dimensions : tokens * staged,
      numbers: [...encoder.numbers()],
      structure: this.structure(stage, tokens, nodes),
    });
    // At once, and without the calls of others.
    return calls.take<Floats>(operands, { priority: "high", signal });
  }

  private weightsOf(stage: number, isWhole: boolean): Node[] {
    return [...this.encoder.stage(stage)].map((at) => {
      const node = this.nodes[at];
      const memory = isWhole && this.isCut(at) && this.whole.get(at);
      if (!memory) return node;
      const { length } = memory;
      const span = { memory, start: 0, words: length };
      const { label } = node.storage!;
      return input(
        node.shape,
        new TensorStorage(span, length, RESIDENT, undefined, true, label),
      );
    });
  }

  private structure(
    stage: number,
    tokens: number,
    nodes: readonly Node[],
  ): number {
    const homes = Uint32Array.from(nodes, ({ storage }) => storage!.home);
    const core = this.calls.core!;
    const words = this.encoder.stageChain(stage, tokens, homes);
    const number = checked(core, core.chain(words));
    this.structures.push(number);
    return number;
  }
}

/** What comes with a call: ids, or floats. */
type Given = Uint32Array | Floats;

/** What is computed of what comes with a call. */
interface StageWork {
  readonly tokens: number;
  readonly floats: number;
  readonly nodes: readonly Node[];
  readonly numbers: readonly number[];
  /** The core's number of the stage's chain. */
  readonly structure: number;
}

/** The operands of one stage of a pass over a text. */
class StageOperands extends Operands {
  readonly isEmpty = false;

  constructor(
    private readonly calls: Calls,
    private readonly given: readonly Given[],
    private readonly work: StageWork,
  ) {
    super(VERIFY);
  }

  get rows(): number {
    return this.work.tokens;
  }

  get elements(): number {
    return this.work.floats;
  }

  override pin(): void {
    for (const { storage } of this.work.nodes) storage!.pins += 1;
  }

  write(arena: Arena): number {
    const { nodes, numbers, structure } = this.work;
    const lengths = this.given.map(({ length }) => aligned(length));
    const values = lengths.reduce((sum, length) => sum + length, 0);
    const names = values + aligned(numbers.length);
    const at = arena.reserve(names + aligned(nodes.length));
    let place = at;
    this.given.forEach((data, i) => {
      // The bits of ids are copied as those of floats are.
      if (data instanceof Uint32Array) arena.words.set(data, place);
      else arena.put(data, place);
      place += lengths[i];
    });
    arena.putNumbers(numbers, numbers.length, at + values);
    nodes.forEach(({ storage }, i) => {
      arena.putTensor(storage!.number, at + names + i);
    });
    return structure;
  }

  override unpin(): void {
    for (const { storage } of this.work.nodes) {
      this.calls.residents.unpin(storage!);
    }
  }
}

function nameOf({ storage }: Node): string {
  const kinds = Object.entries(PACKED);
  return kinds.find(([, home]) => home === storage!.home)![0];
}

/** 1 for two vectors that are 0, NaN for what is no number. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let [products, ofA, ofB] = [0, 0, 0];
  a.forEach((x, i) => {
    products += x * b[i];
    ofA += x * x;
    ofB += b[i] * b[i];
  });
  return ofA === 0 && ofB === 0 ? 1 : products / Math.sqrt(ofA * ofB);
}
