// What the entry of embeddings uses of the glue of the tokenizers' WebAssembly file; see
// `framebatch.d.ts`. It is not shipped.
import type { TokenizersInstance } from "../src/embeddings/file-tokenizer.js";
import type { GlueGlobals } from "../src/platform/node.js";

export declare function instantiate(globals: GlueGlobals): TokenizersInstance;
