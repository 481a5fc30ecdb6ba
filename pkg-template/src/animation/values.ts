// Values and options of motions, which tweens and springs have in common.

import { endedError } from "../calls/call-errors.js";
import { got } from "../checks/arrays.js";
import {
  type FramebatchError,
  invalid,
  kindOf,
  subject,
} from "../checks/errors.js";
import {
  checkFunction,
  checkNames,
  checkObject,
  checkSignal,
} from "../checks/options.js";
import type { Calls } from "../session/calls.js";
import { copyOf } from "./arrays.js";
import { canMoveBehind, warnOfLoss } from "./without-core.js";

/** Numbers that move together. */
export type Several = Float32Array | readonly number[];

/** A number, or several that move together. */
export type MotionValue = number | Several;

/** Where a motion begins, and where it ends. */
export interface Ends<Value> {
  readonly from: Value;
  readonly to: Value;
}

/** What is given to `onUpdate`: a number for a number, and an array of floats otherwise. */
export type Moved<Value extends MotionValue> = Value extends number
  ? number
  : Float32Array;

/** The options that tweens and springs have in common. */
export interface MotionOptions<Value extends MotionValue> {
  /**
   * Hears of every new value, once a frame. An array is the motion's own and changes
   * with the next frame. What it throws is reported and ends the motion. Default: none.
   */
  onUpdate?: (value: Moved<Value>) => void;
  /** Ends the motion where it is. Default: none. */
  signal?: AbortSignal;
  /** `jump` goes to the end at once where people ask for less motion. Default: `ignore`. */
  reducedMotion?: "ignore" | "jump";
  /**
   * Where values are computed: on the page's thread, or in one call of the frame for all,
   * whose values come with its read-back. Default: `gpu` where that is hardware and all
   * motions together have 65,536 floats or more.
   */
  engine?: "cpu" | "gpu";
  /** Appears in the message of every error about this motion. Default: none. */
  label?: string;
}

/** The names of {@link MotionOptions}. */
export const MOTION_NAMES: Record<keyof MotionOptions<number>, true> = {
  onUpdate: true,
  signal: true,
  reducedMotion: true,
  engine: true,
  label: true,
};

/** Checks the options of a motion; how messages about it begin. */
export function checkMotion(
  name: string,
  calls: Calls,
  options: MotionOptions<never>,
  known: object,
): string {
  checkObject(name, options);
  const { onUpdate, signal, reducedMotion, engine, label } = options;
  const about = subject(name, label);
  checkNames(about, options, known);
  const { ended } = calls;
  if (ended !== undefined) {
    if (!canMoveBehind(ended)) throw endedError(about, ended);
    warnOfLoss(ended);
  }
  checkFunction(about, "onUpdate", onUpdate);
  checkSignal(about, signal);
  checkWord(about, "reducedMotion", reducedMotion, ["ignore", "jump"]);
  checkWord(about, "engine", engine, ["cpu", "gpu"]);
  return about;
}

/** The floats of a value. */
export function floatsOf(
  about: string,
  name: string,
  value: unknown,
): Float32Array {
  if (typeof value === "number" && !Number.isNaN(value)) {
    return new Float32Array([value]);
  }
  const isFloats =
    ArrayBuffer.isView(value) &&
    (value as Float32Array)[Symbol.toStringTag] === "Float32Array";
  const isSeveral = isFloats || Array.isArray(value);
  if (isSeveral) {
    const floats = copyOf(about, value as Float32Array);
    if (!floats.some(Number.isNaN)) return floats;
  }
  const isNone = isSeveral || typeof value === "number";
  const given = isNone ? "got NaN" : got("Float32Array", name, value);
  throw invalid(
    about,
    `${name} must be a number, a Float32Array or an array of numbers, ${given}`,
  );
}

/** Throws unless both have as many floats. */
export function checkLengths(
  about: string,
  from: Float32Array,
  to: Float32Array,
): void {
  if (from.length === to.length) return;
  throw invalid(
    about,
    `to has ${to.length} numbers, but from has ${from.length}; give both as many`,
  );
}

/** A number of an option, within bounds. */
export function numberOf(
  about: string,
  name: string,
  value: unknown,
  least: number,
): number {
  if (typeof value === "number" && value >= least && value < Infinity) {
    return value;
  }
  throw wrongNumber(about, name, value, `from ${least}`);
}

/** A number of an option that is above 0. */
export function positive(about: string, name: string, value: unknown): number {
  if (typeof value === "number" && value > 0 && value < Infinity) return value;
  throw wrongNumber(about, name, value, "above 0");
}

/** Whether the person at the page asks for less motion. */
export function wantsLessMotion(): boolean {
  const query = "(prefers-reduced-motion: reduce)";
  return globalThis.matchMedia?.(query).matches ?? false;
}

function wrongNumber(
  about: string,
  name: string,
  value: unknown,
  range: string,
): FramebatchError {
  const given = typeof value === "number" ? value : kindOf(value);
  return invalid(about, `${name} must be a number ${range}, got ${given}`);
}

function checkWord(
  about: string,
  name: string,
  value: unknown,
  words: readonly string[],
): void {
  if (value === undefined || words.includes(value as string)) return;
  const given = typeof value === "string" ? `'${value}'` : kindOf(value);
  const names = words.map((word) => `'${word}'`).join(" or ");
  throw invalid(about, `${name} must be ${names}, got ${given}`);
}
