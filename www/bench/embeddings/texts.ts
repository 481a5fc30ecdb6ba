// Texts of a given number of tokens.

const WORDS =
  "the quick brown fox jumps over lazy dog while seven wise monkeys watch silent rivers flow under ancient stone bridges toward distant northern seas".split(
    " ",
  );
/** [CLS] and [SEP]. */
const SPECIAL = 2;

/**
 * A text of so many tokens; each word is one. No other `seed` gives the same: equal
 * texts would be computed once by one system and not by another.
 */
export function textOf(tokens: number, seed: number): string {
  let left = seed;
  const words = Array.from({ length: tokens - SPECIAL }, (_, i) => {
    // The first words spell the seed.
    const digit = left % WORDS.length;
    left = Math.floor(left / WORDS.length);
    return WORDS[(digit + i * 7) % WORDS.length];
  });
  return words.join(" ");
}

/** Texts of the same number of tokens each. */
export const equallyLong = (texts: number, tokens: number): string[] =>
  Array.from({ length: texts }, (_, i) => textOf(tokens, i));

/** Texts of 8 to 32 tokens. */
export const short = (texts: number): string[] =>
  Array.from({ length: texts }, (_, i) => textOf(8 + ((i * 5) % 25), i));
