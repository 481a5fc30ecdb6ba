// What a core lives on, as sessions know it: a WebAssembly instance in the same thread
// (`core-instance.ts`), or a worker.

import type { FramebatchError } from "../checks/errors.js";
import type { CoreClass, WasmSource } from "./core.js";

/** A session that lives on a home. */
export interface Tenant {
  /** Throws what the core throws when it has trapped. */
  checkUp(): void;
  /** Answers everything that is pending with this error. */
  end(error: FramebatchError): void;
  /** Keeps out of the core until {@link resume}. */
  pause(): void;
  resume(): void;
}

/** Where cores live whose operands one memory takes. */
export interface CoreHome {
  readonly Core: CoreClass;
  /** What operands are written to. */
  readonly memory: { readonly buffer: ArrayBuffer };
  /** A session lives there from here on; it may still be opening. */
  add(tenant: Tenant): void;
  /** A session ended. */
  remove(tenant: Tenant): void;
  /** Nothing of it can be trusted any more: every session on it ends. */
  condemn(error: FramebatchError): void;
  /** Calls a function of the page's in the middle of a core's work. */
  callOut(run: () => void): void;
}

/** Finds or makes a home for the core of a session with these options. */
export type FindHome<Options = { wasm?: WasmSource }> = (
  options: Options,
) => Promise<CoreHome>;
