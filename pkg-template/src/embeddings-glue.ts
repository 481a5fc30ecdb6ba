// Imports the glue of the embeddings' WebAssembly, and tells where that file lies: beside the
// folders, because a bundle lies as deep as this file does. Nothing is fetched by importing
// this file.

import { instantiate } from "../wasm/embeddings.js";
import type { WasmFile } from "./core/wasm-file.js";
import type { EmbeddingsInstance } from "./embeddings/wasm-instance.js";
import { glueGlobals } from "./platform/node.js";

/** A new instance of the glue. */
export function start(): EmbeddingsInstance {
  return instantiate(glueGlobals());
}

/** What splits texts and describes forward passes. */
export const EMBEDDINGS: WasmFile = {
  name: "embeddings_bg.wasm",
  inline: "framebatch/embeddings-inline",
  address: () => new URL("../wasm/embeddings_bg.wasm", import.meta.url),
};
