// A kernel with all that is needed to try it, and how an address holds one.
//
// A sketch is text and numbers: what its code means is found out elsewhere.

import type { NumberType } from "framebatch/kernels";

/** A number that comes with each call. */
export interface Param {
  readonly type: NumberType;
  readonly value: number;
}

export interface Sketch {
  readonly name: string;
  /** WGSL: the body of a kernel. */
  readonly code: string;
  /** JavaScript: the function for the CPU; may be empty. */
  readonly cpu: string;
  /** JavaScript, by the name of an input: an expression for each number of its data. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly params: Readonly<Record<string, Param>>;
  /** The places of the call that is drawn: one axis or two. */
  readonly shape: readonly number[];
  /** How many callers call at once, on how many places each. */
  readonly callers: number;
  readonly places: number;
}

export const NUMBER_TYPES: readonly NumberType[] = ["f32", "i32", "u32"];

/** More would keep the page for too long. */
export const MOST = { callers: 10_000, places: 4096, drawn: 1 << 18 } as const;

/** The sketch as the hash of an address. */
export function toHash(sketch: Sketch): string {
  const bytes = new TextEncoder().encode(JSON.stringify(sketch));
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte));
  const text = btoa(binary.join("")).replaceAll("+", "-").replaceAll("/", "_");
  return `#${text.replaceAll("=", "")}`;
}

/** The sketch that a hash holds; undefined where it holds none. */
export function fromHash(hash: string): Sketch | undefined {
  try {
    const text = hash.slice(1).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const sketch: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return isSketch(sketch) ? sketch : undefined;
  } catch {
    // No base64, or no JSON: whoever made the address did not make it here.
    return undefined;
  }
}

/** Why the numbers of a sketch cannot be run; undefined where they can. */
export function problemOf({
  shape,
  callers,
  places,
}: Sketch): string | undefined {
  const isCount = (count: number, most: number) =>
    Number.isInteger(count) && count >= 1 && count <= most;
  if (!isCount(callers, MOST.callers)) {
    return `callers are 1 to ${MOST.callers.toLocaleString("en")}`;
  }
  if (!isCount(places, MOST.places)) {
    return `places of a caller are 1 to ${MOST.places.toLocaleString("en")}`;
  }
  const drawn = shape.reduce((product, length) => product * length, 1);
  const isDrawn = shape.every((length) => isCount(length, MOST.drawn));
  if (
    isDrawn &&
    shape.length >= 1 &&
    shape.length <= 2 &&
    drawn <= MOST.drawn
  ) {
    return undefined;
  }
  return `the shape is one length or two, such as 256 or 96 x 96, and ${MOST.drawn.toLocaleString("en")} places at most`;
}

function isSketch(given: unknown): given is Sketch {
  const sketch = given as Sketch;
  const texts = [sketch.name, sketch.code, sketch.cpu];
  const numbers = [sketch.callers, sketch.places, ...sketch.shape];
  return (
    texts.every((text) => typeof text === "string") &&
    numbers.every((number) => typeof number === "number") &&
    Object.values(sketch.inputs).every((text) => typeof text === "string") &&
    Object.values(sketch.params).every(
      ({ type, value }) =>
        NUMBER_TYPES.includes(type) && typeof value === "number",
    )
  );
}
