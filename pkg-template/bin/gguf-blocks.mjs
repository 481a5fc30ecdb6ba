// The numbers of GGUF's tensors: blocks of whole numbers with scales, widened to 32-bit floats.
//
// The layouts are those of ggml's `block_*` (https://github.com/ggml-org/ggml,
// src/ggml-common.h). Every product is exact in 64 bits and is rounded once, when it is stored,
// as ggml rounds it. Blocks of ggml are not written here.

import { WIDEN, floatOf } from "./floats.mjs";
import { BLOCK_BYTES, halfOf, packGroup, placeGroup } from "./int8.mjs";

/** A 16-bit float. */
const half = (view, at) => floatOf(view.getUint16(at, true));

/** Blocks of 32 whole numbers of a byte. */
function eightBits(view, at, out) {
  for (let i = 0; i < 32; i += 1) out[i] = view.getInt8(at + i);
}

/** Blocks of 32 whole numbers of 4 bits, or of 5, whose fifth bits come first. */
const fewBits = ({ hasFifth, middle }) => {
  const low = hasFifth ? 4 : 0;
  return (view, at, out) => {
    const fifths = hasFifth ? view.getUint32(at, true) : 0;
    for (let i = 0; i < 32; i += 1) {
      const byte = view.getUint8(at + low + (i % 16));
      const four = i < 16 ? byte & 15 : byte >> 4;
      out[i] = (four | (((fifths >>> i) & 1) << 4)) - middle;
    }
  };
};

/** A scale, and behind it the whole numbers that it is of. */
const scaled = (wholes) => ({
  widen(view, at, out) {
    const scale = half(view, at);
    wholes(view, at + 2, out);
    for (let i = 0; i < out.length; i += 1) out[i] *= scale;
  },
  wholes,
});

/** A scale, a least number, and behind them whole numbers from 0 on. */
const scaledAbove = (wholes) => ({
  widen(view, at, out) {
    const [scale, least] = [half(view, at), half(view, at + 2)];
    wholes(view, at + 4, out);
    for (let i = 0; i < out.length; i += 1) out[i] = scale * out[i] + least;
  },
});

/** Eight parts of 32 numbers of 4 or 5 bits, each with a scale and a least number of 6 bits. */
const scaledInParts = ({ hasFifth }) => {
  const low = hasFifth ? 48 : 16;
  const widen = (view, at, out) => {
    const [scale, least] = [half(view, at), half(view, at + 2)];
    for (let part = 0; part < 8; part += 1) {
      const [factor, below] = factorsOf(view, at + 4, part);
      for (let i = 0; i < 32; i += 1) {
        const byte = view.getUint8(at + low + 32 * (part >> 1) + i);
        const four = part % 2 === 0 ? byte & 15 : byte >> 4;
        const fifth = hasFifth ? (view.getUint8(at + 16 + i) >> part) & 1 : 0;
        const whole = four | (fifth << 4);
        out[32 * part + i] = scale * factor * whole - least * below;
      }
    }
  };
  return { widen };
};

/**
 * The scale and the least number of a part, 6 bits each, of twelve bytes: those of the first four
 * parts are the low bits of bytes; the others' have 4 bits in the last bytes, and 2 above the first.
 */
function factorsOf(view, at, part) {
  const byte = (i) => view.getUint8(at + i);
  if (part < 4) return [byte(part) & 63, byte(part + 4) & 63];
  const [first, second, rest] = [byte(part - 4), byte(part), byte(part + 4)];
  return [
    (rest & 15) | ((first >> 6) << 4),
    (rest >> 4) | ((second >> 6) << 4),
  ];
}

/** Sixteen parts of 16 numbers of 6 bits, each with a scale of 8. */
function sixBits(view, at, out) {
  const scale = half(view, at + 208);
  for (let i = 0; i < 256; i += 1) {
    // Each half is four rows of 32: two in low bits, two in high ones.
    const [part, row, column] = [i >> 7, (i >> 5) & 3, i & 31];
    const byte = view.getUint8(at + 64 * part + 32 * (row & 1) + column);
    const four = row < 2 ? byte & 15 : byte >> 4;
    const two = (view.getUint8(at + 128 + 32 * part + column) >> (2 * row)) & 3;
    const factor = view.getInt8(at + 192 + (i >> 4));
    out[i] = scale * factor * ((four | (two << 4)) - 32);
  }
}

/**
 * Formats by ggml's numbers: how many numbers a block has, in how many bytes. Those without
 * `widen` are formats of safetensors too; blocks with `wholes` are these times one scale.
 */
export const FORMATS = new Map([
  [0, { name: "F32", numbers: 1, bytes: 4 }],
  [1, { name: "F16", numbers: 1, bytes: 2 }],
  [2, of32("Q4_0", 18, scaled(fewBits({ middle: 8 })))],
  [3, of32("Q4_1", 20, scaledAbove(fewBits({ middle: 0 })))],
  [6, of32("Q5_0", 22, scaled(fewBits({ middle: 16, hasFifth: true })))],
  [7, of32("Q5_1", 24, scaledAbove(fewBits({ middle: 0, hasFifth: true })))],
  [8, of32("Q8_0", 34, scaled(eightBits))],
  [12, of256("Q4_K", 144, scaledInParts({ hasFifth: false }))],
  [13, of256("Q5_K", 176, scaledInParts({ hasFifth: true }))],
  [14, of256("Q6_K", 210, { widen: sixBits })],
  [30, { name: "BF16", numbers: 1, bytes: 2 }],
]);

function of32(name, bytes, reading) {
  return { name, numbers: 32, bytes, ...reading };
}

function of256(name, bytes, reading) {
  return { name, numbers: 256, bytes, ...reading };
}

/** Names of formats that are not known. */
export const OTHERS = {
  ...{ 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS" },
  ...{ 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S" },
  ...{ 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64" },
  ...{ 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4" },
  40: "NVFP4",
};

/** How many numbers a shape has. */
export const numbersOf = (shape) =>
  shape.reduce((product, dim) => product * dim, 1);

/** The numbers of blocks, in 32 bits. */
export function widened({ name, numbers, bytes, widen }, blocks) {
  if (widen === undefined) return WIDEN[name](blocks);
  const { buffer, byteOffset, byteLength } = blocks;
  const view = new DataView(buffer, byteOffset, byteLength);
  const count = byteLength / bytes;
  const floats = new Float32Array(count * numbers);
  for (let i = 0; i < count; i += 1) {
    widen(view, i * bytes, floats.subarray(i * numbers, (i + 1) * numbers));
  }
  return floats;
}

/**
 * Blocks of one scale as int8: the same whole numbers, with 128 times the scale. Only a group whose
 * scale or whole numbers int8 has not is rounded.
 */
export function int8Of({ bytes, widen, wholes }, blocks) {
  const { buffer, byteOffset, byteLength } = blocks;
  const view = new DataView(buffer, byteOffset, byteLength);
  const groups = byteLength / bytes;
  const packed = new DataView(new ArrayBuffer((groups / 2) * BLOCK_BYTES));
  const numbers = new Float32Array(32);
  for (let group = 0; group < groups; group += 1) {
    const scale = 128 * half(view, group * bytes);
    wholes(view, group * bytes + 2, numbers);
    if (scale < 0) numbers.forEach((whole, i) => (numbers[i] = -whole));
    const size = Math.abs(scale);
    const isHeld = numbers.every((whole) => Math.abs(whole) <= 127);
    if (isHeld && size >= 2 ** -14 && size <= 65504) {
      placeGroup(packed, group, halfOf(size), numbers);
    } else {
      widen(view, group * bytes, numbers);
      packGroup(packed, group, numbers);
    }
  }
  return new Uint8Array(packed.buffer);
}
