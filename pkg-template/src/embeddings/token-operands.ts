// The operands of a call of a model: the tokens of one text, whose vector the caller takes, or a
// tensor.
//
// How tokens, numbers and weights lie at the cursor is told in `model.ts`.

import type { Answer, Call } from "../calls/call.js";
import type { CheckedOptions } from "../calls/call-options.js";
import { type CallMethod, Operands } from "../calls/operands.js";
import { checkInto } from "../checks/arrays.js";
import type { Arena } from "../memory/arena.js";
import type { Operand } from "../memory/arrays.js";
import type { Results } from "../memory/results.js";
import { input, type Node } from "../tensor/node.js";
import type { Recomputation } from "../tensor/recomputation.js";
import { StoredResults, type Targeting } from "../tensor/stored-results.js";
import type { Model } from "./model.js";

const FLOATS = { gives: "float32", width: 1, option: undefined } as const;
const STORED = { ...FLOATS, option: "keep" } as const;

/** The method of a call with a text. */
export const EMBED: CallMethod = { name: "embed", ...FLOATS };
/** The method of a call with tokens. */
export const EMBED_IDS: CallMethod = { name: "embedIds", ...FLOATS };
/** The method of the calls of many texts. */
export const EMBED_MANY: CallMethod = { name: "embedMany", ...FLOATS };
/** The method of a call with a text, whose vector a tensor takes. */
export const COMPUTE: CallMethod = { name: "compute", ...STORED };
/** The method of a call with tokens, whose vector a tensor takes. */
export const COMPUTE_IDS: CallMethod = { name: "computeIds", ...STORED };

/** The method of the calls of pairs that are scored. */
export const SCORE: CallMethod = { name: "score", ...FLOATS };
/** The method of the calls of pairs that are ranked. */
export const RANK: CallMethod = { name: "rank", ...FLOATS };

/** Where all tokens have the first type. */
const NO_TYPES = new Uint32Array(0);

/** The tokens of one text, and the model that embeds these. */
export class TokenOperands extends Operands {
  readonly isEmpty = false;

  constructor(
    method: CallMethod,
    protected readonly model: Model,
    /** A copy that the caller does not share. */
    protected readonly ids: Uint32Array,
    /** The type of each token; none where all have the first. */
    protected readonly types: Uint32Array = NO_TYPES,
  ) {
    super(method);
  }

  get elements(): number {
    return this.model.config.dimensions;
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
    const { method, ids, types } = this;
    return this.model.write(method.name, ids, types, arena, undefined);
  }

  override unpin(): void {
    this.model.unpin();
  }

  // On the device a vector has a multiple of four words.
  override array(words: number, terms: CheckedOptions | undefined): Operand {
    if (this.isAnswer(words)) return super.array(words, terms);
    return new Float32Array(words);
  }

  override isAnswer(words: number): boolean {
    return words === this.elements;
  }

  override answer(
    call: Call,
    results: Results,
    offset: number,
    words: number,
  ): Answer {
    // What such words were collected in is no answer.
    if (!this.isAnswer(words)) call.array = undefined;
    return super.answer(call, results, offset, this.elements);
  }
}

/** How the vector of a text is stored. */
export interface StoredText {
  /** The input that is the tensor. */
  readonly target: Node;
  readonly targeting: Targeting;
  /** Whether the vector is computed again after a loss. */
  readonly isRemembered: boolean;
  /** What the call resolves to. */
  readonly answer: Answer;
}

/** The tokens of one text, whose vector a tensor takes. */
export class StoredTokenOperands extends TokenOperands {
  private readonly results: StoredResults;

  constructor(
    method: CallMethod,
    model: Model,
    ids: Uint32Array,
    private readonly stored: StoredText,
  ) {
    super(method, model, ids);
    const { target, targeting } = stored;
    const { residents } = model.calls;
    this.results = new StoredResults(residents, [target.storage!], targeting);
  }

  override get elements(): number {
    return 0;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    // What is computed again after a loss needs the weights alone, which are there.
    if (this.stored.targeting === "made") super.check(about, terms);
    this.results.called();
  }

  override pin(): void {
    super.pin();
    this.stored.target.storage!.pins += 1;
  }

  override write(arena: Arena): number {
    const { model, ids, types, method, stored } = this;
    const { target } = stored;
    const structure = model.write(method.name, ids, types, arena, target);
    this.results.entered();
    return structure;
  }

  override answer(
    _call: Call,
    _results: Results,
    _offset: number,
    _words: number,
  ): Answer {
    const { isRemembered, answer } = this.stored;
    this.results.stored([isRemembered ? this.record() : undefined]);
    return answer;
  }

  override rejected(reason: unknown): void {
    this.results.rejected(reason);
  }

  override unpin(): void {
    this.model.calls.residents.unpin(this.stored.target.storage!);
    super.unpin();
  }

  private record(): Recomputation {
    const { method, model, ids } = this;
    const { shape } = this.stored.target;
    const again: Recomputation["again"] = (storage) =>
      new StoredTokenOperands(method, model, ids, {
        target: input(shape, storage),
        targeting: "restored",
        isRemembered: true,
        answer: undefined,
      });
    return { ...model.origin, again };
  }
}
