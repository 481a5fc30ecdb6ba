// Tells producers when the queue has room: `gpu.ready`.
//
// No call is held back here. How full the queue is, the core knows.

import type { FramebatchError } from "../checks/errors.js";
import type { Core } from "../core/core.js";

/** One promise for all who wait for room at the same time. */
export class Backpressure {
  private promise: Promise<void> | undefined;
  private resolve!: () => void;
  private reject!: (error: FramebatchError) => void;

  /** Resolves when there is a core and its queue has room. */
  wait(core: Core | undefined): Promise<void> {
    if (core !== undefined && core.desired_size() > 0) return Promise.resolve();
    if (this.promise === undefined) {
      this.promise = new Promise((resolve, reject) => {
        this.resolve = resolve;
        this.reject = reject;
      });
      // Callers that await the promise get the error; an unobserved one is not reported.
      this.promise.catch(() => {});
    }
    return this.promise;
  }

  /** The queue may have room by now: resolves the promise if it does. */
  offer(core: Core): void {
    if (this.promise === undefined || core.desired_size() <= 0) return;
    this.promise = undefined;
    this.resolve();
  }

  /** The session ended: rejects the promise. */
  close(error: FramebatchError): void {
    if (this.promise === undefined) return;
    this.promise = undefined;
    this.reject(error);
  }
}
