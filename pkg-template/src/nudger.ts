// Hurries answers on their way, where the browser is slow to notice them.
//
// Some browsers look only now and then whether a GPU has finished, unless more
// commands arrive; empty ones will do. Whether and how much that helps is measured
// once a session, never guessed from the browser's name. What a nudge is, and how
// many there were, is the core's.

import { EndOfTask, type Environment } from "./environment.js";

/** How to hurry: not at all, by a few empty submissions, or until the answer is there. */
export type Hurry = "none" | "few" | "loop";

/** Empty submissions of a `few`. */
const FEW = 4;

/** A `loop` takes every task for so long, in milliseconds, and then a timer's pace. */
const EVERY_TASK_MS = 20;
const PACE_MS = 5;

/** What answers nothing for so long, in milliseconds, is not waiting to be noticed. */
const LONGEST_MS = 1000;

/** Read-backs measured for each way, and how much faster a way must be to be worth it. */
const SAMPLES = 3;
const WORTH = 0.8;

/** A read-back as fast as this, in milliseconds, cannot be hurried. */
const FAST_MS = 0.3;

/** What is hurried. */
export interface Hurried {
  /** Submits nothing. */
  nudge(): void;
  /** Batches on their way. */
  flights(): number;
  /** One small read-back. */
  probe(): Promise<void>;
}

/** The nudges of one session. */
export class Nudger {
  /** How answers are hurried. */
  hurry: Hurry = "none";
  private probing = false;
  private since = 0;
  private looping = false;
  private timers = 0;
  private disposed = false;
  private readonly task: EndOfTask;

  constructor(
    private readonly environment: Environment,
    private readonly target: Hurried,
  ) {
    this.task = new EndOfTask(environment, () => this.step());
  }

  /** Batches were sent. */
  sent(): void {
    if (this.hurry === "none") return;
    this.since = this.environment.now();
    if (this.hurry === "few") this.few();
    else if (!this.looping) {
      this.looping = true;
      this.task.post();
    }
  }

  /** Measures which way is the fastest here, and keeps it. */
  async choose(): Promise<void> {
    this.probing = true;
    await this.target.probe(); // The first one also makes the buffers.
    const none = await this.measure("none");
    let best: Hurry = "none";
    if (none > FAST_MS) {
      let least = none * WORTH;
      for (const hurry of ["few", "loop"] as const) {
        const took = await this.measure(hurry);
        if (took >= least) continue;
        least = took;
        best = hurry;
      }
    }
    this.probing = false;
    this.hurry = best;
  }

  /** Stops, whatever is on its way. */
  dispose(): void {
    this.disposed = true;
    this.task.close();
  }

  private async measure(hurry: Hurry): Promise<number> {
    this.hurry = hurry;
    const took: number[] = [];
    let total = 0;
    // One is enough where each takes a tenth of a second.
    while (took.length < SAMPLES && total < 50) {
      const start = this.environment.now();
      const done = this.target.probe();
      this.sent();
      await done;
      took.push(this.environment.now() - start);
      total += took[took.length - 1];
    }
    took.sort((a, b) => a - b);
    return took[took.length >> 1];
  }

  private get active(): boolean {
    return !this.disposed && (this.probing || this.target.flights() > 0);
  }

  private few(): void {
    // Those of the last batch, if any are left, do for this one as well.
    for (; this.timers < FEW; this.timers += 1) {
      this.environment.setTimer(() => {
        this.timers -= 1;
        if (this.active) this.target.nudge();
      }, 0);
    }
  }

  private step(): void {
    const waited = this.environment.now() - this.since;
    if (!this.active || this.hurry !== "loop" || waited > LONGEST_MS) {
      this.looping = false;
      return;
    }
    this.target.nudge();
    if (waited < EVERY_TASK_MS) this.task.post();
    else this.environment.setTimer(() => this.step(), PACE_MS);
  }
}
