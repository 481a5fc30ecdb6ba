// How much is done in a second, by what was done in the last few.
//
// Numbers only: it has no clock.

/** What is done a second. */
export interface Speed {
  readonly texts: number;
  readonly tokens: number;
}

const WINDOW_MS = 2000;

export class Rate {
  /** What was done in all until a moment, oldest first. */
  private readonly marks: { at: number; texts: number; tokens: number }[];

  /** Begins at a moment in milliseconds. */
  constructor(private readonly start: number) {
    this.marks = [{ at: start, texts: 0, tokens: 0 }];
  }

  /** Notes what more was done at this moment; returns the speed of late. */
  add(at: number, texts: number, tokens: number): Speed {
    const { marks } = this;
    const last = marks.at(-1)!;
    const now = {
      at,
      texts: last.texts + texts,
      tokens: last.tokens + tokens,
    };
    marks.push(now);
    while (marks.length > 2 && marks[1].at <= at - WINDOW_MS) marks.shift();
    return speed(now, marks[0]);
  }

  /** The speed of all that was done. */
  get whole(): Speed {
    return speed(this.marks.at(-1)!, { at: this.start, texts: 0, tokens: 0 });
  }
}

function speed(
  now: Speed & { at: number },
  then: Speed & { at: number },
): Speed {
  // Clocks of browsers are coarse: two moments may be the same.
  const seconds = Math.max(now.at - then.at, 1) / 1000;
  return {
    texts: (now.texts - then.texts) / seconds,
    tokens: (now.tokens - then.tokens) / seconds,
  };
}
