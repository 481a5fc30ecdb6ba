// What the adapters of embedders have in common: their options, and lists of texts.
//
// No library is known here, and no embedder is loaded: the adapters take what
// `gpu.embedder` gives. Only types of the embeddings are imported.

import type { Priority } from "../checks/priority.js";
import type { EmbedProgress } from "../embeddings/embed-many.js";
import type { Embedder } from "../embeddings/embedder.js";
import type { TextOptions } from "../embeddings/embed-options.js";
import { FramebatchError } from "../index.js";

/** What adapters use of an embedder, which may live in another thread. */
export interface TextEmbedder extends Pick<
  Embedder,
  "info" | "embed" | "embedMany"
> {
  ids(
    text: string,
    options?: TextOptions,
  ): Uint32Array | PromiseLike<Uint32Array>;
}

/** The options that all adapters have. */
export interface AdapterOptions {
  /** What `gpu.embedder` gives: the promise, or the embedder. Whoever made it disposes of it. */
  embedder: TextEmbedder | PromiseLike<TextEmbedder>;
  /** Whether a text beyond the model's limit is cut; otherwise it rejects. Default: true. */
  truncate?: boolean;
  /** As of every call: `low` fills what others leave. Default: `normal`. */
  priority?: Priority;
}

/** The options of adapters that know queries from documents. */
export interface RetrievalOptions extends AdapterOptions {
  /**
   * The name of the prompt that stands before queries. Default: `query` where the model
   * has it, else the model's default prompt.
   */
  queryPrompt?: string;
  /**
   * The name of the prompt that stands before documents. Default: the first of `document`,
   * `passage` and `corpus` that the model has, else the model's default prompt.
   */
  documentPrompt?: string;
}

/** The names of {@link AdapterOptions}. */
export const ADAPTER_NAMES: Record<keyof AdapterOptions, true> = {
  embedder: true,
  truncate: true,
  priority: true,
};
/** The names of {@link RetrievalOptions}. */
export const RETRIEVAL_NAMES: Record<keyof RetrievalOptions, true> = {
  queryPrompt: true,
  documentPrompt: true,
  ...ADAPTER_NAMES,
};

/** How a text is embedded. */
export interface TextTerms {
  prompt?: string;
  truncate?: boolean;
  priority?: Priority;
  signal?: AbortSignal;
}

/**
 * Texts of a list that are calls of the frame. A longer list goes in slices, as those of
 * `embedMany`, so that a corpus is no long task of the page.
 */
const MOST_CALLS = 64;

// The names that sentence-transformers looks for, in its order.
const QUERY_PROMPTS = ["query"];
const DOCUMENT_PROMPTS = ["document", "passage", "corpus"];

/** The vectors of texts, in order; `onTokens` hears how many tokens the texts have. */
export async function embedAll(
  embedder: TextEmbedder,
  texts: readonly string[],
  options: TextTerms,
  onTokens?: (tokens: number) => void,
): Promise<Float32Array[]> {
  if (texts.length > MOST_CALLS) {
    const onProgress = (progress: EmbedProgress): void =>
      onTokens?.(progress.tokens);
    return embedder.embedMany(texts, { ...options, onProgress });
  }
  const { prompt, truncate } = options;
  const counted = onTokens === undefined ? [] : texts;
  const [vectors, lengths] = await Promise.all([
    Promise.all(texts.map((text) => embedder.embed(text, options))),
    // What is wrong with a text, its embedding says first.
    Promise.all(
      counted.map(
        async (text) => (await embedder.ids(text, { prompt, truncate })).length,
      ),
    ),
  ]);
  onTokens?.(lengths.reduce((sum, length) => sum + length, 0));
  return vectors;
}

/** Throws unless every name in `options` is in `known`. */
export function checkNames(
  about: string,
  options: object,
  known: object,
): void {
  const wrong = Object.keys(options).find(
    (name) => !Object.hasOwn(known, name),
  );
  if (wrong === undefined) return;
  throw invalid(
    about,
    `there is no option '${wrong}'; the options are ${Object.keys(known).join(", ")}`,
  );
}

/** The error for bad input to an adapter. */
export function invalid(about: string, problem: string): FramebatchError {
  return new FramebatchError("invalid-input", `${about}: ${problem}`);
}

/** The embedder of an adapter. Rejects with what it failed to load by. */
export async function loaded(
  about: string,
  source: AdapterOptions["embedder"] | undefined,
): Promise<TextEmbedder> {
  const embedder = await source;
  if (typeof embedder?.embed === "function") return embedder;
  throw invalid(
    about,
    `embedder must be an embedder or a promise of one, as gpu.embedder gives it, got ${typeof embedder}`,
  );
}

/** Queries and documents of an adapter, each with its prompt. */
export class Retrieval {
  constructor(
    private readonly about: string,
    private readonly options: RetrievalOptions,
  ) {}

  /** The embedder, once it is loaded. */
  embedder(): Promise<TextEmbedder> {
    return loaded(this.about, this.options.embedder);
  }

  async query(text: string): Promise<Float32Array> {
    const { queryPrompt } = this.options;
    return (await this.embed([text], queryPrompt, QUERY_PROMPTS))[0];
  }

  queries(texts: readonly string[]): Promise<Float32Array[]> {
    return this.embed(texts, this.options.queryPrompt, QUERY_PROMPTS);
  }

  documents(texts: readonly string[]): Promise<Float32Array[]> {
    return this.embed(texts, this.options.documentPrompt, DOCUMENT_PROMPTS);
  }

  private async embed(
    texts: readonly string[],
    given: string | undefined,
    usual: readonly string[],
  ): Promise<Float32Array[]> {
    const embedder = await this.embedder();
    const { prompts } = embedder.info;
    const prompt = given ?? usual.find((name) => prompts.includes(name));
    const { truncate, priority } = this.options;
    return embedAll(embedder, texts, { prompt, truncate, priority });
  }
}

/** Vectors as most libraries want them. */
export function asNumbers(vectors: readonly Float32Array[]): number[][] {
  return vectors.map((vector) => Array.from(vector));
}
