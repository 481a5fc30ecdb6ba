// Who goes first: calls of a higher priority are answered before slices of a lower one
// are begun. And how large a slice of low priority may be.
//
// Counts and numbers only; it makes no call and has no clock.

/** From last to first. */
export const PRIORITIES = ["low", "normal", "high"] as const;

/** How much a call of an embedder is in a hurry. */
export type Priority = (typeof PRIORITIES)[number];

/** What waits, by priority. */
export class Priorities {
  private readonly waiting = { low: 0, normal: 0, high: 0 };
  private wakes: (() => void)[] = [];

  /** Something waits until its promise settles. */
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

  /** Resolves when nothing more urgent waits. */
  async turn(priority: Priority): Promise<void> {
    const above = PRIORITIES.slice(PRIORITIES.indexOf(priority) + 1);
    while (above.some((other) => this.waiting[other] > 0)) {
      await new Promise<void>((wake) => this.wakes.push(wake));
    }
  }
}

/** Milliseconds that a slice of low priority is to take; 50 are the most. */
const AIM = 25;

/** Tokens of the first one, of which nothing is known: a processor takes a frame for a few. */
const FIRST = 64;

/** How much larger the next one may be, and the tokens that each may be judged by. */
const GROWTH = 4;
const LEAST = 16;

/** Tokens of a batch: what a GPU is busy with, and its memory holds. */
export const MOST_TOKENS = 16_384;

/** How many tokens keep a device busy for how long, by the slices so far. */
export class SliceSize {
  /** Tokens of the next slice. */
  tokens = FIRST;
  private last = -Infinity;

  /**
   * A slice of so many tokens was sent at one moment and back at another, in
   * milliseconds; before that it stood behind the one that came back before it.
   */
  took(tokens: number, sent: number, back: number): void {
    const took = Math.max(back - Math.max(sent, this.last), 0.1);
    this.last = back;
    const fitting = (tokens / took) * AIM;
    // A slice that was smaller than it might be says little of larger ones.
    const most = Math.min(MOST_TOKENS, GROWTH * Math.max(tokens, LEAST));
    this.tokens = Math.max(1, Math.round(Math.min(fitting, most)));
  }
}
