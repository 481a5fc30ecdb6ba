// Hurries answers on their way, where the browser is slow to notice them.
//
// Some browsers look only now and then whether a GPU has finished, unless more
// commands arrive; empty ones will do. Whether and how that helps is measured on a
// session's own first batches, never guessed from the browser's name, so it costs
// no submission with work in it. What a nudge is, and how many there were, is the
// core's.

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

/** Batches of which nothing is learned: they compile, and make buffers. */
const COLD = 2;

/** Batches measured for each way, and how much faster a way must be to be worth it. */
const SAMPLES = 5;
const WORTH = 0.7;

/** A batch that is not hurried gets help after so long, in milliseconds, while measuring. */
const RESCUE_MS = 10;

/** The ways that are measured, in order; a loop is a load on a small machine, and only for browsers that poll. */
const WAYS: readonly Hurry[] = ["none", "few"];

/** What is hurried. */
export interface Hurried {
  /** Submits nothing. */
  nudge(): void;
  /** Batches on their way. */
  flights(): number;
}

/** The nudges of one session. */
export class Nudger {
  /** How answers are hurried now. */
  hurry: Hurry = "none";
  /** Whether the best way is still being looked for. */
  measuring = true;
  private cold = COLD;
  private readonly took: number[][] = WAYS.map(() => []);
  /** Whether the batch on its way was sent alone, so that its time tells something. */
  private alone = false;
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

  /** Batches may have been sent. */
  sent(): void {
    const flights = this.target.flights();
    if (flights === 0) return;
    this.alone = flights === 1;
    this.since = this.environment.now();
    if (this.hurry === "few") this.few();
    else if (this.hurry === "loop") this.loop();
    else if (this.measuring) this.rescue(this.since);
  }

  /** A batch was answered. */
  returned(): void {
    if (!this.measuring) return;
    if (this.cold > 0) this.cold -= 1;
    else if (this.alone) this.learn(this.environment.now() - this.since);
    this.alone = false;
  }

  /** Stops, whatever is on its way. */
  dispose(): void {
    this.disposed = true;
    this.task.close();
  }

  private learn(milliseconds: number): void {
    const way = WAYS.indexOf(this.hurry);
    this.took[way].push(milliseconds);
    const polled = Math.min(...this.took[0]) > RESCUE_MS;
    // Two are enough where both had to be helped.
    const samples = way === 0 && polled ? 2 : SAMPLES;
    if (this.took[way].length < samples) return;
    if (polled) {
      // Only a loop is sure to come after the work is done.
      this.measuring = false;
      this.hurry = "loop";
    } else if (this.hurry === "none") this.hurry = "few";
    else this.choose();
  }

  private choose(): void {
    this.measuring = false;
    // The fastest of each, because whatever else the machine does only adds to it.
    const [none, few] = this.took.map((times) => Math.min(...times));
    this.hurry = few < none * WORTH ? "few" : "none";
  }

  private get active(): boolean {
    return !this.disposed && this.target.flights() > 0;
  }

  // A browser that looks every 100 ms would keep the first calls of a page waiting.
  private rescue(since: number): void {
    this.environment.setTimer(() => {
      if (this.since === since && this.active) this.loop();
    }, RESCUE_MS);
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

  private loop(): void {
    if (this.looping) return;
    this.looping = true;
    this.task.post();
  }

  private step(): void {
    const waited = this.environment.now() - this.since;
    if (!this.active || waited > LONGEST_MS) {
      this.looping = false;
      return;
    }
    this.target.nudge();
    const fast = this.hurry === "loop" && waited < EVERY_TASK_MS;
    if (fast) this.task.post();
    else this.environment.setTimer(() => this.step(), PACE_MS);
  }
}
