// The entry `framebatch/embeddings`: importing it gives every session embedders.
//
// An entry of its own, so that pages without texts load neither this code nor its
// WebAssembly file, which the first embedder fetches.

import { callsOf, Session } from "../session/session.js";
import type { Embedder } from "./embedder.js";
import type { EmbedderOptions, RerankerOptions } from "./loading-options.js";
import { loadEmbedder, loadReranker } from "./model-loader.js";
import type { Reranker } from "./reranker.js";
import type { ModelSource } from "./source.js";

export type { Embedder } from "./embedder.js";
export type {
  EmbedComputeOptions,
  EmbedderInfo,
  EmbedIdsOptions,
  EmbedOptions,
  TextOptions,
  TextTokens,
} from "./embed-options.js";
export type {
  EmbedderOptions,
  EmbedderProgress,
  RerankerOptions,
} from "./loading-options.js";
export type {
  Ranked,
  RankOptions,
  Reranker,
  RerankerInfo,
  ScoreOptions,
} from "./reranker.js";
export type {
  Embeddings,
  EmbedManyOptions,
  EmbedProgress,
} from "./embed-many.js";
export type { Pooling } from "./config.js";
export type { Priority } from "../checks/priority.js";
export type { FileData, ModelFiles, ModelSource } from "./source.js";

declare module "../session/session.js" {
  interface Session {
    /**
     * Loads a text encoder from a Hugging Face folder as it is: its address, in Node its
     * path, or its files by name. Each tensor goes to the device as it arrives.
     * Resolves when all of it is there. With `import "framebatch/embeddings"`.
     *
     * The folder is read as sentence-transformers reads it: without `modules.json`
     * embeddings are the mean of the tokens, not normalized. Architectures are BERT,
     * RoBERTa, XLM-RoBERTa, DistilBERT, MPNet, ModernBERT, NomicBERT, GTE, those of
     * jina-embeddings-v2 and v3, Qwen3, Gemma 3 and EmbeddingGemma 2. Tokenizers beyond
     * WordPiece (Unigram, BPE) are a WebAssembly file of their own, which is fetched then. A
     * model whose tokenizer is not known, or that comes without one, takes `embedIds`.
     *
     * Rejects with `invalid-input` for a file that is missing, truncated or wrong,
     * naming file, field or tensor and both shapes; with `unsupported` for another kind
     * of model; with `signal.reason`; and with what the session ended by. Nothing that is
     * half loaded stays.
     *
     * @example
     * const embedder = await gpu.embedder("/models/all-MiniLM-L6-v2/", {
     *   onProgress: ({ loaded, total }) => (bar.value = loaded / total),
     * });
     * const vector = await embedder.embed("A text of any length.");
     */
    embedder(source: ModelSource, options?: EmbedderOptions): Promise<Embedder>;

    /**
     * Loads a cross-encoder from a Hugging Face folder as it is, as {@link embedder} does: a
     * model of BERT's, RoBERTa's or XLM-RoBERTa's architecture for the classification of
     * sequences with one label. Scores are what sentence-transformers' `CrossEncoder` gives.
     * With `import "framebatch/embeddings"`.
     *
     * Rejects as {@link embedder} does, and where the folder's tokenizer is not known.
     *
     * @example
     * const reranker = await gpu.reranker("/models/ms-marco-MiniLM-L6-v2/");
     * const ranking = await reranker.rank("where do cats sleep?", passages, { topN: 3 });
     */
    reranker(source: ModelSource, options?: RerankerOptions): Promise<Reranker>;
  }
}

Object.assign(Session.prototype, {
  embedder(
    this: Session,
    source: ModelSource,
    options?: EmbedderOptions,
  ): Promise<Embedder> {
    return loadEmbedder(callsOf(this), source, options);
  },
  reranker(
    this: Session,
    source: ModelSource,
    options?: RerankerOptions,
  ): Promise<Reranker> {
    return loadReranker(callsOf(this), source, options);
  },
});
