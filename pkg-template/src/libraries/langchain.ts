// The entry for LangChain.js: its `Embeddings`, by an embedder, and its
// `BaseDocumentCompressor`, by a reranker.

import { Document, type DocumentInterface } from "@langchain/core/documents";
import { Embeddings } from "@langchain/core/embeddings";
import { BaseDocumentCompressor } from "@langchain/core/retrievers/document_compressors";
import {
  loadedReranker,
  RERANKER_NAMES,
  type RerankerAdapterOptions,
} from "./rerankers.js";
import {
  asNumbers,
  checkNames,
  Retrieval,
  RETRIEVAL_NAMES,
  type RetrievalOptions,
} from "./texts.js";

export type { RerankerAdapterOptions, TextReranker } from "./rerankers.js";
export type { RetrievalOptions, TextEmbedder } from "./texts.js";

const NAME = "FramebatchEmbeddings";

/**
 * Embeddings for the vector stores and retrievers of LangChain. Calls of a frame are one
 * submission. `maxConcurrency` and `maxRetries` of other embeddings have no meaning here,
 * because nothing is requested from a server. Errors are those of `embedder.embed`, with
 * their codes.
 *
 * @example
 * const embedder = gpu.embedder("/models/all-MiniLM-L6-v2/");
 * const store = new MemoryVectorStore(new FramebatchEmbeddings({ embedder }));
 */
export class FramebatchEmbeddings extends Embeddings {
  readonly #texts: Retrieval;

  constructor(options: RetrievalOptions) {
    super({});
    checkNames(NAME, options, RETRIEVAL_NAMES);
    this.#texts = new Retrieval(NAME, options);
  }

  /** The vector of a query, after the model's prompt for queries. */
  async embedQuery(text: string): Promise<number[]> {
    return Array.from(await this.#texts.query(text));
  }

  /** The vectors of documents, in order, after the model's prompt for documents. */
  async embedDocuments(texts: string[]): Promise<number[][]> {
    return asNumbers(await this.#texts.documents(texts));
  }
}

/** What a {@link FramebatchReranker} takes. */
export interface FramebatchRerankerOptions extends RerankerAdapterOptions {
  /** Documents that are kept, the best ones. Default: all. */
  topN?: number;
}

const RERANKER = "FramebatchReranker";
const RERANKER_OPTIONS: Record<keyof FramebatchRerankerOptions, true> = {
  topN: true,
  ...RERANKER_NAMES,
};

/**
 * A document compressor, as `ContextualCompressionRetriever` takes it: documents of a retriever
 * in the order of their scores, the best first. The pairs of a frame are one submission. Errors
 * are those of `reranker.rank`, with their codes.
 *
 * @example
 * const reranker = gpu.reranker("/models/ms-marco-MiniLM-L6-v2/");
 * const baseCompressor = new FramebatchReranker({ reranker, topN: 3 });
 * const retriever = new ContextualCompressionRetriever({ baseCompressor, baseRetriever });
 */
export class FramebatchReranker extends BaseDocumentCompressor {
  readonly #options: FramebatchRerankerOptions;

  constructor(options: FramebatchRerankerOptions) {
    super();
    checkNames(RERANKER, options, RERANKER_OPTIONS);
    this.#options = options;
  }

  /** New documents, the best first, each with its score as `metadata.relevanceScore`. */
  async compressDocuments(
    documents: DocumentInterface[],
    query: string,
  ): Promise<Document[]> {
    const { topN, priority } = this.#options;
    const reranker = await loadedReranker(RERANKER, this.#options.reranker);
    const texts = documents.map(({ pageContent }) => pageContent);
    const ranking = await reranker.rank(query, texts, { topN, priority });
    return ranking.map(({ index, score }) => {
      const { id, pageContent, metadata } = documents[index];
      const scored = { ...metadata, relevanceScore: score };
      return new Document({ id, pageContent, metadata: scored });
    });
  }
}
