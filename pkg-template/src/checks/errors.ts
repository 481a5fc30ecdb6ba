// The one error class of the package, and the sentences that several files share.
//
// Every message names the call, its label where it has one, the argument, what was
// expected and what was given. That something is wrong is found by the files that read
// arguments and options, and by the core, not here.

import { markedName } from "./brand.js";

/**
 * Every code an error can carry. The order is that of their numbers on the wire
 * between Rust and TypeScript, counted from 1.
 */
export const CODES = [
  "unsupported",
  "insecure-context",
  "no-adapter",
  "device-lost",
  "out-of-memory",
  "limit-exceeded",
  "invalid-input",
  "shader",
  "queue-full",
  "superseded",
  "timeout",
  "aborted",
  "disposed",
  "fatal",
] as const;

/** The stable name of a kind of error. */
export type Code = (typeof CODES)[number];

/**
 * Why a call, or the opening of a session, failed. `message` is a sentence for a
 * person, `code` is for programs, and `cause` is the error underneath, if any.
 *
 * @example
 * try {
 *   await gpu.slerp(from, to, 0.5);
 * } catch (error) {
 *   if (error instanceof FramebatchError && error.code === "queue-full") await gpu.ready;
 *   else throw error;
 * }
 */
export class FramebatchError extends Error {
  /** The stable name of what went wrong; one of {@link CODES}. */
  readonly code: Code;

  static {
    const name = "FramebatchError";
    this.prototype.name = name;
    // What Node prints, whatever the class is called in a small script.
    Object.defineProperty(this, "name", { value: name });
  }

  constructor(code: Code, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** `lerp`, or `lerp (label 'x')`: how every message about a call begins. */
export function subject(name: string, label: string | undefined): string {
  return label === undefined ? name : `${name} (label '${label}')`;
}

/** The error for bad input to a call. */
export function invalid(about: string, problem: string): FramebatchError {
  return new FramebatchError("invalid-input", `${about}: ${problem}`);
}

/** What a value is, in a few words: `undefined`, `number`, `Float64Array`, `a tensor`. */
export function kindOf(value: unknown): string {
  const type = typeof value;
  if (value === null) return "null";
  if (type !== "object" && type !== "function") return type;
  const name = markedName(value as object);
  if (name !== undefined || type === "function") return name ?? type;
  return (value as object).constructor?.name ?? "object";
}

/** The name of a built-in value's class, in any realm: an iframe has classes of its own. */
export function tagOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

/** Reports an error as if a task of its own had thrown it: whoever is here goes on. */
export function report(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** The code behind a status of the settle table. */
export function codeOf(status: number): Code {
  return CODES[status - 1] ?? "fatal";
}

/** What the core threw, when it failed the way it promises to. */
export interface CoreFailure {
  code: Code;
  message: string;
}

/**
 * Tells a refusal of the core, which leaves it whole, from a trap or a defect,
 * after which nothing it holds can be trusted.
 */
export function isCoreFailure(thrown: unknown): thrown is CoreFailure {
  return (
    typeof thrown === "object" &&
    thrown !== null &&
    CODES.includes((thrown as CoreFailure).code)
  );
}

/** Whatever the core threw, as the package's own error. */
export function fromCore(about: string, thrown: unknown): FramebatchError {
  if (thrown instanceof FramebatchError) return thrown;
  if (isCoreFailure(thrown)) {
    return new FramebatchError(thrown.code, `${about}: ${thrown.message}`);
  }
  const what = thrown instanceof Error ? thrown.message : String(thrown);
  return new FramebatchError(
    "fatal",
    `${about}: the core stopped (${what}); open a new session, and please report this`,
    { cause: thrown },
  );
}
