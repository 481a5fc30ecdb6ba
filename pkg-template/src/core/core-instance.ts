// Loads the WebAssembly file, once for all sessions of a page.
//
// Importing this file fetches nothing. A failed load is remembered for a while, because every
// session of a page would ask for the file again, and then forgotten, so that the next session
// may try; an instance that trapped is forgotten at once, because nothing in its memory can be
// trusted.

import { type FramebatchError, fromCore } from "../checks/errors.js";
import { CORE, SCALAR_CORE, start } from "../core-glue.js";
import type { CoreClass, WasmSource } from "./core.js";
import type { CoreHome, Tenant } from "./core-home.js";
import { compileAndStart } from "./wasm-file.js";
import { noteSource } from "./wasm-source.js";

type Uncaught = ErrorEvent & PromiseRejectionEvent;

/**
 * The events of a trap that nobody catches: the core's work in the background runs in
 * microtasks, in timers and in reactions to promises.
 */
const UNCAUGHT = ["error", "unhandledrejection"];

/** A WebAssembly instance: the core's class, and the memory its sessions share. */
export class CoreInstance implements CoreHome {
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

/** A load that failed, and is not tried again before a moment of `performance.now()`. */
interface Failed {
  readonly error: FramebatchError;
  readonly source: WasmSource | undefined;
  readonly until: number;
}

/** Milliseconds without another try after the first failure; after each further one twice as many. */
const PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;

let failed: Failed | undefined;
let pause = PAUSE_MS;

/** Whether this is why the file did not load, and it is too early to try again. */
export function isRemembered(error: unknown): boolean {
  return (
    failed !== undefined &&
    failed.error === error &&
    performance.now() < failed.until
  );
}

/** Loads the core from `source`, or from where the package's file lies. */
export function loadCore(
  source: WasmSource | undefined,
): Promise<CoreInstance> {
  noteSource(source, loading !== undefined);
  const known = failed;
  if (known?.source === source && isRemembered(known?.error)) {
    return Promise.reject(known!.error);
  }
  loading ??= load(source);
  return loading;
}

async function load(source: WasmSource | undefined): Promise<CoreInstance> {
  try {
    const hasVectors = WebAssembly.validate(VECTORS);
    const file = hasVectors ? CORE : SCALAR_CORE;
    const glue = start();
    const { memory } = await compileAndStart(
      "the WebAssembly file",
      file,
      source,
      glue.start,
    );
    failed = undefined;
    pause = PAUSE_MS;
    return new CoreInstance(glue.Core, memory, glue.abandon);
  } catch (error) {
    loading = undefined;
    const until = performance.now() + pause;
    failed = { error: error as FramebatchError, source, until };
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    throw error;
  }
}
