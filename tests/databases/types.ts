// The adapters where the databases' own types ask for them. It is never run.

import {
  type EmbeddingFunction as LanceEmbedding,
  getRegistry,
  LanceSchema,
  type TextEmbeddingFunction,
} from "@lancedb/lancedb/embedding";
import { Utf8 } from "apache-arrow";
import {
  ChromaClient,
  type EmbeddingFunction as ChromaEmbedding,
  registerEmbeddingFunction,
} from "chromadb";
import { FramebatchEmbeddingFunction as ChromaFunction } from "framebatch/chroma";
import type { Embedder } from "framebatch/embeddings";
import { FramebatchEmbeddingFunction as LanceFunction } from "framebatch/lancedb";

declare const embedder: Embedder;

const lance = new LanceFunction({ embedder, model: "tiny" });
export const text: TextEmbeddingFunction = lance;
export const any: LanceEmbedding = lance;
export const schema = LanceSchema({
  text: lance.sourceField(),
  other: new Utf8(),
  vector: lance.vectorField(),
});
export const made = getRegistry()
  .get<LanceFunction>("framebatch")
  ?.create({ model: "tiny" });

registerEmbeddingFunction("framebatch", ChromaFunction);
const chroma = new ChromaFunction({ embedder });
export const embeddingFunction: ChromaEmbedding = chroma;
export const collection = new ChromaClient().createCollection({
  name: "texts",
  embeddingFunction,
});
