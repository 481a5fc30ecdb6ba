// Packs the floats of vectors in fewer bits.
//
// The bits are those that the core gives (`src/tensor/packing.rs`,
// `src/ops/search/vectors.rs`). How vectors lie in an index is not known here.

/** How the floats of a vector are kept. */
export type VectorType = "f32" | "f16" | "bf16" | "int8";

/** Every type, in the order of their numbers. */
export const TYPES: readonly VectorType[] = ["f32", "f16", "bf16", "int8"];

/** Elements of a vector in four words. */
export const ELEMENTS: Record<VectorType, number> = {
  f32: 4,
  f16: 8,
  bf16: 8,
  int8: 16,
};

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);
const HALF = 0x3f00_0000; // The bits of 0.5.

/** The nearest 16-bit float, of two the even one. */
export function toF16(value: number): number {
  float[0] = value;
  const sign = (bits[0] >>> 16) & 0x8000;
  const magnitude = bits[0] & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) return sign | 0x7e00;
  if (magnitude >= 0x4780_0000) return sign | 0x7c00;
  if (magnitude >= 0x3880_0000) {
    // The exponent in its other bias, and what does not fit rounded into it.
    const odd = (magnitude >>> 13) & 1;
    return sign | ((magnitude - 0x3800_0000 + 0xfff + odd) >>> 13);
  }
  // The steps of floats from 0.5 on are those of the smallest 16-bit ones.
  float[0] = Math.abs(value) + 0.5;
  return sign | (bits[0] - HALF);
}

/** The nearest float without a lower half, of two the even one. */
export function toBf16(value: number): number {
  float[0] = value;
  return (bits[0] + 0x7fff + ((bits[0] >>> 16) & 1)) >>> 16;
}

/** The scale of a vector of whole numbers. */
export function scaleOf(vector: Float32Array): number {
  let largest = 0;
  for (const x of vector) largest = Math.max(largest, Math.abs(x));
  return Math.fround(largest / 127);
}

/** A whole number that times the scale is near the value, in a byte. */
export function toInt8(value: number, scale: number): number {
  if (scale === 0) return 0;
  const quotient = value / scale;
  let near = Math.round(quotient);
  // Halfway between two whole numbers, the even one is taken.
  if (near - quotient === 0.5 && near % 2 !== 0) near -= 1;
  return Math.max(-127, Math.min(127, near)) & 0xff;
}
