// Numbers as int4: blocks of 64, each 64 whole numbers of half a byte and two scales of 16 bits.
//
// The bytes are those that a device keeps for a tensor with the dtype int4. A scale is of 32
// neighbors: a 16-bit float, 128 times what the whole numbers, -8 to 7, are multiplied by, and
// negative where that is nearer. Half a byte holds a whole number plus 8.

import { floatOf } from "./floats.mjs";
import { BLOCK, GROUP, halfOf, SMALLEST_SCALE } from "./int8.mjs";

/** Bytes of a block. */
export const BLOCK_BYTES = 36;

/** What the number of largest magnitude is divided by, for the scales that are tried. */
const DIVISORS = [-8, 7, -7, -8.5, -8.25, -7.75, -7.5];

/** Adding and subtracting this rounds to a whole number: a float of its size has no fraction. */
const ROUND = 1.5 * 2 ** 52;

/** The bytes of numbers in 32 bits, which fill whole blocks. Throws for what int4 cannot hold. */
export function pack(floats) {
  const bytes = new Uint8Array((floats.length / BLOCK) * BLOCK_BYTES);
  const view = new DataView(bytes.buffer);
  for (let block = 0; block * BLOCK < floats.length; block += 1) {
    const to = block * BLOCK_BYTES;
    for (let half = 0; half < 2; half += 1) {
      const from = block * BLOCK + half * GROUP;
      const group = floats.subarray(from, from + GROUP);
      const scale = scaleOf(group);
      view.setUint16(to + BLOCK / 2 + 2 * half, scale, true);
      const unit = unitOf(scale);
      for (let i = 0; i < GROUP; i += 2) {
        const [low, high] = [i, i + 1].map((at) => whole(group[at], unit) + 8);
        bytes[to + (half * GROUP + i) / 2] = low | (high << 4);
      }
    }
  }
  return bytes;
}

/** The bits of the scale, of those that are tried, whose squared errors have the least sum. */
function scaleOf(group) {
  let largest = 0;
  for (const x of group) {
    if (!(Math.abs(x) <= Math.abs(largest))) largest = x;
    // Nothing is larger than what is no number.
    if (Number.isNaN(x)) break;
  }
  let best;
  let least = Infinity;
  for (const divisor of DIVISORS) {
    const scale = stored(Math.fround(Math.fround(largest * 128) / divisor));
    if (scale === undefined && best === undefined) {
      throw new Error("int4 holds magnitudes below 4,095 and no NaN");
    }
    if (scale === undefined) continue;
    const error = squaredErrors(group, unitOf(scale));
    if (best === undefined || error < least) [best, least] = [scale, error];
  }
  return best;
}

function squaredErrors(group, unit) {
  let sum = 0;
  for (const x of group) {
    const error = x - whole(x, unit) * unit;
    sum += error * error;
  }
  return sum;
}

/** The nearest whole number of units from -8 to 7; of two that are equally near, the even one. */
function whole(x, unit) {
  const units = x * (1 / unit) + ROUND - ROUND;
  return Math.min(7, Math.max(-8, units));
}

/** The bits of a scale, given as 128 times what it is; undefined for one that is too large, or NaN. */
function stored(scale) {
  const bits = halfOf(Math.abs(scale));
  if (bits >= 0x7c00) return undefined;
  return (scale < 0 ? 0x8000 : 0) | Math.max(bits, SMALLEST_SCALE);
}

/** What whole numbers are multiplied by. */
const unitOf = (scale) => floatOf(scale) / 128;
