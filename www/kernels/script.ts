// JavaScript that somebody typed, made a function of this page. It runs when the button is
// pressed, and never because an address was opened.

/** What somebody typed that is no function of JavaScript. */
export class ScriptError extends Error {}

/** The function that a text is; `what` names it in errors. */
export function evaluated(
  what: string,
  text: string,
): (...given: unknown[]) => unknown {
  let made: unknown;
  try {
    made = new Function(`"use strict"; return (${text}\n);`)();
  } catch (error) {
    throw new ScriptError(`${what}: ${error}`);
  }
  if (typeof made === "function")
    return made as (...given: unknown[]) => unknown;
  throw new ScriptError(`${what} must be a function, got ${typeof made}`);
}
