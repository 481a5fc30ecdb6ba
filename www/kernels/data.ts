// The data of a call: what the expression of an input gives at each place.

import { lanesOf, type Numbers, numbersOf } from "./lanes.ts";
import type { ValueType } from "framebatch/kernels";
import { evaluated } from "./script.ts";

/** What an expression may name, in this order. */
const NAMES = ["i", "n", "row", "col", "x", "y", "k", "c"] as const;

/** Gives the data of one caller's input. */
export type Filled = (shape: readonly number[], caller: number) => InputData;

export interface InputData {
  readonly data: Numbers;
  readonly dims: readonly number[];
}

/** Makes of an expression what fills an input of this type. */
export function filler(
  input: string,
  expression: string,
  type: ValueType,
): Filled {
  const what = `the values of ${input}`;
  const number = evaluated(what, `(${NAMES.join(", ")}) => (${expression}\n)`);
  const lanes = lanesOf(type);
  return (shape, caller) => {
    const cols = shape[shape.length - 1];
    const count = shape.reduce((product, length) => product * length, 1);
    const rows = count / cols;
    const data = numbersOf(type, count * lanes);
    for (let i = 0; i < count; i++) {
      const [row, col] = [Math.floor(i / cols), i % cols];
      const [x, y] = [share(col, cols), share(row, rows)];
      for (let k = 0; k < lanes; k++) {
        const value = number(i, count, row, col, x, y, k, caller);
        if (typeof value !== "number") {
          throw new Error(`${what} must be numbers, got ${typeof value}`);
        }
        data[i * lanes + k] = value;
      }
    }
    return { data, dims: lanes > 1 ? [...shape, lanes] : shape };
  };
}

/** The data as lists in lists. */
export function nested({ data, dims }: InputData): number[] {
  let list: unknown[] = Array.from(data);
  for (const length of dims.slice(1).reverse()) {
    const parts: unknown[] = [];
    for (let at = 0; at < list.length; at += length) {
      parts.push(list.slice(at, at + length));
    }
    list = parts;
  }
  return list as number[];
}

/** How far along an axis a place is, from 0 to 1. */
const share = (at: number, length: number): number =>
  length > 1 ? at / (length - 1) : 0;
