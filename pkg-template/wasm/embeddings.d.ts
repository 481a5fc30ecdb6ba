// What the entry of embeddings uses of the glue of its WebAssembly file; see
// `framebatch.d.ts`. It is not shipped.
import type { EmbeddingsInstance } from "../src/embeddings/wasm-instance.js";
import type { GlueGlobals } from "../src/platform/node.js";

export declare function instantiate(globals: GlueGlobals): EmbeddingsInstance;
