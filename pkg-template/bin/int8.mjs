// Numbers as int8: blocks of 64, each 64 whole numbers of a byte and two scales of 16 bits.
//
// The bytes are those that a device keeps for a tensor with the dtype int8. A scale is of 32
// neighbors: a 16-bit float, 128 times what the whole numbers are multiplied by.

import { floatOf } from "./floats.mjs";

/** Numbers and bytes of a block. */
export const BLOCK = 64;
export const BLOCK_BYTES = 68;

export const GROUP = 32;
export const SMALLEST_SCALE = 0x0400;

/** The bytes of numbers in 32 bits, which fill whole blocks. Throws for what int8 cannot hold. */
export function pack(floats) {
  const bytes = new Uint8Array((floats.length / BLOCK) * BLOCK_BYTES);
  const view = new DataView(bytes.buffer);
  for (let group = 0; group * GROUP < floats.length; group += 1) {
    const from = group * GROUP;
    packGroup(view, group, floats.subarray(from, from + GROUP));
  }
  return bytes;
}

/** Packs the 32 numbers of a group to their place in blocks. */
export function packGroup(view, group, floats) {
  const scale = scaleOf(floats);
  const unit = floatOf(scale) / 128;
  placeGroup(
    view,
    group,
    scale,
    floats.map((x) => whole(x, unit)),
  );
}

/** Writes the whole numbers of a group, and the bits of its scale, to their place in blocks. */
export function placeGroup(view, group, scale, wholes) {
  const half = group % 2;
  const to = ((group - half) / 2) * BLOCK_BYTES;
  view.setUint16(to + BLOCK + 2 * half, scale, true);
  for (let i = 0; i < GROUP; i += 1) {
    view.setInt8(to + half * GROUP + i, wholes[i]);
  }
}

/** The bits of the 16-bit float by which a group is scaled. */
function scaleOf(group) {
  let largest = 0;
  for (const x of group) {
    if (!(Math.abs(x) <= largest)) largest = Math.abs(x);
  }
  const bits = halfOf(Math.fround(Math.fround(largest * 128) / 127));
  if (bits < 0x7c00) return Math.max(bits, SMALLEST_SCALE);
  throw new Error("int8 holds magnitudes below 65,009 and no NaN");
}

/** The nearest whole number of units; of two that are equally near, the even one. */
function whole(x, unit) {
  const units = Math.fround(x / unit);
  const below = Math.floor(units);
  const rest = units - below;
  const up = rest > 0.5 || (rest === 0.5 && below % 2 !== 0);
  return Math.min(127, Math.max(-127, up ? below + 1 : below));
}

/** The bits of the 16-bit float that is nearest to a number from 0; of two, the even one. */
export function halfOf(x) {
  if (Number.isNaN(x)) return 0x7e00;
  if (x >= 65520) return 0x7c00;
  // The steps of 16-bit floats of this size.
  const exponent = Math.max(-14, Math.floor(Math.log2(x)));
  const step = 2 ** (exponent - 10);
  const steps = x / step;
  const below = Math.floor(steps);
  const rest = steps - below;
  const up = rest > 0.5 || (rest === 0.5 && below % 2 === 1);
  const count = up ? below + 1 : below;
  // Subnormal ones count from 0; of others the leading 1 is in the exponent.
  return count < 1024 ? count : ((exponent + 14) << 10) + count;
}
