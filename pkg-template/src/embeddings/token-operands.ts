// The operands of a call of a model: the tokens of one text.
//
// How tokens, numbers and weights lie at the cursor is told in `model.ts`.

import type { CheckedOptions } from "../calls/call-options.js";
import { type CallMethod, Operands } from "../calls/operands.js";
import { checkInto } from "../checks/arrays.js";
import type { Arena } from "../memory/arena.js";
import type { Model } from "./model.js";

const FLOATS = { gives: "float32", width: 1, option: undefined } as const;

/** The method of a call with a text. */
export const EMBED: CallMethod = { name: "embed", ...FLOATS };
/** The method of a call with tokens. */
export const EMBED_IDS: CallMethod = { name: "embedIds", ...FLOATS };
/** The method of the calls of many texts. */
export const EMBED_MANY: CallMethod = { name: "embedMany", ...FLOATS };

/** The tokens of one text, and the model that embeds these. */
export class TokenOperands extends Operands {
  readonly isEmpty = false;

  constructor(
    method: CallMethod,
    private readonly model: Model,
    /** A copy that the caller does not share. */
    private readonly ids: Uint32Array,
  ) {
    super(method);
  }

  get elements(): number {
    return this.model.config.hidden;
  }

  /** Tokens: a batch counts these as its items. */
  get rows(): number {
    return this.ids.length;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    // The text may have waited for its turn, or for an equal text.
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
