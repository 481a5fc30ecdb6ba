// Looks at the arguments of a call, where the caller's stack still is.
//
// A wrong argument is thrown as a sentence that names it, what was expected and
// what was given. The contents of arrays are not read here: the core refuses a
// NaN in an array `t` when it takes the call.

import { detached, isDetached } from "./check-array.js";
import { type FramebatchError, invalid, kindOf, subject } from "./errors.js";
import { type Element, type Method, MOST_STEPS } from "./method.js";
import type { Terms } from "./call-options.js";

/** An operand of a call. */
export type Operand = Float32Array | Uint8Array;

/** What a call may resolve to, or to a list of. */
export type Result = Operand | Uint32Array;

/** How far between the operands, or how far to go: one number, or one an item. */
export type Fraction = number | Float32Array;

/** The four control points of a cubic curve. */
export type Points<Kind extends Operand> = readonly [Kind, Kind, Kind, Kind];

/** Throws unless everything that was given to the call fits together. */
export function checkCall(
  method: Method,
  a: Operand,
  b: Operand | undefined,
  t: Fraction | undefined,
  terms: Terms | undefined,
  rest: readonly Operand[] | undefined,
): void {
  if (terms === undefined) {
    return checkOperands(method, a, b, t, method.width, undefined, rest);
  }
  checkOperands(method, a, b, t, terms.width, terms.label, rest);
  if (terms.into !== undefined) {
    checkInto(method, a, t, terms.into, terms.label);
  }
}

/** Throws unless there are as many control points as the method has names for. */
export function checkPoints(
  method: Method,
  points: unknown,
  label: string | undefined,
): void {
  const expected = method.operands.length;
  if (!Array.isArray(points)) {
    const type = arrayOf(method.takes);
    throw refuse(
      method,
      label,
      `the control points must be an array of ${expected} ${type}s, got ${kindOf(points)}`,
    );
  }
  if (points.length === expected) return;
  throw refuse(
    method,
    label,
    `there are ${points.length} control points, but a cubic curve has ${expected}; give ${method.operands.join(", ")}`,
  );
}

/**
 * Throws unless the operands and `t` fit each other. Kept short for the calls
 * that are right; what is wrong with the others is worked out afterwards.
 */
function checkOperands(
  method: Method,
  a: Operand,
  b: Operand | undefined,
  t: Fraction | undefined,
  width: number,
  label: string | undefined,
  rest: readonly Operand[] | undefined,
): void {
  checkOperand(method, 0, a, width, label);
  if (method.operands.length > 1) {
    checkOperand(method, 1, b, width, label);
    if (b!.length !== a.length) throw unequal(method, 1, b!, a, label);
  }
  if (rest !== undefined) {
    for (let k = 0; k < rest.length; k += 1) {
      checkOperand(method, k + 2, rest[k], width, label);
      if (rest[k].length !== a.length)
        throw unequal(method, k + 2, rest[k], a, label);
    }
  }
  if (method.last === undefined) return;
  if (method.last === "steps") return checkSteps(method, t, label);
  if (typeof t === "number") {
    if (t === t) return;
    throw refuse(method, label, `${method.last} is NaN; give a number`);
  }
  checkFractions(method, t, a.length / width, label);
}

function unequal(
  method: Method,
  index: number,
  operand: Operand,
  first: Operand,
  label: string | undefined,
): FramebatchError {
  const names = method.operands;
  const all = names.length === 2 ? "both" : "all";
  return refuse(
    method,
    label,
    `${names[index]} has ${count(operand.length, method.takes)}, but ${names[0]} has ${first.length}; give ${all} the same length`,
  );
}

function checkSteps(
  method: Method,
  steps: unknown,
  label: string | undefined,
): void {
  const whole = Number.isInteger(steps) ? (steps as number) : 0;
  if (whole >= 2 && whole <= MOST_STEPS) return;
  const given = typeof steps === "number" ? steps : kindOf(steps);
  throw refuse(
    method,
    label,
    `steps must be a whole number from 2 to ${MOST_STEPS}, got ${given}`,
  );
}

/** Throws unless `into` can hold the result of a call on `a`. */
function checkInto(
  method: Method,
  a: Operand,
  t: Fraction | undefined,
  into: unknown,
  label: string | undefined,
): void {
  if (!isArrayOf(method.gives, into)) {
    throw refuse(method, label, wrongArray("into", method.gives, into));
  }
  const steps = method.last === "steps" ? (t as number) : 1;
  const expected = a.length * method.growth * steps;
  if (into.length === expected) return;
  if (isDetached(into)) throw refuse(method, label, detached("into"));
  throw refuse(
    method,
    label,
    `into has ${count(into.length, method.gives)}, but the result has ${expected}; give an array of that length`,
  );
}

function checkOperand(
  method: Method,
  index: number,
  value: unknown,
  width: number,
  label: string | undefined,
): void {
  const element = method.takes;
  if (!isArrayOf(element, value)) {
    throw refuse(
      method,
      label,
      wrongArray(method.operands[index], element, value),
    );
  }
  const length = value.length;
  if (length === 0) {
    if (!isDetached(value)) return;
    throw refuse(method, label, detached(method.operands[index]));
  }
  if (length % width === 0) return;
  throw refuse(
    method,
    label,
    `${method.operands[index]} has ${count(length, element)}, which is not a multiple of ${width}, the width of an item`,
  );
}

function checkFractions(
  method: Method,
  t: unknown,
  items: number,
  label: string | undefined,
): void {
  const last = method.last!;
  if (!isArrayOf("float32", t)) {
    throw refuse(
      method,
      label,
      `${last} must be a number or a Float32Array, got ${kindOf(t)}`,
    );
  }
  if (t.length === items) {
    if (items > 0 || !isDetached(t)) return;
  }
  if (isDetached(t)) throw refuse(method, label, detached(last));
  throw refuse(
    method,
    label,
    `${last} has ${count(t.length, "float32")}, but ${method.operands[0]} has ${items} items; give one number for all, or one ${last} an item`,
  );
}

function refuse(
  method: Method,
  label: string | undefined,
  problem: string,
): FramebatchError {
  return invalid(subject(method.name, label), problem);
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
  return `${name} must be a ${arrayOf(element)}, got ${kindOf(value)}`;
}

function arrayOf(element: Element): string {
  return element === "float32" ? "Float32Array" : "Uint8Array";
}

function count(length: number, element: Element): string {
  return `${length} ${element === "float32" ? "floats" : "bytes"}`;
}
