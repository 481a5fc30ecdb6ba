// The adapters where the libraries' own types ask for them. It is never run.

import type {
  EmbeddingModelV3,
  EmbeddingModelV4,
  RerankingModelV3,
  RerankingModelV4,
} from "@ai-sdk/provider";
import { embed, embedMany, rerank } from "ai";
import type { Embeddings } from "@langchain/core/embeddings";
import type { BaseDocumentCompressor } from "@langchain/core/retrievers/document_compressors";
import type { BaseEmbedding } from "@llamaindex/core/embeddings";
import { create, type OramaPlugin } from "@orama/orama";
import type { Readable, Writable } from "svelte/store";
import {
  embeddingModel,
  embeddingModelV3,
  rerankingModel,
  rerankingModelV3,
} from "framebatch/ai-sdk";
import type { Clip } from "framebatch/animation";
import type { Embedder, Reranker } from "framebatch/embeddings";
import { FramebatchEmbeddingFunction } from "framebatch/lancedb";
import { FramebatchEmbeddings, FramebatchReranker } from "framebatch/langchain";
import { FramebatchEmbedding } from "framebatch/llamaindex";
import { pluginFramebatch } from "framebatch/orama";
import { clip, spring, tween } from "framebatch/svelte";

declare const embedder: Promise<Embedder>;
declare const reranker: Promise<Reranker>;

export const v4: EmbeddingModelV4 = embeddingModel({ embedder });
export const v3: EmbeddingModelV3 = embeddingModelV3({ embedder });
export const one = embed({ model: embeddingModel({ embedder }), value: "a" });
export const many = embedMany({
  model: embeddingModelV3({ embedder }),
  values: ["a"],
});

export const reranking4: RerankingModelV4 = rerankingModel({ reranker });
export const reranking3: RerankingModelV3 = rerankingModelV3({ reranker });
export const ranked = rerank({
  model: rerankingModel({ reranker }),
  query: "a",
  documents: [{ title: "b" }],
});

export const compressor: BaseDocumentCompressor = new FramebatchReranker({
  reranker,
});
export const langchain: Embeddings = new FramebatchEmbeddings({ embedder });
export const llamaindex: BaseEmbedding = new FramebatchEmbedding({ embedder });
export const lancedb = new FramebatchEmbeddingFunction({ embedder });

const plugin = pluginFramebatch({ embedder, properties: ["title"] });
export const orama: OramaPlugin = plugin;
const schema = { title: "string", embeddings: "vector[4]" } as const;
export const db = create({ schema, plugins: [plugin] });
export const embedded: Promise<{ title: string }[]> = plugin.embed([
  { title: "a" },
]);

export const x: Writable<number> = tween(0);
export const place: Readable<Float32Array> = spring([0, 1]);
export const rise: Readable<Clip | undefined> = clip({ tracks: [] });
