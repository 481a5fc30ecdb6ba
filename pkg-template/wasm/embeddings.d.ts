// What the entry of embeddings uses of the glue of its WebAssembly file; see
// `framebatch.d.ts`. It is not shipped.
import type { EmbeddingsInstance } from "../src/embeddings/wasm-instance.js";

export declare function instantiate(): EmbeddingsInstance;
