// Imports the glue of the embeddings' WebAssembly: beside the folders, because a bundle
// lies as deep as this file does. Nothing is fetched by importing this file.

import { instantiate } from "../wasm/embeddings.js";
import type { EmbeddingsInstance } from "./embeddings/wasm-instance.js";

/** A new instance of the glue. */
export const start: () => EmbeddingsInstance = instantiate;
