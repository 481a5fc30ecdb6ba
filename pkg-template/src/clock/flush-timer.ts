// Flushes a batch when the core says that it has waited long enough.
//
// The core owns the rule (the longest wait, the smallest batch, what is in flight);
// this file only turns the core's answer into timers and tasks.

import { EndOfTask, type Environment } from "../platform/environment.js";

/** The longest wait of a timer: with a longer one it rings at once. A longer wait is taken in several. */
const LONGEST_MS = 2 ** 31 - 1;

/** What a timer flushes. */
export interface Flushable {
  /** Sends what is queued. */
  flush(): void;
  /** When to flush next, on the clock of the environment's `now`; NaN is never. */
  due(now: number): number;
}

/** Flushes when the batch says that it is due, and not before. */
export class FlushTimer {
  private timer: unknown;
  private readonly soon: EndOfTask;

  constructor(
    private readonly environment: Environment,
    private readonly batch: Flushable,
  ) {
    this.soon = new EndOfTask(environment, () => this.fire());
  }

  /** Asks when the batch is due, and asks again at that time. */
  ask(): void {
    this.clear();
    const now = this.environment.now();
    const due = this.batch.due(now);
    if (due <= now) this.soon.post();
    else this.wait(due - now);
  }

  /** Asks at the end of the current task, when all calls of the task are queued. */
  askLater(): void {
    this.soon.post();
  }

  /** Forgets when the batch is due, because it was sent. */
  clear(): void {
    if (this.timer === undefined) return;
    this.environment.clearTimer(this.timer);
    this.timer = undefined;
  }

  dispose(): void {
    this.clear();
    this.soon.close();
  }

  private wait(milliseconds: number): void {
    if (Number.isNaN(milliseconds)) return;
    const pause = Math.min(Math.ceil(milliseconds), LONGEST_MS);
    this.timer = this.environment.setTimer(() => this.fire(), pause);
  }

  private fire(): void {
    this.clear();
    const now = this.environment.now();
    const due = this.batch.due(now);
    if (due <= now) this.batch.flush();
    else this.wait(due - now);
  }
}
