// Looks at the arguments of a call, where the caller's stack still is.
//
// A wrong argument is thrown as a sentence that names it, what was expected and
// what was given. The contents of arrays are not read here: the core refuses a
// NaN in an array `t` when it takes the call.

import { type FramebatchError, invalid, kindOf, subject } from "./errors.js";
import type { Element, Method } from "./method.js";
import type { Terms } from "./call-options.js";

/** An operand of a call. */
export type Operand = Float32Array | Uint8Array;

/** What a call may resolve to, or to a list of. */
export type Result = Operand | Uint32Array;

/** How far between the operands: one number, or one an item. */
export type Fraction = number | Float32Array;

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

/** Throws unless everything that was given to the call fits together. */
export function checkCall(
  method: Method,
  a: Operand,
  b: Operand | undefined,
  t: Fraction | undefined,
  terms: Terms | undefined,
): void {
  if (terms === undefined) {
    return checkOperands(method, a, b, t, method.width, undefined);
  }
  checkOperands(method, a, b, t, terms.width, terms.label);
  if (terms.into !== undefined) {
    checkInto(method, a, terms.into, terms.label);
  }
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
): void {
  checkOperand(method, 0, a, width, label);
  if (method.operands.length === 1) return;
  checkOperand(method, 1, b, width, label);
  const length = a.length;
  if (b!.length !== length) {
    const [first, second] = method.operands;
    throw refuse(
      method,
      label,
      `${second} has ${count(b!.length, method.takes)}, but ${first} has ${length}; give both the same length`,
    );
  }
  if (typeof t === "number") {
    if (t === t) return;
    throw refuse(method, label, "t is NaN; give a number");
  }
  checkFractions(method, t, length / width, label);
}

/** Throws unless `into` can hold the result of a call on `a`. */
function checkInto(
  method: Method,
  a: Operand,
  into: unknown,
  label: string | undefined,
): void {
  if (!isArrayOf(method.gives, into)) {
    throw refuse(method, label, wrongArray("into", method.gives, into));
  }
  const expected = a.length * method.growth;
  if (into.length === expected) return;
  if (isDetached(into)) throw refuse(method, label, detached("into"));
  throw refuse(
    method,
    label,
    `into has ${count(into.length, method.gives)}, but the result has ${expected}; give an array of that length`,
  );
}

/**
 * Whether the memory of an array was transferred away. Such an array has length
 * 0 and reads as empty, so only empty ones need be asked.
 */
export function isDetached(array: Result | Int32Array): boolean {
  if (array.length > 0) return false;
  const buffer = array.buffer as ArrayBuffer & { detached?: boolean };
  if (buffer.detached !== undefined) return buffer.detached;
  if (buffer.byteLength > 0) return false;
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

function checkOperand(
  method: Method,
  index: 0 | 1,
  value: unknown,
  width: number,
  label: string | undefined,
): void {
  const element = method.takes;
  if (!isArrayOf(element, value)) {
    throw refuse(
      method,
      label,
      wrongArray(method.operands[index]!, element, value),
    );
  }
  const length = value.length;
  if (length === 0) {
    if (!isDetached(value)) return;
    throw refuse(method, label, detached(method.operands[index]!));
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
  if (!isArrayOf("float32", t)) {
    throw refuse(
      method,
      label,
      `t must be a number or a Float32Array, got ${kindOf(t)}`,
    );
  }
  if (t.length === items) {
    if (items > 0 || !isDetached(t)) return;
  }
  if (isDetached(t)) throw refuse(method, label, detached("t"));
  throw refuse(
    method,
    label,
    `t has ${count(t.length, "float32")}, but ${method.operands[0]} has ${items} items; give one number for all, or one t an item`,
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
  const type = element === "float32" ? "Float32Array" : "Uint8Array";
  return `${name} must be a ${type}, got ${kindOf(value)}`;
}

function detached(name: string): string {
  return `${name} is detached (its buffer was transferred); give an array that still has its memory`;
}

function count(length: number, element: Element): string {
  return `${length} ${element === "float32" ? "floats" : "bytes"}`;
}
