// What the adapters of rerankers have in common: their options.
//
// No library is known here, and no reranker is loaded: the adapters take what `gpu.reranker`
// gives. Only types of the embeddings are imported.

import type { Priority } from "../checks/priority.js";
import type { Reranker } from "../embeddings/reranker.js";
import { invalid } from "./texts.js";

/** What adapters use of a reranker. */
export type TextReranker = Pick<Reranker, "rank">;

/** The options that all adapters of rerankers have. */
export interface RerankerAdapterOptions {
  /** What `gpu.reranker` gives: the promise, or the reranker. Whoever made it disposes of it. */
  reranker: TextReranker | PromiseLike<TextReranker>;
  /** As of every call: `low` fills what others leave. Default: `normal`. */
  priority?: Priority;
}

/** The names of {@link RerankerAdapterOptions}. */
export const RERANKER_NAMES: Record<keyof RerankerAdapterOptions, true> = {
  reranker: true,
  priority: true,
};

/** The reranker of an adapter. Rejects with what it failed to load by. */
export async function loadedReranker(
  about: string,
  source: RerankerAdapterOptions["reranker"] | undefined,
): Promise<TextReranker> {
  const reranker = await source;
  if (typeof reranker?.rank === "function") return reranker;
  throw invalid(
    about,
    `reranker must be a reranker or a promise of one, as gpu.reranker gives it, got ${typeof reranker}`,
  );
}
