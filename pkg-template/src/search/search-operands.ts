// The operands of a search of an index, and how these lie at the cursor.
//
// Queries come first, padded as the index's vectors are, then the mask, if there is one,
// then the numbers of the tensors. `src/graph/searching.rs` describes the same for the
// core.

import type { CheckedOptions } from "../calls/call-options.js";
import { type CallMethod, Operands } from "../calls/operands.js";
import { invalid } from "../checks/errors.js";
import { type Arena } from "../memory/arena.js";
import { aligned } from "../memory/arrays.js";
import type { IndexStore } from "./store.js";
import type { Mask } from "./vectors.js";

/** The method of a search. */
const SEARCH: CallMethod = {
  name: "search",
  gives: "uint8", // Bits of ids are no floats: the id of an absent result would be a NaN.
  width: 1,
  option: undefined,
};

/** Added to the words of a mask that lists ids. */
const LISTED = 2 ** 31;

/** The queries of one search, its mask and its index. */
export class SearchOperands extends Operands {
  readonly rows: number;

  constructor(
    private readonly store: IndexStore,
    /** Padded, and not shared with the caller. */
    private readonly queries: Float32Array,
    private readonly count: number,
    private readonly mask: Mask | undefined,
  ) {
    super(SEARCH);
    this.rows = queries.length / store.vectors.padded;
  }

  get isEmpty(): boolean {
    return this.rows === 0;
  }

  get elements(): number {
    return this.rows * 8 * this.count;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    if (terms?.into !== undefined) {
      throw invalid(about, "there is no option 'into'; results are new arrays");
    }
  }

  override pin(): void {
    this.store.pins += 1;
  }

  override unpin(): void {
    this.store.unpin();
  }

  write(arena: Arena): number {
    const { store, queries, count, mask } = this;
    store.upload();
    store.makeDevicePages();
    const words = mask?.words.length ?? 0;
    const sizes = store.sizes(count, words + (mask?.isListed ? LISTED : 0));
    const allowed = aligned(queries.length);
    const names = allowed + aligned(words);
    const at = arena.reserve(names + aligned(sizes.pages.length));
    arena.put(queries, at);
    if (mask !== undefined) arena.words.set(mask.words, at + allowed);
    sizes.pages.forEach((page, i) => arena.putTensor(page, at + names + i));
    return sizes.structure;
  }
}
