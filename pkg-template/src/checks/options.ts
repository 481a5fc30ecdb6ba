// Checks options: their names, and the values that many methods take.

import { invalid, kindOf, subject } from "./errors.js";

/** Throws unless `options` is an object whose names are all in `known`. */
export function checkOptions(
  about: string,
  options: unknown,
  known: object,
): void {
  checkObject(about, options);
  checkNames(about, options, known);
}

/** Throws unless `options` is an object. */
export function checkObject(
  about: string,
  options: unknown,
): asserts options is object {
  if (typeof options === "object" && options !== null) return;
  throw invalid(about, `options must be an object, got ${kindOf(options)}`);
}

/** What errors call the thing with this label; throws unless that is a string, if any. */
export function labeled(what: string, label: unknown): string {
  if (label === undefined || typeof label === "string") {
    return subject(what, label);
  }
  throw invalid(what, `label must be a string, got ${kindOf(label)}`);
}

/** Throws unless every name in `options` is in `known`. */
export function checkNames(
  about: string,
  options: object,
  known: object,
): void {
  for (const name in options) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known).join(", ");
    throw invalid(
      about,
      `there is no option '${name}'; the options are ${names}`,
    );
  }
}

/** Throws unless a signal, if any, is one. */
export function checkSignal(
  about: string,
  signal: AbortSignal | undefined,
): void {
  if (signal === undefined || typeof signal?.addEventListener === "function") {
    return;
  }
  throw invalid(about, `signal must be an AbortSignal, got ${kindOf(signal)}`);
}

/** Throws unless what is to be called, if anything, is a function. */
export function checkFunction(
  about: string,
  name: string,
  given: unknown,
): void {
  if (given === undefined || typeof given === "function") return;
  throw invalid(about, `${name} must be a function, got ${kindOf(given)}`);
}
