// Loads the WebAssembly file, once for all sessions of a page.
//
// Importing this file fetches nothing. A failed load is forgotten, so that the next
// session may try again; so is an instance that trapped, because nothing in its memory
// can be trusted.

import { FramebatchError, fromCore } from "../checks/errors.js";
import { scalarFile, start } from "../core-glue.js";
import type { CoreClass, WasmSource } from "./core.js";

/** A session that lives on an instance. */
export interface Tenant {
  /** Throws what the core throws when it has trapped. */
  checkUp(): void;
  /** Answers everything that is pending with this error. */
  end(error: FramebatchError): void;
  /** Keeps out of the core until {@link resume}. */
  pause(): void;
  resume(): void;
}

type Uncaught = ErrorEvent & PromiseRejectionEvent;

/**
 * The events of a trap that nobody catches: the core's work in the background runs in
 * microtasks, in timers and in reactions to promises.
 */
const UNCAUGHT = ["error", "unhandledrejection"];

/** A WebAssembly instance: the core's class, and the memory its sessions share. */
export class CoreInstance {
  private readonly tenants = new Set<Tenant>();

  constructor(
    readonly Core: CoreClass,
    readonly memory: WebAssembly.Memory,
    private readonly abandon: () => void,
  ) {
    for (const type of UNCAUGHT) {
      globalThis.addEventListener?.(type, this.onUncaught);
    }
  }

  /** A session lives on the instance from here on; it may still be opening. */
  add(tenant: Tenant): void {
    this.tenants.add(tenant);
  }

  /** A session ended. */
  remove(tenant: Tenant): void {
    this.tenants.delete(tenant);
  }

  /** Calls a function of the page's in the middle of the core's work. */
  callOut(run: () => void): void {
    const tenants = [...this.tenants];
    for (const tenant of tenants) tenant.pause();
    try {
      run();
    } finally {
      for (const tenant of tenants) tenant.resume();
    }
  }

  /** The instance trapped: every session on it ends, and the next one gets another. */
  condemn(error: FramebatchError): void {
    loading = undefined;
    this.abandon();
    for (const type of UNCAUGHT) {
      globalThis.removeEventListener?.(type, this.onUncaught);
    }
    for (const tenant of this.tenants) tenant.end(error);
  }

  private readonly onUncaught = (event: Event): void => {
    const { error, reason } = event as Partial<Uncaught>;
    const thrown: unknown = error ?? reason;
    if (!(thrown instanceof WebAssembly.RuntimeError)) return;
    let trap: unknown = undefined;
    if (thrown.stack?.includes("framebatch_bg")) trap = thrown;
    try {
      for (const tenant of this.tenants) tenant.checkUp();
    } catch (thrown) {
      trap = thrown;
    }
    if (trap === undefined) return; // Other WebAssembly of the page trapped.
    event.preventDefault();
    this.condemn(fromCore("the core", trap));
  };
}

let loading: Promise<CoreInstance> | undefined;

/** A module that uses a vector: valid where WebAssembly has vectors. */
const VECTORS = Uint8Array.of(
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10],
  ...[1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
);

/** Loads the core from `source`, or from beside the package's scripts. */
export function loadCore(
  source: WasmSource | undefined,
): Promise<CoreInstance> {
  loading ??= load(source);
  return loading;
}

async function load(given: WasmSource | undefined): Promise<CoreInstance> {
  try {
    // Undefined: the glue finds the usual file.
    const hasVectors = WebAssembly.validate(VECTORS);
    const source = given ?? (hasVectors ? undefined : scalarFile());
    const { init, Core, abandon } = start();
    const { memory } = await init(
      source === undefined ? undefined : { module_or_path: source },
    );
    return new CoreInstance(Core, memory, abandon);
  } catch (error) {
    loading = undefined;
    throw new FramebatchError(
      "unsupported",
      `the WebAssembly file could not be loaded (${error instanceof Error ? error.message : error}); give its address or its bytes as the option wasm`,
      { cause: error },
    );
  }
}
