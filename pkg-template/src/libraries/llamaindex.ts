// The entry for LlamaIndex.TS: its `BaseEmbedding`, by an embedder.

import { BaseEmbedding } from "@llamaindex/core/embeddings";
import {
  asNumbers,
  checkNames,
  Retrieval,
  RETRIEVAL_NAMES,
  type RetrievalOptions,
} from "./texts.js";

export type { RetrievalOptions, TextEmbedder } from "./texts.js";

const NAME = "FramebatchEmbedding";

/**
 * An embedding for the indexes and pipelines of LlamaIndex. Calls of a frame are one
 * submission. `getTextEmbeddingsBatch` reports its progress once in `embedBatchSize` texts.
 * Errors are those of `embedder.embed`, with their codes.
 *
 * @example
 * const embedder = gpu.embedder("/models/all-MiniLM-L6-v2/");
 * Settings.embedModel = new FramebatchEmbedding({ embedder });
 */
export class FramebatchEmbedding extends BaseEmbedding {
  readonly #texts: Retrieval;

  constructor(options: RetrievalOptions) {
    super();
    checkNames(NAME, options, RETRIEVAL_NAMES);
    this.#texts = new Retrieval(NAME, options);
    this.embedBatchSize = 1024;
    this.getTextEmbeddings = async (texts) =>
      asNumbers(await this.#texts.documents(texts));
  }

  /** The vector of a document, after the model's prompt for documents. */
  async getTextEmbedding(text: string): Promise<number[]> {
    return (await this.getTextEmbeddings([text]))[0];
  }

  /** The vector of a query, after the model's prompt for queries; null for what is no text. */
  override async getQueryEmbedding(
    query: Parameters<BaseEmbedding["getQueryEmbedding"]>[0],
  ): Promise<number[] | null> {
    if (query.type !== "text") return null;
    return Array.from(await this.#texts.query(query.text));
  }
}
