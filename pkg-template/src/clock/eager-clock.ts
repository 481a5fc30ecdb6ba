// Sends at the end of each task that has calls, as far as the device keeps up.
//
// The core says when: it knows what is in flight. There are no frames here.

import type { Environment } from "../platform/environment.js";
import type { Clock, Clocked } from "./clock.js";
import { FlushTimer } from "./flush-timer.js";

/** The clock behind `flush: "eager"`. */
export class EagerClock implements Clock {
  private waiting = false;
  private readonly timer: FlushTimer;

  constructor(environment: Environment, batch: Clocked) {
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
