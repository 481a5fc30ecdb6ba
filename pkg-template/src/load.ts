// Loads the WebAssembly file, once for all sessions of a page.
//
// Importing this file fetches nothing. A failed load is forgotten, so that the
// next session may try again.

import init, { Core } from "../wasm/framebatch.js";
import type { CoreClass, WasmSource } from "./core.js";
import { FramebatchError } from "./errors.js";

/** The core's class and the memory its sessions share. */
export interface Loaded {
  readonly Core: CoreClass;
  readonly memory: WebAssembly.Memory;
}

let loading: Promise<Loaded> | undefined;

/** Loads the core from `source`, or from beside the package's scripts. */
export function loadCore(source: WasmSource | undefined): Promise<Loaded> {
  loading ??= load(source);
  return loading;
}

async function load(source: WasmSource | undefined): Promise<Loaded> {
  try {
    const { memory } = await init(
      source === undefined ? undefined : { module_or_path: source },
    );
    return { Core, memory };
  } catch (error) {
    loading = undefined;
    throw new FramebatchError(
      "unsupported",
      `the WebAssembly file could not be loaded (${error instanceof Error ? error.message : error}); give its address or its bytes as the option wasm`,
      { cause: error },
    );
  }
}
