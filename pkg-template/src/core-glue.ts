// Imports the glue of the core, and tells where the package's files lie: beside the
// folders, because a bundle lies as deep as this file does.
//
// Nothing is fetched by importing this file.

import { instantiate } from "../wasm/framebatch.js";
import type { CoreGlue } from "./core/core.js";

/** A new instance of the glue. */
export const start: () => CoreGlue = instantiate;

/** The WebAssembly file for browsers without vectors; the glue itself finds the usual one. */
export function scalarFile(): URL {
  return new URL("../wasm/framebatch_bg_scalar.wasm", import.meta.url);
}

/** The address of the folder of the package's scripts. */
export function scriptFolder(): string {
  // Bundlers would take `new URL(…)` for the address of an asset.
  return import.meta.url.replace(/[^/]*$/, "");
}
