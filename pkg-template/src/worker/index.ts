// The entry `framebatch/worker`: sessions whose core, device and WebAssembly are in a worker.
//
// The page has the same face as ever (`session.ts`), over a core that logs what is asked
// (`remote-core.ts`). What runs in the worker is `script.ts`.

import { invalid, kindOf } from "../checks/errors.js";
import { Opener, type Surroundings } from "../session/bring-up.js";
import type { OpenOptions } from "../session/open-options.js";
import type { Session } from "../session/session.js";
import { RemoteHome } from "./remote-home.js";
import { hostOf, type WorkerSource } from "./worker-hosts.js";

export { isSupported } from "../core/webgpu.js";
export { CODES, type Code, FramebatchError } from "../checks/errors.js";
export type { OpenOptions } from "../session/open-options.js";
export type { Session } from "../session/session.js";
export type { WorkerSource } from "./worker-hosts.js";

/** What `open` and `shared` take: the options of a session of this thread, and its worker. */
export interface WorkerOptions extends OpenOptions {
  /**
   * The worker to live in: one with the package's `worker-script.js` as its module, its
   * address, or a function that makes one. Default: one that all sessions of the page share.
   */
  worker?: WorkerSource;
}

/**
 * A session whose calls are computed in a worker. Has all that {@link Session} has, but what
 * `explain` gives is a promise; `stats()`, `info` and `desiredSize` are those of the worker's
 * last message; and `device` is undefined, because no `GPUBuffer` reaches from one thread to
 * another.
 */
export type WorkerSession = {
  /** The plan of the calls made in `make`, as text: see {@link Session.explain}. */
  explain(make: () => unknown): Promise<string>;
} & Session;

const surroundings: Surroundings<WorkerOptions> = {
  async home({ worker, ...options }) {
    checkWorker(worker);
    return new RemoteHome(hostOf(worker), options);
  },
  names: { worker: true },
};

const opener = /* @__PURE__ */ new Opener(surroundings);

/**
 * Opens a session in a worker; resolves when its device is up. Rejects as the direct `open`
 * does, and with `unsupported` where the worker cannot be started.
 *
 * @example
 * const gpu = await open();
 * const halfway = await gpu.lerp(new Float32Array([0, 10]), new Float32Array([1, 20]), 0.5);
 * await gpu.dispose();
 */
export async function open(
  options: WorkerOptions = {},
): Promise<WorkerSession> {
  return (await opener.open(options)) as WorkerSession;
}

/**
 * The session in a worker that everything in a page shares, at once: calls wait until its
 * device is up. The first call's options count.
 *
 * @example
 * const gpu = shared();
 * const turned = await gpu.slerp(new Float32Array([0, 0, 0, 1]), new Float32Array([0, 1, 0, 0]), 0.5);
 */
export function shared(options: WorkerOptions = {}): WorkerSession {
  return opener.shared(options) as WorkerSession;
}

function checkWorker(worker: unknown): void {
  const isKnown =
    worker === undefined ||
    typeof worker === "string" ||
    typeof worker === "function" ||
    typeof (worker as Partial<Worker> | null)?.postMessage === "function" ||
    worker instanceof URL;
  if (isKnown) return;
  throw invalid(
    "open",
    `worker must be a Worker, its address, or a function that makes one, got ${kindOf(worker)}`,
  );
}
