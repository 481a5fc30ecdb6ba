// Decides when a session's batch is sent: what a clock is, and which one a policy means.
//
// A clock hears of calls, flushes and answers, and flushes in return. It knows no call,
// no ticket and no core, and its environment comes in as an argument.

import { report } from "../checks/errors.js";
import type { Environment } from "../platform/environment.js";
import { AutoClock } from "./auto-clock.js";
import { EagerClock } from "./eager-clock.js";
import { FrameClock } from "./frame-clock.js";

/** A caller's own clock: gets `flush` when a batch gets its first call, and calls it when it likes. */
export type Scheduler = (flush: () => void) => void;

/** When a session's clock flushes. */
export type FlushPolicy = "auto" | "frame" | "eager" | "manual" | Scheduler;

/** What a clock flushes. */
export interface Clocked {
  /** Sends what is queued. */
  flush(): void;
  /** When to flush next, on the clock of the environment's `now`; NaN is never. */
  due(now: number): number;
  /** The same where the end of each frame flushes anyway. */
  dueInFrames(now: number): number;
}

/** A flush policy at work. */
export interface Clock {
  /** A call was queued. Invoked for every call, so it must be cheap. */
  called(): void;
  /** Every queued call was sent, whoever asked for that. */
  flushed(): void;
  /** Calls of a batch were answered. */
  settled(): void;
  /** Releases timers, ports and listeners. Flushes nothing. */
  dispose(): void;
}

/** The clock of a flush policy. */
export function clockFor(
  policy: FlushPolicy,
  environment: Environment,
  batch: Clocked,
): Clock {
  if (typeof policy === "function") return new SchedulerClock(policy, batch);
  if (policy === "manual") return new ManualClock();
  if (policy === "eager") return new EagerClock(environment, batch);
  if (policy === "frame") return new FrameClock(environment, batch);
  return new AutoClock(environment, batch);
}

/** Never flushes: the caller does. */
class ManualClock implements Clock {
  called(): void {}
  flushed(): void {}
  settled(): void {}
  dispose(): void {}
}

/** Gives `flush` to the caller's own scheduler, once a batch. */
class SchedulerClock implements Clock {
  private waiting = false;
  private readonly flush: () => void;

  constructor(
    private readonly scheduler: Scheduler,
    batch: Clocked,
  ) {
    this.flush = () => batch.flush();
  }

  called(): void {
    if (this.waiting) return;
    this.waiting = true;
    try {
      this.scheduler(this.flush);
    } catch (error) {
      // The call itself is sound; the next call asks the scheduler again.
      this.waiting = false;
      report(error);
    }
  }

  flushed(): void {
    this.waiting = false;
  }

  settled(): void {}

  dispose(): void {}
}
