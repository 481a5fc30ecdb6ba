// Checks the ids of a text's tokens.
//
// Whether ids come from the tokenizer or from the caller is known in `embedder.ts`.

import { invalid, kindOf, tagOf } from "../checks/errors.js";
import type { Config } from "./config.js";

/** The ids of a text that another tokenizer split. Throws for what the model cannot take. */
export function idsOf(
  about: string,
  ids: unknown,
  config: Config,
): Uint32Array {
  const { vocabulary, maxTokens } = config;
  if (!isList(ids)) {
    throw invalid(
      about,
      `ids must be a Uint32Array, an Int32Array or an array of numbers, got ${kindOf(ids)}`,
    );
  }
  const { length } = ids;
  if (length < 1 || length > maxTokens) {
    throw invalid(
      about,
      `a text has 1 to ${maxTokens} tokens for this model, got ${length}`,
    );
  }
  const own = Uint32Array.from(ids);
  for (let i = 0; i < length; i += 1) {
    if (own[i] === ids[i] && own[i] < vocabulary) continue;
    throw invalid(
      about,
      `ids[${i}] must be a whole number below ${vocabulary}, got ${String(ids[i])}`,
    );
  }
  refusePadding(about, own, config);
  return own;
}

/** Refuses the padding of RoBERTa, whose positions begin behind the id of its padding. */
export function refusePadding(
  about: string,
  ids: Uint32Array,
  { firstPosition }: Config,
): void {
  if (firstPosition === 0 || !ids.includes(firstPosition - 1)) return;
  throw invalid(
    about,
    `${firstPosition - 1} is the model's padding, which is no part of a text; leave it out`,
  );
}

const isList = (ids: unknown): ids is ArrayLike<number> =>
  ["Array", "Uint32Array", "Int32Array"].includes(tagOf(ids));
