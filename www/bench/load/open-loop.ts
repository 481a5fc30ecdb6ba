// Makes the calls of a load when they are due, and waits for none of them.
//
// The loop is open: whoever answers slowly is asked no less often. Where the answers fall
// behind by some seconds it stops, because everything after that waits longer and longer.
// The loop opens nothing, and decides nothing about what is asked.

import { FramebatchError } from "framebatch";
import { sequence } from "../ops/inputs.ts";
import type { Call } from "../ops/op.ts";
import { Latencies } from "./latencies.ts";
import type { Kind } from "./mix.ts";
import type { Target } from "./system.ts";
import { Ticker } from "./ticker.ts";

/** The seed of the calls' kinds, other than that of due times: what a call is has nothing to do with when it comes. */
const KIND_SEED = 54321;
/** Nobody waits longer for an answer than this; the load then ends. */
const BEHIND_MS = 3000;
/** How long answers are waited for that come too late to count. */
const IDLE_MS = 20_000;
/** How often it looks whether that is so. */
const LOOK_MS = 100;
/** Calls that are overdue are made for so long in one task; then others get their turn. */
const SLICE_MS = 4;
/** From the order to begin to the first due time: longer than a worker takes to start. */
const LEAD_MS = 150;
/** Answers that are kept to be checked, about. */
const SAMPLES = 500;

/** An answer that is checked afterwards. */
export interface Sample {
  readonly kind: number;
  readonly call: Call;
  readonly answer: Float32Array;
}

/** What a load did. */
export interface Outcome {
  readonly latencies: Latencies;
  /** When it began and ended, by the page's clock. */
  readonly start: number;
  readonly end: number;
  /** How much later than due a call was made: what the page added before anybody was asked. */
  readonly late: Float64Array;
  /** Milliseconds that the oldest call had waited where it was stopped for that. */
  readonly stoppedBehind: number | undefined;
  readonly samples: readonly Sample[];
}

export class OpenLoop {
  private readonly ticker = new Ticker(
    () => this.makeDue(),
    (error) => this.fail(error),
  );
  private readonly again = new MessageChannel();
  /** When the first call may be due, by the page's clock. */
  readonly start = performance.now() + LEAD_MS;
  private readonly latencies: Latencies;
  private readonly late: Float64Array;
  private readonly draw = sequence(KIND_SEED);
  private readonly samples: Sample[] = [];
  private readonly sampled: number;
  private made = 0;
  private ended = false;
  private readonly looking: number;
  private asking = 0;
  private whenIdle = () => {};
  private resolve!: (outcome: Outcome) => void;
  private reject!: (reason: unknown) => void;
  /** Resolves when all calls are answered, or when it stopped; rejects where a call failed. */
  readonly done = new Promise<Outcome>((resolve, reject) => {
    Object.assign(this, { resolve, reject });
  });

  /** `times` are milliseconds from the beginning, in order. */
  constructor(
    private readonly target: Target,
    private readonly kinds: readonly Kind[],
    times: Float64Array<ArrayBuffer>,
    private readonly signal: AbortSignal,
  ) {
    this.latencies = new Latencies(times.map((time) => time + this.start));
    this.late = new Float64Array(times.length);
    this.sampled = Math.ceil(times.length / SAMPLES);
    this.again.port1.onmessage = () => this.makeDue();
    this.looking = setInterval(() => this.look(), LOOK_MS);
    this.ticker.start(times, this.start);
  }

  /** Resolves when nobody owes an answer, also of calls that it did not wait for; soon, or it gives up. */
  async idle(): Promise<void> {
    if (this.asking === 0) return;
    await new Promise<void>((resolve) => {
      this.whenIdle = resolve;
      setTimeout(resolve, IDLE_MS);
    });
  }

  private makeDue(): void {
    const { due } = this.latencies;
    const began = performance.now();
    while (!this.ended && this.made < due.length) {
      const now = performance.now();
      if (due[this.made] > now) return;
      if (now > began + SLICE_MS) {
        this.again.port2.postMessage(null);
        return;
      }
      this.late[this.made] = now - due[this.made];
      this.make(this.made);
      this.made += 1;
    }
  }

  private make(at: number): void {
    const { kinds, latencies } = this;
    const kind = Math.floor(this.draw() * kinds.length);
    const { calls } = kinds[kind];
    const call = calls[at % calls.length];
    this.asking += 1;
    this.target.ask(kind, call).then(
      (answer) => {
        this.settle();
        if (this.ended) return;
        latencies.answer(at, performance.now());
        if (at % this.sampled === 0) this.samples.push({ kind, call, answer });
        if (latencies.isComplete) this.end();
      },
      (error: unknown) => {
        this.settle();
        if (this.ended) return;
        if (!isRefusal(error)) return this.fail(error);
        latencies.refuse(at);
        if (latencies.isComplete) this.end();
      },
    );
  }

  private settle(): void {
    this.asking -= 1;
    if (this.asking === 0) this.whenIdle();
  }

  private look(): void {
    if (this.signal.aborted) return this.fail(this.signal.reason);
    const behind = this.latencies.behind(performance.now());
    if (behind > BEHIND_MS) this.end(behind);
  }

  private end(stoppedBehind?: number): void {
    this.stop();
    const { latencies, start, late, samples, made } = this;
    this.resolve({
      ...{ latencies, start, end: performance.now() },
      ...{ late: late.subarray(0, made), stoppedBehind, samples },
    });
  }

  private fail(error: unknown): void {
    this.stop();
    this.reject(error);
  }

  private stop(): void {
    this.ended = true;
    clearInterval(this.looking);
    this.ticker.stop();
    this.again.port1.close();
  }
}

/** Whether a full queue said no, as it should. */
export const isRefusal = (error: unknown) =>
  error instanceof FramebatchError && error.code === "queue-full";
