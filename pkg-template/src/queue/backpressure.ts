// Tells producers when the queue has room: `gpu.ready`.
//
// It holds back nobody by itself. How full the queue is, is asked of the core.

import type { FramebatchError } from "../checks/errors.js";
import type { Core } from "../core/core.js";

/** One promise for all who wait for room at the same time. */
export class Backpressure {
  private promise: Promise<void> | undefined;
  private resolve!: () => void;
  private reject!: (error: FramebatchError) => void;

  /** Resolves when the core, once there is one, takes calls without a full queue. */
  wait(core: Core | undefined): Promise<void> {
    if (core !== undefined && core.desired_size() > 0) return Promise.resolve();
    if (this.promise === undefined) {
      this.promise = new Promise((resolve, reject) => {
        this.resolve = resolve;
        this.reject = reject;
      });
      // Who asked gets the error; a promise that nobody kept is no accident.
      this.promise.catch(() => {});
    }
    return this.promise;
  }

  /** The queue may have room now. */
  offer(core: Core): void {
    if (this.promise === undefined || core.desired_size() <= 0) return;
    this.promise = undefined;
    this.resolve();
  }

  /** There will be no room any more. */
  close(error: FramebatchError): void {
    if (this.promise === undefined) return;
    this.promise = undefined;
    this.reject(error);
  }
}
