// Says that the option `wasm` of a later session has no effect.
//
// All sessions of a page share one WebAssembly file. Where that is loaded from is decided in
// `core-instance.ts`.

import type { WasmSource } from "./core.js";

let first: WasmSource | undefined;
let isTold = false;

/** Notes what a session gives as the file; warns once where another file is loaded already. */
export function noteSource(
  source: WasmSource | undefined,
  isLoaded: boolean,
): void {
  if (!isLoaded) {
    first = source;
    return;
  }
  if (source === undefined || isTold || isSame(source, first)) return;
  isTold = true;
  console.warn(
    "framebatch: the option wasm has no effect, because the WebAssembly file is loaded; give it to the first session of the page",
  );
}

function isSame(source: WasmSource, other: WasmSource | undefined): boolean {
  const isAddress = typeof source === "string" || source instanceof URL;
  return isAddress ? String(source) === String(other) : source === other;
}
