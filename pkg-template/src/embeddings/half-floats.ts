// The 16-bit floats of a file, which are passed on as bits or converted to 32 bits.
//
// Numbers only. Files are little-endian, as all machines that browsers run on.

import { PACKED } from "../tensor/codes.js";
import { AUTO } from "../tensor/storage.js";

/** Whether what a file holds as `dtype` goes up as the 16-bit floats that it is. */
export function halvesOf(
  dtype: string,
  home: number,
  isHardware: boolean,
): boolean {
  if (dtype === "F32") return false;
  if (home === AUTO) return isHardware;
  return home === (dtype === "F16" ? PACKED.f16 : PACKED.bf16);
}

/** Writes the 16-bit floats in `bytes` as 32-bit ones, from place `at` on. */
export function widen(
  dtype: string,
  bytes: Uint8Array,
  to: Float32Array,
  at: number,
): void {
  const halves = new Uint16Array(bytes.buffer, bytes.byteOffset);
  const words = new Uint32Array(to.buffer, to.byteOffset + at * 4);
  for (let i = 0; i < halves.length; i += 1) {
    if (dtype === "F16") to[at + i] = ofF16(halves[i]);
    // Shifted as bits, so that a NaN keeps its payload.
    else words[i] = halves[i] << 16;
  }
}

function ofF16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent < 31) return sign * (1024 + fraction) * 2 ** (exponent - 25);
  return fraction === 0 ? sign * Infinity : NaN;
}
