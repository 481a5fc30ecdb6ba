// The free words of a store.
//
// Numbers only: what lies in the words, and on which device, is known in `store.ts`.

/** Free words of a store. */
interface Gap {
  at: number;
  words: number;
}

/**
 * The free words of a store. What is given back joins what is free beside it, so that
 * clips that come and go leave no crumbs.
 */
export class FreeList {
  /** Words up to the end of the last range in use. */
  end = 0;
  /** Invariant: in order, with words in use between any two and behind the last. */
  private readonly free: Gap[] = [];

  /** Takes a range of so many words: the first that is free, or one behind all others. */
  take(words: number): number {
    const index = this.free.findIndex((gap) => gap.words >= words);
    if (index < 0) {
      this.end += words;
      return this.end - words;
    }
    const gap = this.free[index];
    const { at } = gap;
    gap.at += words;
    gap.words -= words;
    if (gap.words === 0) this.free.splice(index, 1);
    return at;
  }

  /** Gives a range back. */
  give(at: number, words: number): void {
    let index = this.free.findIndex((gap) => gap.at > at);
    if (index < 0) index = this.free.length;
    this.free.splice(index, 0, { at, words });
    this.join(index);
    this.join(index - 1);
    const last = this.free[this.free.length - 1];
    if (last.at + last.words === this.end) {
      this.end = last.at;
      this.free.pop();
    }
  }

  /** Makes a gap one with the next, if nothing is between them. */
  private join(index: number): void {
    const gap = this.free[index];
    const next = this.free[index + 1];
    // The first gap has none before it, the last none behind it.
    if (gap === undefined || gap.at + gap.words !== next?.at) return;
    gap.words += next.words;
    this.free.splice(index + 1, 1);
  }
}
