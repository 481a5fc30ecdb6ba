// Has the browser look for finished batches, where it is slow to notice them.
//
// Some browsers look only now and then whether a GPU has finished, unless more
// commands arrive; any command will do. Whether and how commands help is measured on a
// session's own first batches, never guessed from the browser's name, so measuring
// costs no submission with work in it. What a nudge and an echo are is not known here.

import { EndOfTask, type Environment } from "../platform/environment.js";

/**
 * How to poll: not at all, by one question after the other that the browser answers at
 * once (echoes), or by empty submissions (nudges) until the batch is answered.
 */
export type PollingMode = "none" | "echo" | "loop";

/** How long echoes are asked for, in milliseconds from the batch. */
const ECHO_MS = 8;

/** How long a `loop` nudges in every task, and how far apart after that, in milliseconds. */
const EVERY_TASK_MS = 20;
const PACE_MS = 5;

/** Milliseconds without an answer after which a batch is slow work, and not waiting to be noticed. */
const LONGEST_MS = 1000;

/** First batches, which teach nothing: they compile kernels and make buffers. */
const COLD = 2;

/** Batches measured for each mode, and the share of the unpolled time that it may take to be kept. */
const SAMPLES = 5;
const WORTH = {
  // Echoes cost next to nothing, and help batches that follow each other at once, which
  // can be noticed 2.5 ms late although the measured batches, further apart, are not.
  echo: 1.5,
  // Nudges are a load on a small machine.
  loop: 0.85,
};

/** While measuring, milliseconds after which a batch that is not polled for is nudged. */
const RESCUE_MS = 10;

/** What is polled. */
export interface Pollable {
  /** Submits nothing. */
  nudge(): void;
  /** Asks the browser a question that needs no GPU; resolves with its answer. Undefined without a device. */
  echo(): Promise<unknown> | undefined;
  /** Batches in flight on a GPU; exact while one is answered. */
  owed(): number;
}

/** The polling of one session. */
export class CompletionPoller {
  /** How batches are polled for now. */
  mode: PollingMode = "none";
  /** Whether the best mode is still being looked for. */
  measuring = true;
  private cold = COLD;
  /** How long batches took in the mode that is being measured. */
  private took: number[] = [];
  /** How long batches take without polling; undefined until that is known. */
  private unpolled: number | undefined;
  /** The modes to measure after this one. */
  private untried: PollingMode[] = [];
  /** Whether the batch in flight was sent alone, so that its time tells something. */
  private alone = false;
  /** Whether a GPU had a batch in flight when last asked. */
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
    // A batch of the CPU tells nothing of how a GPU is noticed.
    if (!this.measuring || !this.waiting) return;
    const owed = this.target.owed();
    if (this.alone && owed > 0) return;
    this.waiting = owed > 0;
    if (this.cold > 0) this.cold -= 1;
    else if (this.alone) this.learn(this.environment.now() - this.since);
    this.alone = false;
  }

  /** Stops polling, whatever is in flight. */
  dispose(): void {
    this.disposed = true;
    this.task.close();
  }

  private learn(milliseconds: number): void {
    this.took.push(milliseconds);
    const isPolled = Math.min(...this.took) > RESCUE_MS;
    // Two samples are enough where batches had to be nudged.
    const isHelped = this.mode === "none" && isPolled;
    if (this.took.length < (isHelped ? 2 : SAMPLES)) return;
    // The median: lateness comes and goes, and so does what else the machine does.
    const usual = this.took.sort((a, b) => a - b)[this.took.length >> 1];
    this.took = [];
    if (this.unpolled === undefined) {
      this.unpolled = usual;
      // A loop is only for browsers that look now and then. Slow work looks the same, but
      // a loop does not help it.
      this.untried = isPolled ? ["loop", "echo"] : ["echo"];
    } else if (usual < this.unpolled * this.worth) {
      this.measuring = false;
      return;
    }
    const next = this.untried.shift();
    this.measuring = next !== undefined;
    this.mode = next ?? "none";
  }

  // The share of the unpolled time that the measured mode may take.
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

  // The browser answers an echo behind all that it was sent before, so echoes never pile
  // up, and the main thread is free in between.
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
      // The device is lost; the core hears of that by itself.
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
