// The operands of an insertion: vectors of a tensor that a device page takes, or whose places
// there are cleared, and how these lie at the cursor.
//
// For each vector come its row in the source, its place in the page, and its id + 1; then the
// numbers of the source and of the page. `src/graph/insertion.rs` describes the same for the
// core.

import { type CallMethod, Operands } from "../calls/operands.js";
import type { Arena } from "../memory/arena.js";
import { aligned } from "../memory/arrays.js";
import type { Node } from "../tensor/node.js";
import type { ResidentTensors } from "../tensor/resident-tensors.js";
import type { IndexStore } from "./store.js";

const STORED = { gives: "float32", width: 1, option: "target" } as const;

/** The method of an insertion. */
const INSERT: CallMethod = { name: "index.add", ...STORED };
/** The method of the removal of vectors that came with tensors. */
const REMOVE: CallMethod = { name: "index.remove", ...STORED };

/** In place of a row of the source: the vector's id alone is written, 0 for nobody. */
export const NOTHING = 2 ** 32 - 1;

/** Words of a vector: its row, its place, its id + 1. */
export const ROW = 3;

/** The tensor that vectors come with. */
export interface Source {
  readonly node: Node;
  readonly residents: ResidentTensors;
}

/** The vectors that one call writes to one page. */
export class InsertOperands extends Operands {
  readonly isEmpty = false;
  readonly elements = 0;
  readonly rows: number;

  constructor(
    private readonly store: IndexStore,
    private readonly page: number,
    /** {@link ROW} words for each vector. */
    private readonly words: readonly number[],
    /** Undefined where vectors are removed. */
    private readonly source: Source | undefined,
  ) {
    super(source === undefined ? REMOVE : INSERT);
    this.rows = words.length / ROW;
  }

  override pin(): void {
    this.store.pins += 1;
    if (this.source !== undefined) this.source.node.storage!.pins += 1;
  }

  override unpin(): void {
    this.store.unpin();
    const { source } = this;
    source?.residents.unpin(source.node.storage!);
  }

  write(arena: Arena): number {
    const { store, page, words, source } = this;
    // What becomes resident may move the cursor, and does so before anything is written.
    store.makeDevicePages();
    const numbers = [store.devicePages[page]];
    if (source !== undefined) {
      const { node, residents } = source;
      if (node.storage!.failure !== undefined) throw node.storage!.failure;
      residents.makeResident(node);
      numbers.unshift(node.storage!.number);
    }
    const structure = store.insertion(source !== undefined);
    const names = aligned(words.length);
    const at = arena.reserve(names + aligned(numbers.length));
    arena.words.set(words, at);
    numbers.forEach((number, i) => arena.putTensor(number, at + names + i));
    return structure;
  }

  override answer(): undefined {
    return undefined;
  }
}
