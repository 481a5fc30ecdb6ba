// Priorities of an embedder: calls of a higher priority are answered before slices of a
// lower one begin. And the size of slices of low priority.
//
// Counts and numbers only: no call is made here, and there is no clock.

/** All priorities, the lowest first. */
export const PRIORITIES = ["low", "normal", "high"] as const;

/** How urgent a call of an embedder is. */
export type Priority = (typeof PRIORITIES)[number];

/** Counts the pending calls of each priority. */
export class Priorities {
  private readonly waiting = { low: 0, normal: 0, high: 0 };
  private wakes: (() => void)[] = [];

  /** A call of this priority is pending until its promise settles. */
  add(priority: Priority, until: Promise<unknown>): void {
    const { waiting } = this;
    waiting[priority] += 1;
    const done = (): void => {
      waiting[priority] -= 1;
      const { wakes } = this;
      this.wakes = [];
      for (const wake of wakes) wake();
    };
    until.then(done, done);
  }

  /** Resolves when no call of a higher priority is pending. */
  async turn(priority: Priority): Promise<void> {
    const above = PRIORITIES.slice(PRIORITIES.indexOf(priority) + 1);
    while (above.some((other) => this.waiting[other] > 0)) {
      await new Promise<void>((wake) => this.wakes.push(wake));
    }
  }
}

/** Milliseconds that a slice of low priority aims at; 50 would be a long task. */
const AIM = 25;

/** Tokens of the first slice: a CPU may take a frame for that many. */
const FIRST = 64;

/** How much larger the next slice may be than the last one, or than the least tokens that tell anything. */
const GROWTH = 4;
const LEAST = 16;

/** Tokens of a batch: what a GPU is busy with, and its memory holds. */
export const MOST_TOKENS = 16_384;

/** The size of slices of low priority, by the time that earlier slices took. */
export class SliceSize {
  /** Tokens of the next slice. */
  tokens = FIRST;
  private last = -Infinity;

  /**
   * A slice of so many tokens was sent at one moment and came back at another, in
   * milliseconds. It was not computed before the slice in front of it was back.
   */
  took(tokens: number, sent: number, back: number): void {
    const took = Math.max(back - Math.max(sent, this.last), 0.1);
    this.last = back;
    const fitting = (tokens / took) * AIM;
    // A small slice says little of much larger ones.
    const most = Math.min(MOST_TOKENS, GROWTH * Math.max(tokens, LEAST));
    this.tokens = Math.max(1, Math.round(Math.min(fitting, most)));
  }
}
