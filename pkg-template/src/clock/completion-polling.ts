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

/** How long a `loop` nudges as fast as the browser takes nudges, and how far apart after that, in milliseconds. */
const FAST_MS = 20;
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

/** A batch that is answered so soon behind its first nudge was done, and not noticed. */
const NOTICED_MS = 6;

/** The share of the time of batches that were nudged that a loop may take, which is their time too. */
const WORTH_OF_LATE = 1.5;

/**
 * Once a mode is chosen: successive batches, so slow and so many times slower than batches
 * were without polling, after which everything is measured again. A browser may notice
 * batches in passing while a page is drawn, and no more when nothing moves.
 */
const RELAPSE = { batches: 3, milliseconds: 50, times: 4 };

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
  /** When the batch in flight was nudged first, if it had to be. */
  private nudgedAt: number | undefined;
  /** Batches among `took` that were answered behind a nudge, and whether most were without polling. */
  private lateBatches = 0;
  private isLate = false;
  /** Successive batches that were far slower than when the mode was chosen. */
  private relapses = 0;
  /** The modes to measure after this one. */
  private untried: PollingMode[] = [];
  /** Whether the batch in flight was sent alone, so that its time tells something. */
  private alone = false;
  /** Whether a GPU had a batch in flight when last asked. */
  private waiting = false;
  private since = 0;
  private looping = false;
  /** Nudges so far: only the newest has a next one behind it. */
  private turn = 0;
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
    this.nudgedAt = undefined;
    if (this.mode === "echo") void this.echo();
    else if (this.mode === "loop") this.loop();
    else if (this.measuring) this.rescue(this.since);
  }

  /** A batch was answered. */
  returned(): void {
    // A batch of the CPU tells nothing of how a GPU is noticed.
    if (!this.waiting) return;
    const owed = this.target.owed();
    if (this.alone && owed > 0) return;
    this.waiting = owed > 0;
    if (this.cold > 0) this.cold -= 1;
    else if (this.alone) {
      const now = this.environment.now();
      if (this.measuring) this.learn(now - this.since, now);
      else this.watch(now - this.since);
    }
    this.alone = false;
  }

  /** Stops polling, whatever is in flight. */
  dispose(): void {
    this.disposed = true;
    this.task.close();
  }

  private watch(milliseconds: number): void {
    const { batches, times } = RELAPSE;
    const usual = Math.max(this.unpolled! * times, RELAPSE.milliseconds);
    this.relapses = milliseconds > usual ? this.relapses + 1 : 0;
    if (this.relapses < batches) return;
    this.relapses = 0;
    this.unpolled = undefined;
    this.mode = "none";
    this.measuring = true;
  }

  private learn(milliseconds: number, now: number): void {
    this.took.push(milliseconds);
    const { nudgedAt } = this;
    if (nudgedAt !== undefined && now - nudgedAt <= NOTICED_MS)
      this.lateBatches += 1;
    const isPolled = Math.min(...this.took) >= RESCUE_MS;
    // Two samples are enough where batches had to be nudged.
    const isHelped = this.mode === "none" && isPolled;
    if (this.took.length < (isHelped ? 2 : SAMPLES)) return;
    // The median: lateness comes and goes, and so does what else the machine does.
    const usual = this.took.sort((a, b) => a - b)[this.took.length >> 1];
    const isLate = this.lateBatches * 2 > this.took.length;
    this.took = [];
    this.lateBatches = 0;
    if (this.unpolled === undefined) {
      this.unpolled = usual;
      this.isLate = isLate;
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
    if (this.mode === "echo") return WORTH.echo;
    return this.isLate ? WORTH_OF_LATE : WORTH.loop;
  }

  private get active(): boolean {
    return !this.disposed && this.target.owed() > 0;
  }

  // A browser that looks every 100 ms would keep the first calls of a page waiting.
  private rescue(since: number): void {
    this.environment.setLooseTimer(() => {
      if (this.since !== since || !this.active) return;
      this.nudgedAt = this.environment.now();
      this.loop();
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
    // A batch that is measured without polling gets no nudges that were meant for another.
    const isUnpolled = this.measuring && this.alone && this.mode === "none";
    const isStray = isUnpolled && this.nudgedAt === undefined;
    if (!this.active || isStray || waited > LONGEST_MS) {
      this.looping = false;
      return;
    }
    this.target.nudge();
    const turn = (this.turn += 1);
    const isFast = this.mode === "loop" && waited < FAST_MS;
    if (isFast) void this.stepWhenTaken(turn);
    this.environment.setLooseTimer(() => {
      if (this.turn === turn) this.step();
    }, PACE_MS);
  }

  // The next nudge waits until the browser has taken this one. Nudges without a pause
  // would queue up before the work that they are for, a hundred thousand a second.
  private async stepWhenTaken(turn: number): Promise<void> {
    try {
      await this.target.echo();
    } catch {
      // The device is lost; the core hears of that by itself.
    }
    if (this.turn !== turn || this.disposed) return;
    this.turn += 1; // The timer comes too late.
    this.task.post();
  }
}
