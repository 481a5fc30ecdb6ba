// Hurries answers on their way, where the browser is slow to notice them.
//
// Some browsers look only now and then whether a GPU has finished, unless more
// commands arrive; any will do. Whether and how that helps is measured on a session's
// own first batches, never guessed from the browser's name, so it costs no submission
// with work in it. What a nudge and an echo are is not known here.

import { EndOfTask, type Environment } from "../platform/environment.js";

/**
 * How to mode: not at all, by a question after the other to which the browser answers
 * at once, or by empty submissions until the answer is there.
 */
export type PollingMode = "none" | "echo" | "loop";

/** Questions are asked for so long, in milliseconds from the batch. */
const ECHO_MS = 8;

/** A `loop` takes every task for so long, in milliseconds, and then a timer's pace. */
const EVERY_TASK_MS = 20;
const PACE_MS = 5;

/** What answers nothing for so long, in milliseconds, is not waiting to be noticed. */
const LONGEST_MS = 1000;

/** Batches of which nothing is learned: they compile, and make buffers. */
const COLD = 2;

/** Batches measured for each way, and what share of the time it may take to be kept. */
const SAMPLES = 5;
const WORTH = {
  // They cost next to nothing. Batches that follow each other at once can be noticed
  // 2.5 ms late where those that are learned from, further apart, are not.
  echo: 1.5,
  // A load on a small machine.
  loop: 0.85,
};

/** A batch that is not hurried gets help after so long, in milliseconds, while measuring. */
const RESCUE_MS = 10;

/** What is hurried. */
export interface Pollable {
  /** Submits nothing. */
  nudge(): void;
  /** Asks something that needs no GPU; resolves with the browser's answer. Undefined where there is nobody to ask. */
  echo(): Promise<unknown> | undefined;
  /** Batches on their way that the GPU has something of; exact while one is answered. */
  owed(): number;
}

/** The nudges of one session. */
export class CompletionPoller {
  /** How answers are hurried now. */
  mode: PollingMode = "none";
  /** Whether the best way is still being looked for. */
  measuring = true;
  private cold = COLD;
  /** How long batches took in the way that is being measured. */
  private took: number[] = [];
  /** How long they take unhurried; undefined until that is known. */
  private unhurried: number | undefined;
  /** The ways to measure after this one. */
  private untried: PollingMode[] = [];
  /** Whether the batch on its way was sent alone, so that its time tells something. */
  private alone = false;
  /** Whether the GPU had something that was not answered. */
  private waiting = false;
  private since = 0;
  private looping = false;
  private echoing = false;
  private disposed = false;
  private readonly task: EndOfTask;

  constructor(
    private readonly environment: Environment,
    private readonly target: Pollable,
  ) {
    this.task = new EndOfTask(environment, () => this.step());
  }

  /** Batches may have been sent. */
  sent(): void {
    const owed = this.target.owed();
    if (owed === 0) return;
    this.alone = owed === 1;
    this.waiting = true;
    this.since = this.environment.now();
    if (this.mode === "echo") void this.echo();
    else if (this.mode === "loop") this.loop();
    else if (this.measuring) this.rescue(this.since);
  }

  /** A batch was answered. */
  returned(): void {
    // The processor's answers tell nothing.
    if (!this.measuring || !this.waiting) return;
    const owed = this.target.owed();
    if (this.alone && owed > 0) return;
    this.waiting = owed > 0;
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
    this.took.push(milliseconds);
    const isPolled = Math.min(...this.took) > RESCUE_MS;
    // Two are enough of batches that had to be helped.
    const isHelped = this.mode === "none" && isPolled;
    if (this.took.length < (isHelped ? 2 : SAMPLES)) return;
    // Their middle: lateness comes and goes, and so does what else the machine does.
    const usual = this.took.sort((a, b) => a - b)[this.took.length >> 1];
    this.took = [];
    if (this.unhurried === undefined) {
      this.unhurried = usual;
      // A loop is only for browsers that poll. They are told from work that is slow by
      // whether it helps.
      this.untried = isPolled ? ["loop", "echo"] : ["echo"];
    } else if (usual < this.unhurried * this.worth) {
      this.measuring = false;
      return;
    }
    const next = this.untried.shift();
    this.measuring = next !== undefined;
    this.mode = next ?? "none";
  }

  // What share of the unhurried time the way that was measured may take.
  private get worth(): number {
    return this.mode === "loop" ? WORTH.loop : WORTH.echo;
  }

  private get active(): boolean {
    return !this.disposed && this.target.owed() > 0;
  }

  // A browser that looks every 100 ms would keep the first calls of a page waiting.
  private rescue(since: number): void {
    this.environment.setTimer(() => {
      if (this.since === since && this.active) this.loop();
    }, RESCUE_MS);
  }

  // The browser answers behind what it was sent before, so questions never pile up, and
  // the main thread is free in between.
  private async echo(): Promise<void> {
    if (this.echoing) return;
    this.echoing = true;
    try {
      while (this.active && this.environment.now() - this.since < ECHO_MS) {
        const answer = this.target.echo();
        if (answer === undefined) break;
        await answer;
      }
    } catch {
      // The device is lost, which others are told.
    }
    this.echoing = false;
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
    const fast = this.mode === "loop" && waited < EVERY_TASK_MS;
    if (fast) this.task.post();
    else this.environment.setTimer(() => this.step(), PACE_MS);
  }
}
