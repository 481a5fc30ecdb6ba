// Checks arrays, with which two things go wrong: their length, and that their memory was
// transferred away.

import { invalid, kindOf, tagOf } from "./errors.js";

/** An array that is to receive a result. */
export interface Receiver {
  /** The array's name in errors. */
  readonly name: string;
  readonly type: "Float32Array" | "Uint32Array" | "Int32Array";
  /** Elements of the result. */
  readonly length: number;
}

/** Throws unless `into` is an array of that type and length, in any realm. */
export function checkInto(
  about: string,
  into: unknown,
  { name, type, length }: Receiver,
): void {
  const array = into as Float32Array;
  if (!ArrayBuffer.isView(into) || array[Symbol.toStringTag] !== type) {
    throw invalid(about, `${name} must be a ${type}, got ${kindOf(into)}`);
  }
  if (array.length === length) return;
  throw invalid(
    about,
    isDetached(array)
      ? detached(name)
      : `${name} has ${array.length} elements, but the result has ${length}; give an array of that length`,
  );
}

/**
 * Whether the memory of an array was transferred away. Such an array has length 0 and
 * reads as empty.
 */
export function isDetached(
  array: Pick<ArrayBufferView, "buffer"> & { length: number },
): boolean {
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

/** What messages say of an array whose memory was transferred away. */
export function detached(name: string): string {
  return `${name} is detached (its buffer was transferred); give an array that still has its memory`;
}

/** What messages say was given in place of an array of this type: what it is, and how to convert it. */
export function got(
  type: "Float32Array" | "Uint32Array" | "Uint8Array",
  name: string,
  value: unknown,
): string {
  const given = `got ${kindOf(value)}`;
  if (Array.isArray(value)) {
    const isNested = Array.isArray(value[0]);
    return `${given}; give ${type}.from(${name}${isNested ? ".flat()" : ""})`;
  }
  // Whole numbers of 64 bits are no numbers to `from`, and fractions would be cut to whole ones.
  const numbers =
    type === "Float32Array" ? /^(Float|U?int)\d+[CA]/i : /^U?int\d+[CA]/i;
  const isNumbers = numbers.test(tagOf(value));
  return isNumbers ? `${given}; give ${type}.from(${name})` : given;
}
