// Where the glue of the embeddings' WebAssembly is imported: here, because a bundle lies
// as deep as this file does.

import { instantiate } from "../wasm/embeddings.js";
import type { EmbeddingsInstance } from "./embeddings/wasm-instance.js";

/** A new instance of it. */
export const start: () => EmbeddingsInstance = instantiate;
