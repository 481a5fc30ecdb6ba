// Wakes the page when calls are due: the page's end of the worker that says so.

/** What the worker is told. */
export interface Schedule {
  /** Milliseconds after `start`, in order. */
  readonly times: Float64Array;
  /** Milliseconds since 1970. */
  readonly start: number;
  /** The first word is 1 when the page has heard the last message; the second word never changes. */
  readonly taken?: Int32Array<SharedArrayBuffer>;
}

export class Ticker {
  private readonly worker = new Worker(
    new URL("./tick-worker.ts", import.meta.url),
    { type: "module" },
  );
  private readonly taken = crossOriginIsolated
    ? new Int32Array(new SharedArrayBuffer(8))
    : undefined;

  /**
   * `tick` is called in a task of its own whenever calls have become due; `fail` where the
   * worker cannot be started.
   */
  constructor(tick: () => void, fail: (error: Error) => void) {
    this.worker.onerror = ({ message }) =>
      fail(
        new Error(
          message ?? "the worker that knows when calls are due is not there",
        ),
      );
    this.worker.onmessage = () => {
      if (this.taken) {
        Atomics.store(this.taken, 0, 1);
        Atomics.notify(this.taken, 0);
      }
      tick();
    };
  }

  /** `start` is a time of the page's clock. */
  start(times: Float64Array<ArrayBuffer>, start: number): void {
    const schedule: Schedule = {
      times,
      start: performance.timeOrigin + start,
      taken: this.taken,
    };
    this.worker.postMessage(schedule);
  }

  stop(): void {
    this.worker.terminate();
  }
}
