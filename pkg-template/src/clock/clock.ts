// Decides when a session's batch is sent: the clocks other than the frame clock.
//
// A clock hears of calls, flushes and answers, and flushes in return. It knows no call,
// no ticket and no core, and its environment comes in as an argument.

import { report } from "../checks/errors.js";
import type { Environment } from "../platform/environment.js";
import { FlushTimer, type Flushable } from "./flush-timer.js";
import { FrameClock } from "./frame-clock.js";

/** A caller's own clock: gets `flush` when a batch gets its first call, and calls it when it likes. */
export type Scheduler = (flush: () => void) => void;

/** When a session's clock flushes. */
export type FlushPolicy = "frame" | "eager" | "manual" | Scheduler;

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
  batch: Flushable,
): Clock {
  if (typeof policy === "function") return new SchedulerClock(policy, batch);
  if (policy === "manual") return new ManualClock();
  if (policy === "eager") return new EagerClock(environment, batch);
  return new FrameClock(environment, batch);
}

/** Flushes at the end of the current task if the GPU is idle, and otherwise when the core says so. */
class EagerClock implements Clock {
  private waiting = false;
  private readonly timer: FlushTimer;

  constructor(environment: Environment, batch: Flushable) {
    this.timer = new FlushTimer(environment, batch);
  }

  called(): void {
    this.waiting = true;
    this.timer.askLater();
  }

  flushed(): void {
    this.waiting = false;
    this.timer.clear();
  }

  settled(): void {
    if (this.waiting) this.timer.ask();
  }

  dispose(): void {
    this.timer.dispose();
  }
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
    batch: Flushable,
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
