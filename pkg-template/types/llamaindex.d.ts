// What the adapter uses of `@llamaindex/core/embeddings`, whose own declarations refer to
// packages that are not installed with it. tests/packaging/types.test.mjs holds the adapter to
// the real declarations.

/** Part of a message; only texts are embedded. */
type Content = { type: "text"; text: string } | { type: "image" | "file" };

export declare abstract class BaseEmbedding {
  embedBatchSize: number;
  protected constructor();
  abstract getTextEmbedding(text: string): Promise<number[]>;
  getQueryEmbedding(query: Content): Promise<number[] | null>;
  getTextEmbeddings: (texts: string[]) => Promise<number[][]>;
}
