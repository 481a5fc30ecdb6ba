// The entry for LanceDB: its `EmbeddingFunction`, by an embedder. Importing it registers
// the function as `framebatch`, so that tables that were made with it can be opened.

import { register, TextEmbeddingFunction } from "@lancedb/lancedb/embedding";
import { kept, named, type NamedOptions } from "./named.js";
import { Retrieval, type TextEmbedder } from "./texts.js";

export type { NamedOptions } from "./named.js";
export type { RetrievalOptions, TextEmbedder } from "./texts.js";

const NAME = "FramebatchEmbeddingFunction";

/**
 * Computes a table's vectors as rows are added, and those of texts that are searched. Calls of
 * a frame are one submission. A table keeps `model`, prompts and `truncate`; a program that
 * opens the table makes a function with `embedder` and the same `model` first. Errors are
 * those of `embedder.embed`, with their codes.
 *
 * @example
 * const embedder = await gpu.embedder(files);
 * const framebatch = new FramebatchEmbeddingFunction({ embedder, model: "minilm" });
 * const schema = LanceSchema({ text: framebatch.sourceField(), vector: framebatch.vectorField() });
 */
export class FramebatchEmbeddingFunction extends TextEmbeddingFunction<NamedOptions> {
  readonly #texts: Retrieval;
  #dimensions: number | undefined;

  constructor(options: NamedOptions = {}) {
    super();
    // The database keeps what this call is given.
    const terms = this.resolveVariables(kept(options)) as NamedOptions;
    const { embedder, priority } = options;
    const source = named(NAME, {
      ...terms,
      ...(embedder && { embedder }),
      ...(priority && { priority }),
    });
    this.#texts = new Retrieval(NAME, source);
    // A promise has no dimensions yet.
    this.#dimensions = (embedder as Partial<TextEmbedder>)?.info?.dimensions;
  }

  /** Waits for the embedder; LanceDB calls it where it makes the function itself. */
  override async init(): Promise<void> {
    this.#dimensions = (await this.#texts.embedder()).info.dimensions;
  }

  /** Floats of a vector; undefined before the embedder is loaded. */
  override ndims(): number | undefined {
    return this.#dimensions;
  }

  /** The vectors of documents, in order, after the model's prompt for documents. */
  generateEmbeddings(texts: string[]): Promise<Float32Array[]> {
    return this.#texts.documents(texts);
  }

  /** The vector of a query, after the model's prompt for queries. */
  override computeQueryEmbeddings(text: string): Promise<Float32Array> {
    return this.#texts.query(text);
  }
}

register("framebatch")(FramebatchEmbeddingFunction);
