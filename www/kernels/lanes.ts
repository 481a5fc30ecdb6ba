// What the elements of each type of value are: how many of them a value has, and the arrays that
// hold them.

import type { ValueType } from "framebatch/kernels";

/** Elements of tensors. */
export type Numbers =
  | Float32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>;

/** How many numbers a value of a type is. */
export const lanesOf = (type: ValueType): number =>
  type.startsWith("vec") ? Number(type[3]) : 1;

/** As many numbers of a type, all 0. */
export function numbersOf(type: ValueType, count: number): Numbers {
  const scalar = type.startsWith("vec") ? type[4] : type[0];
  if (scalar === "f") return new Float32Array(count);
  return scalar === "i" ? new Int32Array(count) : new Uint32Array(count);
}
