// What became of each call of a load: when it was due, and when its answer was there.
//
// A latency counts from the moment at which a call was due, whenever it was made: a page
// that is busy answering calls makes the next ones late, and counting from there would
// leave out just the waits that are long (coordinated omission). A call without an answer
// has waited until now. No clock is asked here.

/** Calls by the times at which they were due, and how many milliseconds each waited. */
export interface Waits {
  readonly due: Float64Array;
  readonly ms: Float64Array;
}

/** A call that got no answer, instead of a latency. */
const REFUSED = -1;

export class Latencies {
  /** The latency of the call at each place; NaN while there is no answer. */
  private readonly ms: Float64Array;
  answered = 0;
  refused = 0;
  /** No call before this place waits. */
  private first = 0;

  /** `due` are the times, by the page's clock, in order. */
  constructor(readonly due: Float64Array) {
    this.ms = new Float64Array(due.length).fill(NaN);
  }

  answer(at: number, now: number): void {
    this.ms[at] = now - this.due[at];
    this.answered += 1;
  }

  refuse(at: number): void {
    this.ms[at] = REFUSED;
    this.refused += 1;
  }

  get isComplete(): boolean {
    return this.answered + this.refused === this.due.length;
  }

  /** How long the oldest call waits that is due and without an answer; 0 where none waits. */
  behind(now: number): number {
    const { ms, due } = this;
    while (this.first < due.length && !Number.isNaN(ms[this.first])) {
      this.first += 1;
    }
    return this.first < due.length ? Math.max(0, now - due[this.first]) : 0;
  }

  /** The waits of all calls that were due by `now` and not refused, in the order of their due times. */
  until(now: number): Waits {
    const { ms, due } = this;
    const kept = Array.from(due.keys()).filter(
      (at) => due[at] <= now && ms[at] !== REFUSED,
    );
    return {
      due: Float64Array.from(kept, (at) => due[at]),
      ms: Float64Array.from(kept, (at) =>
        Number.isNaN(ms[at]) ? now - due[at] : ms[at],
      ),
    };
  }
}
