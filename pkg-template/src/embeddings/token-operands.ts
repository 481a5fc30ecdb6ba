// One call of a model: a text's tokens go in, its vector comes out.

import type { CheckedOptions } from "../calls/call-options.js";
import { type CallMethod, Operands } from "../calls/operands.js";
import { checkInto } from "../checks/arrays.js";
import type { Arena } from "../memory/arena.js";
import type { Model } from "./model.js";

const FLOATS = { gives: "float32", width: 1, option: undefined } as const;

/** How calls with a text are named. */
export const EMBED: CallMethod = { name: "embed", ...FLOATS };
/** Those with tokens. */
export const EMBED_IDS: CallMethod = { name: "embedIds", ...FLOATS };
/** Those of many texts. */
export const EMBED_MANY: CallMethod = { name: "embedMany", ...FLOATS };

/** A text's embedding, from its method until its answer. */
export class TokenOperands extends Operands {
  readonly isEmpty = false;

  constructor(
    method: CallMethod,
    private readonly model: Model,
    /** Nobody else has it. */
    private readonly ids: Uint32Array,
  ) {
    super(method);
  }

  get elements(): number {
    return this.model.config.hidden;
  }

  /** What it counts for in a batch. */
  get rows(): number {
    return this.ids.length;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    // It may have waited for its turn, or for another one's call.
    this.model.refuseIfOver(about);
    const into = terms?.into;
    if (into === undefined) return;
    const type = "Float32Array";
    checkInto(about, into, { name: "into", type, length: this.elements });
  }

  override pin(): void {
    this.model.pin();
  }

  write(arena: Arena): number {
    return this.model.write(this.method.name, this.ids, arena);
  }

  override unpin(): void {
    this.model.unpin();
  }
}
