// The entry `framebatch/embeddings`: importing it gives every session embedders.
//
// An entry of its own, so that pages without texts load neither this code nor its
// WebAssembly file, which the first embedder fetches.

import { callsOf, Session } from "../session/session.js";
import type { Embedder } from "./embedder.js";
import { type EmbedderOptions, loadEmbedder } from "./model-loader.js";
import type { ModelSource } from "./source.js";

export type { Embedder } from "./embedder.js";
export type {
  EmbedComputeOptions,
  EmbedderInfo,
  EmbedIdsOptions,
  EmbedOptions,
} from "./embed-options.js";
export type { EmbedderOptions, EmbedderProgress } from "./model-loader.js";
export type {
  Embeddings,
  EmbedManyOptions,
  EmbedProgress,
} from "./embed-many.js";
export type { Pooling } from "./modules.js";
export type { Priority } from "../checks/priority.js";
export type { FileData, ModelFiles, ModelSource } from "./source.js";

declare module "../session/session.js" {
  interface Session {
    /**
     * Loads a text encoder of the BERT family from a Hugging Face folder as it is: its
     * address, or its files by name. Each tensor goes to the device as it arrives.
     * Resolves when all of it is there. With `import "framebatch/embeddings"`.
     *
     * The folder is read as sentence-transformers reads it: without `modules.json`
     * embeddings are the mean of the tokens, not normalized. Architectures are BERT and
     * RoBERTa. A model whose tokenizer is not WordPiece, or that comes without one, takes
     * `embedIds`.
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
});
