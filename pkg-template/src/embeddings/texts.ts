// Checks texts before they are split.

import { invalid, kindOf } from "../checks/errors.js";

/** Throws for what is no text of whole characters. */
export function checkText(
  about: string,
  text: unknown,
): asserts text is string {
  if (typeof text !== "string") {
    throw invalid(about, `a text must be a string, got ${kindOf(text)}`);
  }
  if (/\p{Surrogate}/u.test(text)) {
    throw invalid(
      about,
      "the text has half of a surrogate pair, which is no character; use text.toWellFormed()",
    );
  }
}
