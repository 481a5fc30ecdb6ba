// Sends at the end of each task that has calls, as far as the device keeps up.
//
// The core says when: it knows what is in flight. There are no frames here.

import type { Environment } from "../platform/environment.js";
import type { Clock, Clocked } from "./clock.js";
import { FlushTimer } from "./flush-timer.js";

/** The clock behind `flush: "eager"`. */
export class EagerClock implements Clock {
  private readonly timer: FlushTimer;

  constructor(environment: Environment, batch: Clocked) {
    this.timer = new FlushTimer(environment, batch);
  }

  called(): void {
    this.timer.askLater();
  }

  flushed(): void {
    this.timer.sent();
  }

  settled(): void {
    this.timer.askAgain();
  }

  dispose(): void {
    this.timer.dispose();
  }
}
