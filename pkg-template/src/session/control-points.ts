// Calls on control points, which callers give as one array.
//
// What is made of the points are operands like all others.

import { checkPoints, type Fraction } from "../calls/arguments.js";
import type { AnyOptions } from "../calls/call-options.js";
import type { Method } from "../calls/methods.js";
import { subject } from "../checks/errors.js";
import type { Operand } from "../memory/arrays.js";
import type { Calls } from "./calls.js";

/** Takes a call on points. Never throws: what is wrong with it rejects the promise. */
export function startOn<Result extends Operand>(
  calls: Calls,
  method: Method,
  points: readonly Operand[],
  t: Fraction,
  options: AnyOptions | undefined,
): Promise<Result> {
  try {
    checkPoints(subject(method.name, options?.label), method, points);
  } catch (error) {
    return Promise.reject(error);
  }
  const [a, b, ...rest] = points;
  return calls.start(method, a, b, t, options, rest);
}
