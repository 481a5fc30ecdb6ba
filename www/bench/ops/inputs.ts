// Seeded numbers: every run, and every machine, measures the same inputs.

/** The next of a sequence in [0, 1). */
type Sequence = () => number;

export function sequence(seed = 12345): Sequence {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Floats in [-1, 1). */
export function floats(
  length: number,
  next: Sequence,
): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length }, () => next() * 2 - 1);
}

/** Unit quaternions, xyzw. */
export function quaternions(
  items: number,
  next: Sequence,
): Float32Array<ArrayBuffer> {
  const out = floats(items * 4, next);
  for (let at = 0; at < out.length; at += 4) {
    const norm = Math.hypot(out[at], out[at + 1], out[at + 2], out[at + 3]);
    for (let k = at; k < at + 4; k++) out[k] /= norm;
  }
  return out;
}

/** A `t` for each call: a hundred and one of them, both ends included. */
export const fraction = (call: number) => (call % 101) / 100;
