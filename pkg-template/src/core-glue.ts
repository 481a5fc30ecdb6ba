// Imports the glue of the core, and tells where its files lie: beside the folders,
// because a bundle lies as deep as this file does.
//
// Nothing is fetched by importing this file.

import { instantiate } from "../wasm/framebatch.js";
import type { CoreGlue } from "./core/core.js";
import type { WasmFile } from "./core/wasm-file.js";
import { glueGlobals } from "./platform/node.js";

/** A new instance of the glue. */
export function start(): CoreGlue {
  return instantiate(glueGlobals());
}

/** The core, with WebAssembly's vectors. */
export const CORE: WasmFile = {
  name: "framebatch_bg.wasm",
  inline: "framebatch/inline",
  address: () => new URL("../wasm/framebatch_bg.wasm", import.meta.url),
};

/** The core for engines without vectors. */
export const SCALAR_CORE: WasmFile = {
  name: "framebatch_bg_scalar.wasm",
  inline: "framebatch/inline",
  address: () => new URL("../wasm/framebatch_bg_scalar.wasm", import.meta.url),
};
