// The operands of one clip at one time, which most samplings are.
//
// A clip has one object for all such calls, whose operands are written as soon as the
// calls are made; nothing is allocated but the calls' promises and records. Calls with
// options, and those of a session that still opens, have `SampleOperands` of their own.

import { Operands } from "../calls/operands.js";
import type { Arena } from "../memory/arena.js";
import { HEADER, LAYER, ONE, SAMPLE } from "./sample-operands.js";
import type { StoreRange, ClipStore } from "./store.js";
import type { Encoded } from "./tracks.js";

/** Words of the operands: the time, the header, the only layer, the number of the store. */
const WORDS = 4 + HEADER + LAYER + 4;

/** The sampling of a clip at {@link time}, again and again. */
export class SingleSample extends Operands {
  readonly rows = 1;
  readonly isEmpty = false;
  readonly elements: number;
  /** Seconds within the clip, for the call that is about to be written. */
  time = 0;

  constructor(
    private readonly store: ClipStore,
    private readonly clip: Encoded,
    private readonly range: StoreRange,
  ) {
    super(SAMPLE);
    this.elements = clip.width;
  }

  write(arena: Arena): number {
    const { store, range } = this;
    if (store.failure !== undefined) throw store.failure;
    const { lanes, width } = this.clip;
    const id = store.structure(1, lanes, width, 1, false);
    const at = arena.reserve(WORDS);
    arena.putNumber(this.time, at);
    const { words } = arena;
    let word = at + 4;
    words[word++] = lanes;
    words[word++] = 1;
    words[word++] = 0;
    words[word++] = width;
    words[word++] = range.at;
    words[word++] = 0;
    words[word++] = 0;
    words[word++] = ONE;
    arena.putTensor(store.number, word);
    return id;
  }
}
