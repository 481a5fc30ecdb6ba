// The entry for Chroma: its `EmbeddingFunction`, by an embedder. Chroma is not imported:
// its functions are any objects of this shape, to which tests hold the class below.

import { kept, type KeptOptions, named, type NamedOptions } from "./named.js";
import { asNumbers, Retrieval } from "./texts.js";

export type { KeptOptions, NamedOptions } from "./named.js";
export type { RetrievalOptions, TextEmbedder } from "./texts.js";

const NAME = "FramebatchEmbeddingFunction";

/**
 * Computes the vectors of a collection's documents and of queries. Calls of a frame are one
 * submission. Where the class is registered, a collection keeps `model`, prompts and
 * `truncate`; a program that opens the collection makes a function with `embedder` and the
 * same `model` first. Errors are those of `embedder.embed`, with their codes.
 *
 * @example
 * registerEmbeddingFunction("framebatch", FramebatchEmbeddingFunction);
 * const embeddingFunction = new FramebatchEmbeddingFunction({ embedder: gpu.embedder(files) });
 * const collection = await client.createCollection({ name: "notes", embeddingFunction });
 */
export class FramebatchEmbeddingFunction {
  /** What Chroma knows the class by. */
  readonly name = "framebatch";
  readonly #kept: KeptOptions;
  readonly #texts: Retrieval;

  constructor(options: NamedOptions = {}) {
    this.#kept = kept(options);
    this.#texts = new Retrieval(NAME, named(NAME, options));
  }

  /** The function of a collection that was made before. */
  static buildFromConfig(config: KeptOptions): FramebatchEmbeddingFunction {
    return new FramebatchEmbeddingFunction(config);
  }

  /** The vectors of documents, in order, after the model's prompt for documents. */
  async generate(texts: string[]): Promise<number[][]> {
    return asNumbers(await this.#texts.documents(texts));
  }

  /** The vectors of queries, in order, after the model's prompt for queries. */
  async generateForQueries(texts: string[]): Promise<number[][]> {
    return asNumbers(await this.#texts.queries(texts));
  }

  defaultSpace(): "cosine" {
    return "cosine";
  }

  supportedSpaces(): ("cosine" | "l2" | "ip")[] {
    return ["cosine", "l2", "ip"];
  }

  /** What the collection keeps. */
  getConfig(): KeptOptions {
    return this.#kept;
  }
}
