// Compares the options of a later `shared` with those that the page's session was opened with.

import { noteSource } from "../core/wasm-source.js";
import { flushPolicy, type OpenOptions } from "./open-options.js";

type Options = Readonly<Record<string, unknown>>;

/** What to say of the first option that has no effect; undefined where each has its effect. */
export function optionWithoutEffect(
  { wasm, ...wanted }: OpenOptions,
  opened: OpenOptions,
): string | undefined {
  noteSource(wasm, true);
  const has: Options = { ...opened };
  const defaults: Options = { ...defaultsBeside(opened) };
  for (const [name, value] of Object.entries(wanted)) {
    const isGiven = has[name] !== undefined;
    const known = isGiven ? has[name] : defaults[name];
    if (value === undefined || isEqual(value, known)) continue;
    const by = isGiven
      ? `${name} ${text(known)}`
      : `the default of ${name}${known === undefined ? "" : `, ${text(known)}`}`;
    return (
      `shared: the page's session was opened with ${by}, so ${name} ${text(value)} has no effect; ` +
      "give the options to the first shared() of the page, or open() a session of your own"
    );
  }
  return undefined;
}

/** The defaults that are words or flags; numbers depend on the device. */
function defaultsBeside(opened: OpenOptions): OpenOptions {
  const flush = flushPolicy(opened);
  return {
    engine: "auto",
    flush,
    preset: flush === "eager" ? "eager" : "auto",
    overflow: opened.preset === "latency" ? "reject" : "wait",
    devtools: false,
  };
}

function isEqual(a: unknown, b: unknown): boolean {
  return typeof a === "function" ? a === b : text(a) === text(b);
}

function text(value: unknown): string {
  return typeof value === "function" ? "(a function)" : JSON.stringify(value);
}
