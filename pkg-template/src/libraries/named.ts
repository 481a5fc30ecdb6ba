// Embedders by name, for databases that keep beside vectors how these were made.
//
// A database keeps the name and the prompts. Each process says once which embedder a name
// stands for: addresses of models differ from machine to machine.

import {
  checkNames,
  invalid,
  RETRIEVAL_NAMES,
  type RetrievalOptions,
} from "./texts.js";

/** What adapters of databases take; a database keeps all of it but `embedder` and `priority`. */
export interface NamedOptions extends Partial<RetrievalOptions> {
  /**
   * What `gpu.embedder` gives: the promise, or the embedder. Without it the one that was
   * given last under the same `model`. Whoever made it disposes of it.
   */
  embedder?: RetrievalOptions["embedder"];
  /** The name that the database keeps for the embedder. Default: `default`. */
  model?: string;
}

/** What a database keeps. */
export type KeptOptions = Omit<NamedOptions, "embedder" | "priority">;

const NAMES: Record<keyof NamedOptions, true> = {
  model: true,
  ...RETRIEVAL_NAMES,
};
const embedders = new Map<string, RetrievalOptions["embedder"]>();

/** The options with their embedder, which is looked up when it is needed. */
export function named(about: string, options: NamedOptions): RetrievalOptions {
  checkNames(about, options, NAMES);
  const { embedder: given, model = "default", ...others } = options;
  if (given !== undefined) embedders.set(model, given);
  return {
    ...others,
    get embedder() {
      const embedder = given ?? embedders.get(model);
      if (embedder !== undefined) return embedder;
      throw invalid(
        about,
        `no embedder was given for the model '${model}'; make new ${about}({ embedder, model: '${model}' }) before`,
      );
    },
  };
}

/** What a database is to keep of the options: no undefined fields, and nothing of this process. */
export function kept(options: NamedOptions): KeptOptions {
  const { embedder: _, priority: __, model = "default", ...others } = options;
  return JSON.parse(JSON.stringify({ model, ...others })) as KeptOptions;
}
