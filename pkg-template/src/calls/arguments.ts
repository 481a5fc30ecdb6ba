// Checks the arguments of methods on arrays, while the caller is still on the stack.
//
// A wrong argument is thrown as a sentence that names the argument, what was expected
// and what was given. The contents of arrays are not read here: the core refuses a NaN
// in an array `t` when it takes the call.

import { detached, got, isDetached } from "../checks/arrays.js";
import { type FramebatchError, invalid, kindOf } from "../checks/errors.js";
import type { Element, Operand } from "../memory/arrays.js";
import { type Method, MOST_STEPS } from "./methods.js";

/** How far between the operands, or how far to go: one number, or one an item. */
export type Fraction = number | Float32Array;

/** The four control points of a cubic curve. */
export type Points<Kind extends Operand> = readonly [Kind, Kind, Kind, Kind];

/** What a method on arrays was given. */
export interface Arguments {
  readonly method: Method;
  readonly a: Operand;
  readonly b: Operand | undefined;
  /** How far, or how many steps, as the method's `last` says. */
  readonly t: Fraction | undefined;
  /** The third array and those behind it. */
  readonly rest: readonly Operand[] | undefined;
}

/** Throws unless there are as many control points as the method has names for. */
export function checkPoints(
  about: string,
  method: Method,
  points: unknown,
): void {
  const expected = method.operands.length;
  if (!Array.isArray(points)) {
    const type = arrayOf(method.takes);
    throw invalid(
      about,
      `the control points must be an array of ${expected} ${type}s, got ${kindOf(points)}`,
    );
  }
  if (points.length === expected) return;
  throw invalid(
    about,
    `there are ${points.length} control points, but a cubic curve has ${expected}; give ${method.operands.join(", ")}`,
  );
}

/**
 * Throws unless the operands and `t` fit each other. Kept short for the calls
 * that are right; what is wrong with the others is worked out afterwards.
 */
export function checkOperands(
  about: string,
  { method, a, b, t, rest }: Arguments,
  width: number,
): void {
  const { operands, takes, last } = method;
  checkOperand(about, operands[0], takes, a, width);
  if (operands.length > 1) {
    checkOperand(about, operands[1], takes, b, width);
    if (b!.length !== a.length) throw unequal(about, method, 1, b!, a);
  }
  if (rest !== undefined) {
    for (let k = 0; k < rest.length; k += 1) {
      checkOperand(about, operands[k + 2], takes, rest[k], width);
      if (rest[k].length !== a.length)
        throw unequal(about, method, k + 2, rest[k], a);
    }
  }
  if (last === undefined) return;
  if (last === "steps") return checkSteps(about, t);
  if (typeof t === "number") {
    if (t === t) return;
    throw invalid(about, `${last} is NaN; give a number`);
  }
  checkFractions(about, method, t, a.length / width);
}

function unequal(
  about: string,
  { operands, takes }: Method,
  index: number,
  operand: Operand,
  first: Operand,
): FramebatchError {
  const all = operands.length === 2 ? "both" : "all";
  return invalid(
    about,
    `${operands[index]} has ${count(operand.length, takes)}, but ${operands[0]} has ${first.length}; give ${all} the same length`,
  );
}

function checkSteps(about: string, steps: unknown): void {
  const whole = Number.isInteger(steps) ? (steps as number) : 0;
  if (whole >= 2 && whole <= MOST_STEPS) return;
  const given = typeof steps === "number" ? steps : kindOf(steps);
  throw invalid(
    about,
    `steps must be a whole number from 2 to ${MOST_STEPS}, got ${given}`,
  );
}

/** Throws unless `into` can hold the result of a call. */
export function checkInto(
  about: string,
  { method, a, t }: Arguments,
  into: unknown,
): void {
  const { gives, growth, last } = method;
  if (!isArrayOf(gives, into)) {
    const type = arrayOf(gives);
    throw invalid(about, `into must be a ${type}, got ${kindOf(into)}`);
  }
  const steps = last === "steps" ? (t as number) : 1;
  const expected = a.length * growth * steps;
  if (into.length === expected) return;
  if (isDetached(into)) throw invalid(about, detached("into"));
  throw invalid(
    about,
    `into has ${count(into.length, gives)}, but the result has ${expected}; give an array of that length`,
  );
}

function checkOperand(
  about: string,
  name: string,
  element: Element,
  value: unknown,
  width: number,
): void {
  if (!isArrayOf(element, value)) {
    throw invalid(about, wrongArray(name, element, value));
  }
  const length = value.length;
  if (length === 0) {
    if (!isDetached(value)) return;
    throw invalid(about, detached(name));
  }
  if (length % width === 0) return;
  throw invalid(
    about,
    `${name} has ${count(length, element)}, which is not a multiple of ${width}, the width of an item`,
  );
}

function checkFractions(
  about: string,
  method: Method,
  t: unknown,
  items: number,
): void {
  const last = method.last!;
  if (!isArrayOf("float32", t)) {
    throw invalid(
      about,
      `${last} must be a number or a Float32Array, ${got("Float32Array", last, t)}`,
    );
  }
  if (t.length === items) {
    if (items > 0 || !isDetached(t)) return;
  }
  if (isDetached(t)) throw invalid(about, detached(last));
  throw invalid(
    about,
    `${last} has ${count(t.length, "float32")}, but ${method.operands[0]} has ${items} items; give one number for all, or one ${last} an item`,
  );
}

function isArrayOf(element: "float32", value: unknown): value is Float32Array;
function isArrayOf(element: Element, value: unknown): value is Operand;
function isArrayOf(element: Element, value: unknown): boolean {
  if (element === "float32") {
    return value instanceof Float32Array || isForeign("Float32Array", value);
  }
  return value instanceof Uint8Array || isForeign("Uint8Array", value);
}

// An array made in another realm (an iframe) has that realm's constructor.
function isForeign(tag: string, value: unknown): boolean {
  return (
    ArrayBuffer.isView(value) &&
    (value as unknown as Float32Array)[Symbol.toStringTag] === tag
  );
}

function wrongArray(name: string, element: Element, value: unknown): string {
  const type = arrayOf(element);
  return `${name} must be a ${type}, ${got(type, name, value)}`;
}

function arrayOf(element: Element): "Float32Array" | "Uint8Array" {
  return element === "float32" ? "Float32Array" : "Uint8Array";
}

function count(length: number, element: Element): string {
  return `${length} ${element === "float32" ? "floats" : "bytes"}`;
}
