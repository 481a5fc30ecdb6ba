// How many items memory holds, by the rule of the core (`src/batch/budget.rs`), which a page
// cannot ask: the numbers in the rule are told when the session opens.

import type { Opened } from "./protocol.js";

/** Words of numbers that a text travels with. */
const NUMBERS = 4;

/** Items beside a model, at most so many; sizes in bytes. */
export function batchSize(
  { liveBytes, mostItems }: Opened,
  modelBytes: number,
  bytesPerItem: number,
  most: number,
): number {
  const room = Math.max(0, liveBytes - modelBytes);
  const fitting = Math.floor(room / bytesPerItem);
  return Math.max(1, Math.min(fitting, mostItems, most));
}

/** Bytes of a text of so many tokens, by the floats of its encoder's vectors (`src/embed/activations.rs`). */
export function textBytes(
  tokens: number,
  hidden: number,
  intermediate: number,
): number {
  const passing = tokens * (2 * Math.max(intermediate, 3 * hidden) + hidden);
  const aligned = (words: number): number => 4 * Math.ceil(words / 4);
  return 4 * (passing + aligned(tokens) + aligned(hidden) + NUMBERS);
}

/** What a core answers about items of so many bytes. */
type Ask = (modelBytes: number, bytesPerItem: number) => number;

/** The numbers in the rule, by what a core answers. */
export function sizesOf(ask: Ask): Pick<Opened, "liveBytes" | "mostItems"> {
  const most = ask(0, 1);
  // Without a limit of items, memory holds as many as it has bytes.
  if (ask(0, 2) < most) return { liveBytes: most, mostItems: Infinity };
  // The largest item of which there is room for two is half of the memory.
  let [fits, large] = [1, 2 ** 50];
  while (large - fits > 1) {
    const item = Math.floor((fits + large) / 2);
    if (ask(0, item) >= 2) fits = item;
    else large = item;
  }
  const isOdd = ask(1, fits) >= 2;
  return { liveBytes: 2 * fits + (isOdd ? 1 : 0), mostItems: most };
}
