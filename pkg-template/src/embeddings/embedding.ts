// One call of a model: a text's tokens go in, its vector comes out.

import type { Arena } from "../arena.js";
import { checkInto } from "../check-array.js";
import type { Terms } from "../call-options.js";
import type { Laid, LaidMethod } from "../laid.js";
import type { Model } from "./model.js";

const FLOATS = { gives: "float32", width: 1, option: undefined } as const;

/** How calls with a text are named. */
export const EMBED: LaidMethod = { name: "embed", ...FLOATS };
/** Those with tokens. */
export const EMBED_IDS: LaidMethod = { name: "embedIds", ...FLOATS };
/** Those of many texts. */
export const EMBED_MANY: LaidMethod = { name: "embedMany", ...FLOATS };

/** A text's embedding, from its method until its answer. */
export class Embedding implements Laid {
  readonly isEmpty = false;

  constructor(
    readonly method: LaidMethod,
    private readonly model: Model,
    /** Nobody else has it. */
    private readonly ids: Uint32Array,
  ) {}

  get elements(): number {
    return this.model.config.hidden;
  }

  /** What it counts for in a batch. */
  get rows(): number {
    return this.ids.length;
  }

  check(about: string, terms: Terms | undefined): void {
    // It may have waited for its turn, or for another one's call.
    this.model.refuseIfOver(about);
    const into = terms?.into;
    if (into === undefined) return;
    const type = "Float32Array";
    checkInto(about, into, { name: "into", type, length: this.elements });
  }

  keep(): void {} // Its tokens are its own.

  hold(): void {
    this.model.pin();
  }

  lay(arena: Arena): number {
    return this.model.lay(this.method.name, this.ids, arena);
  }

  release(): void {
    this.model.unpin();
  }
}
