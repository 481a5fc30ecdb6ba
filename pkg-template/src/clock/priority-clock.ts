// Sends calls of high priority at the end of their task, and low work while it may go.
//
// The core says whether low work waits, and how much goes at a time; this file gives it
// tasks of its own, so that a page gets its turn between two slices. Frames do not matter
// here, and calls of normal priority are other clocks' business.

import type { Priority } from "../checks/priority.js";
import { EndOfTask, type Environment } from "../platform/environment.js";

/** What turns are taken of. */
export interface Turning {
  /** Sends what is of high priority, and low work if it `goes`; whether low work waits. */
  turn(goes: boolean): boolean;
  /** From when on low work may use the main thread, on the clock of the environment's `now`. */
  freeFrom(now: number): number;
}

/** The clock beside that of a session's policy. */
export class PriorityClock {
  /** Whether low work may wait, and whether there ever was any. */
  private hasLow = false;
  private isLowUsed = false;
  private timer: unknown;
  private readonly soon: EndOfTask;

  constructor(
    private readonly environment: Environment,
    private readonly session: Turning,
  ) {
    this.soon = new EndOfTask(environment, () => this.fire());
  }

  /** A call of another priority than normal was queued. */
  called(priority: Priority): void {
    if (priority === "low") this.isLowUsed = this.hasLow = true;
    this.soon.post();
  }

  /** Everything was flushed, low work included where nothing goes without. */
  flushed(): void {
    if (!this.isLowUsed) return;
    this.hasLow = true;
    this.soon.post();
  }

  /** Calls of a batch were answered. */
  settled(): void {
    if (this.hasLow) this.soon.post();
  }

  /** Releases timers and ports. Sends nothing. */
  dispose(): void {
    this.clear();
    this.soon.close();
  }

  private fire(): void {
    this.clear();
    const now = this.environment.now();
    const pause = this.hasLow ? this.session.freeFrom(now) - now : 0;
    const waits = this.session.turn(this.hasLow && pause <= 0);
    if (pause <= 0) this.hasLow = waits;
    else this.timer = this.environment.setTimer(() => this.fire(), pause);
  }

  private clear(): void {
    if (this.timer !== undefined) this.environment.clearTimer(this.timer);
    this.timer = undefined;
  }
}
