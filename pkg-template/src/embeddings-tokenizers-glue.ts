// Imports the glue of the tokenizers' WebAssembly, and tells where that file lies; see
// `embeddings-glue.ts`. The file is fetched where a model's folder needs it.

import { instantiate } from "../wasm/tokenizers.js";
import type { WasmFile } from "./core/wasm-file.js";
import type { TokenizersInstance } from "./embeddings/file-tokenizer.js";
import { glueGlobals } from "./platform/node.js";

/** A new instance of the glue. */
export function startTokenizers(): TokenizersInstance {
  return instantiate(glueGlobals());
}

/** What splits texts beyond WordPiece. */
export const TOKENIZERS: WasmFile = {
  name: "tokenizers_bg.wasm",
  inline: "framebatch/embeddings-inline",
  hasNoOption: true,
  address: () => new URL("../wasm/tokenizers_bg.wasm", import.meta.url),
};
