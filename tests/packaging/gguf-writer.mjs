// Writes GGUF and safetensors files for tests, and packs numbers into ggml's blocks.
//
// It shares no code with the package. Every encoder gives the numbers, in 64 bits, that its blocks
// stand for, so that a reader can be held to them.

import { readFileSync } from "node:fs";

/** Types of metadata. */
export const [U8, U16, U32, STRING, ARRAY] = [0, 2, 4, 8, 9];

export const u32 = (x) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(x);
  return bytes;
};

export const u64 = (x) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(x));
  return bytes;
};

/** A string, or bytes in the place of one. */
export const text = (of) => {
  const bytes = Buffer.from(of);
  return Buffer.concat([u64(bytes.length), bytes]);
};

/** An entry of the metadata. */
export const entry = (key, type, value) =>
  Buffer.concat([text(key), u32(type), value]);

export const architecture = (name) =>
  entry("general.architecture", STRING, text(name));

/**
 * A file. A tensor is `{ name, shape, type, bytes }`, its slowest dimension first; `offset`,
 * `dims` and the file's `magic`, `version` and counts may be what no file has.
 */
export function ggufFile({
  magic = "GGUF",
  version = 3,
  metadata = [],
  tensors = [],
  alignment = 32,
  counts = [tensors.length, metadata.length],
}) {
  let end = 0;
  const infos = [];
  const data = [];
  for (const { name, shape, type, bytes, offset = end, dims } of tensors) {
    const sizes = dims ?? [...shape].reverse();
    const head = [text(name), u32(sizes.length), ...sizes.map(u64)];
    infos.push(...head, u32(type), u64(offset));
    data.push(bytes, Buffer.alloc(-bytes.length & (alignment - 1)));
    end += bytes.length + data.at(-1).length;
  }
  const start = [Buffer.from(magic), u32(version), ...counts.map(u64)];
  const head = Buffer.concat([...start, ...metadata, ...infos]);
  const filled = Buffer.alloc(-head.length & (alignment - 1));
  return Buffer.concat([head, filled, ...data]);
}

/** The tensors of a safetensors file of 32-bit floats: `{ name, shape, floats }`. */
export function tensorsOf(path) {
  const file = readFileSync(path);
  const data = 8 + Number(file.readBigUInt64LE());
  const { __metadata__: _, ...header } = JSON.parse(file.subarray(8, data));
  return Object.entries(header).map(([name, { dtype, shape, ...at }]) => {
    const [begin, end] = at.data_offsets;
    const bytes = new Uint8Array(file.subarray(data + begin, data + end));
    const floats = dtype === "F32" ? new Float32Array(bytes.buffer) : undefined;
    return { name, shape, bytes, floats };
  });
}

/** A safetensors file of 32-bit floats. */
export function safetensorsFile(tensors) {
  let end = 0;
  const header = tensors.map(({ name, shape, floats }) => {
    const data_offsets = [end, (end += 4 * floats.length)];
    return [name, { dtype: "F32", shape, data_offsets }];
  });
  const head = JSON.stringify(Object.fromEntries(header));
  const data = tensors.map(({ floats }) => Float32Array.from(floats));
  const bytes = data.map(({ buffer }) => Buffer.from(buffer));
  return Buffer.concat([text(head), ...bytes]);
}

/** The nearest 16-bit float: its bits, and the number. */
function half(x) {
  const size = Math.abs(x);
  const exponent =
    size === 0 ? -14 : Math.max(-14, Math.floor(Math.log2(size)));
  const steps = Math.round(size / 2 ** (exponent - 10));
  const bits = steps < 1024 ? steps : ((exponent + 14) << 10) + steps;
  const number = steps * 2 ** (exponent - 10);
  return x < 0 ? [bits | 0x8000, -number] : [bits, number];
}

const clamp = (x, least, most) => Math.min(most, Math.max(least, x));
const ratio = (x, y) => (y === 0 ? 0 : Math.round(x / y));
const largest = (numbers) => Math.max(...numbers.map(Math.abs));
const parts = (numbers, size) =>
  Array.from({ length: numbers.length / size }, (_, i) =>
    numbers.slice(i * size, (i + 1) * size),
  );

/** Encoders: of the numbers of a block, the bytes and the numbers that these stand for. */
const BLOCKS = {
  F32: [1, ([x]) => [u32Of(Float32Array.of(x)), [Math.fround(x)]]],
  F16: [
    1,
    ([x]) => {
      const [bits, number] = half(x);
      return [[bits & 255, bits >> 8], [number]];
    },
  ],
  BF16: [
    1,
    ([x]) => {
      const [, , low, high] = u32Of(Float32Array.of(x));
      const number = new DataView(Uint8Array.of(0, 0, low, high).buffer);
      return [[low, high], [number.getFloat32(0, true)]];
    },
  ],
  Q8_0: [
    32,
    (x) => {
      const [bits, d] = half(largest(x) / 127);
      const q = x.map((x) => clamp(ratio(x, d), -127, 127));
      return [
        [bits & 255, bits >> 8, ...q.map((q) => q & 255)],
        q.map((q) => q * d),
      ];
    },
  ],
  Q4_0: [
    32,
    (x) => {
      const most = x.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
      const [bits, d] = half(most / -8);
      const q = x.map((x) => clamp(ratio(x, d) + 8, 0, 15));
      const low = q.slice(0, 16).map((low, i) => low + 16 * q[i + 16]);
      return [[bits & 255, bits >> 8, ...low], q.map((q) => (q - 8) * d)];
    },
  ],
  Q4_K: [
    256,
    (x) => {
      const groups = parts(x, 32);
      const least = groups.map((group) => Math.max(0, -Math.min(...group)));
      const span = groups.map(
        (group, i) => (Math.max(...group) + least[i]) / 15,
      );
      const [dBits, d] = half(Math.max(...span) / 63);
      const [mBits, m] = half(Math.max(...least) / 63);
      const scales = span.map((span) => clamp(ratio(span, d), 0, 63));
      const mins = least.map((least) => clamp(ratio(least, m), 0, 63));
      const q = x.map((x, i) => {
        const group = Math.floor(i / 32);
        return clamp(ratio(x + m * mins[group], d * scales[group]), 0, 15);
      });
      const twelve = Array.from({ length: 12 }, (_, i) => {
        if (i < 4) return scales[i] + 64 * (scales[i + 4] >> 4);
        if (i < 8) return mins[i - 4] + 64 * (mins[i] >> 4);
        return (scales[i - 4] & 15) + 16 * (mins[i - 4] & 15);
      });
      const four = Array.from({ length: 128 }, (_, i) => {
        const at = 64 * Math.floor(i / 32) + (i % 32);
        return q[at] + 16 * q[at + 32];
      });
      const halves = [dBits & 255, dBits >> 8, mBits & 255, mBits >> 8];
      const number = (q, i) => {
        const group = Math.floor(i / 32);
        return d * scales[group] * q - m * mins[group];
      };
      return [[...halves, ...twelve, ...four], q.map(number)];
    },
  ],
  Q6_K: [
    256,
    (x) => {
      const spans = parts(x, 16).map((group) => largest(group) / 31);
      const [bits, d] = half(Math.max(...spans) / 127);
      const scales = spans.map((span) => ratio(span, d));
      const q = x.map(
        (x, i) => clamp(ratio(x, d * scales[i >> 4]), -32, 31) + 32,
      );
      const low = Array.from({ length: 128 }, (_, i) => {
        const at = 128 * (i >> 6) + (i % 64);
        return (q[at] & 15) + 16 * (q[at + 64] & 15);
      });
      const high = Array.from({ length: 64 }, (_, i) => {
        const at = 128 * (i >> 5) + (i % 32);
        const two = [0, 32, 64, 96].map((row) => q[at + row] >> 4);
        return two[0] + 4 * two[1] + 16 * two[2] + 64 * two[3];
      });
      const bytes = [...low, ...high, ...scales, bits & 255, bits >> 8];
      return [bytes, q.map((q, i) => d * scales[i >> 4] * (q - 32))];
    },
  ],
};

/** ggml's numbers of formats. */
export const TYPES = {
  ...{ F32: 0, F16: 1, Q4_0: 2, Q5_0: 6, Q8_0: 8, Q2_K: 10 },
  ...{ Q4_K: 12, Q6_K: 14, BF16: 30 },
};

const u32Of = ({ buffer }) => new Uint8Array(buffer);

/** Numbers in a format: `{ type, bytes, numbers }`, the last in 64 bits. */
export function encoded(format, floats) {
  const [size, encode] = BLOCKS[format];
  const blocks = parts([...floats], size).map(encode);
  return {
    type: TYPES[format],
    bytes: Buffer.concat(blocks.map(([bytes]) => Uint8Array.from(bytes))),
    numbers: blocks.flatMap(([, numbers]) => numbers),
  };
}
