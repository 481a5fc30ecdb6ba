// Flushes a batch when the core says that it has waited long enough.
//
// The core owns the rule (the longest wait, the smallest batch, what is in flight);
// this file only turns the core's answer into timers and tasks.

import { EndOfTask, type Environment } from "../platform/environment.js";

/** The longest wait of a timer: with a longer one it rings at once. A longer wait is taken in several. */
const LONGEST_MS = 2 ** 31 - 1;

/** A batch that a timer flushes. */
export interface Flushable {
  /** Sends what is queued. */
  flush(): void;
  /** When to flush next, on the clock of the environment's `now`; NaN is never. */
  due(now: number): number;
}

/** Flushes when the batch says that it is due, and not before. */
export class FlushTimer {
  /** Whether calls are queued, and not sent yet. */
  isWaiting = false;
  private timer: unknown;
  private readonly soon: EndOfTask;

  constructor(
    private readonly environment: Environment,
    private readonly batch: Flushable,
  ) {
    this.soon = new EndOfTask(environment, () => this.fire());
  }

  /** Asks when the queued calls are due, and asks again at that time. */
  ask(): void {
    this.isWaiting = true;
    this.clear();
    const now = this.environment.now();
    const due = this.batch.due(now);
    if (due <= now) this.soon.post();
    else this.wait(due - now);
  }

  /** Asks at the end of the current task, when all calls of the task are queued. */
  askLater(): void {
    this.isWaiting = true;
    this.soon.post();
  }

  /** Asks anew, if calls are queued: an answer may have made them due. */
  askAgain(): void {
    if (this.isWaiting) this.ask();
  }

  /** Forgets when the queued calls are due, because they were sent. */
  sent(): void {
    this.isWaiting = false;
    this.clear();
  }

  dispose(): void {
    this.clear();
    this.soon.close();
  }

  private clear(): void {
    if (this.timer === undefined) return;
    this.environment.clearTimer(this.timer);
    this.timer = undefined;
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
