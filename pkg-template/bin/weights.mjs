// The weights of a model's folder, written anew with matrices in blocks.
//
// Which matrix is packed how is the caller's matter, and so is what it costs.

import { open } from "node:fs/promises";
import { join } from "node:path";
import { BLOCK } from "./int8.mjs";

export const WEIGHTS = "model.safetensors";

/**
 * Writes the weights of a folder anew, tensor by tensor; bytes before and after. `packerOf` is
 * given each matrix, and the largest of them.
 */
export async function convertWeights(fromFolder, toFolder, packerOf) {
  const [from, to] = [fromFolder, toFolder].map((at) => join(at, WEIGHTS));
  const file = await open(from);
  try {
    const { tensors, data } = await headerOf(file, from);
    const matrices = tensors.filter(isMatrix);
    const [largest] = matrices.toSorted((a, b) => b.elements - a.elements);
    const plans = tensors.map((tensor) => {
      const packer = isMatrix(tensor) ? packerOf(tensor, largest) : undefined;
      return { ...tensor, as: planOf(tensor, packer) };
    });
    const header = {};
    let end = 0;
    for (const { name, as } of plans) {
      const data_offsets = [end, (end += as.bytes)];
      header[name] = { dtype: as.dtype, shape: as.shape, data_offsets };
    }
    // The format wants eight bytes each; blanks fill up.
    let text = JSON.stringify(header);
    text = text.padEnd(Math.ceil(Buffer.byteLength(text) / 8) * 8);
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
    const out = await open(to, "w");
    try {
      await out.write(length);
      await out.write(text);
      for (const { name, dtype, begin, end, as } of plans) {
        const bytes = Buffer.alloc(end - begin);
        await file.read(bytes, 0, bytes.length, data + begin);
        try {
          await out.write(as.convert(bytes, dtype));
        } catch (cause) {
          throw new Error(`tensor '${name}': ${cause.message}`, { cause });
        }
      }
    } finally {
      await out.close();
    }
    const before = data + (tensors.at(-1)?.end ?? 0);
    return [before, 8 + Buffer.byteLength(text) + end];
  } finally {
    await file.close();
  }
}

/** How many layers the weights of a folder have. */
export async function layersOf(folder) {
  const path = join(folder, WEIGHTS);
  const file = await open(path);
  try {
    const { tensors } = await headerOf(file, path);
    return Math.max(0, ...tensors.map(({ layer = -1 }) => layer + 1));
  } finally {
    await file.close();
  }
}

async function headerOf(file, path) {
  const length = Buffer.alloc(8);
  const { size } = await file.stat();
  await file.read(length, 0, 8, 0);
  const bytes = Number(length.readBigUInt64LE());
  if (size < 8 || bytes > size - 8) {
    throw new Error(`${path} is no safetensors file, or is truncated`);
  }
  const text = Buffer.alloc(bytes);
  await file.read(text, 0, bytes, 8);
  const { __metadata__: _, ...header } = JSON.parse(text.toString());
  const tensors = Object.entries(header).map(
    ([name, { dtype, shape, ...at }]) => {
      const [begin, end] = at.data_offsets;
      const [, layer] = /\.(\d+)\./.exec(name) ?? [];
      return {
        ...{ name, dtype, shape, begin, end },
        elements: shape.reduce((product, dim) => product * dim, 1),
        // The number in the name, as in `encoder.layer.5.output.dense.weight`.
        layer: layer === undefined ? undefined : Number(layer),
      };
    },
  );
  tensors.sort((a, b) => a.begin - b.begin);
  const data = 8 + bytes;
  if (data + (tensors.at(-1)?.end ?? 0) !== size) {
    throw new Error(`${path} has another length than its header says`);
  }
  return { tensors, data };
}

/** Whether a tensor can be written in blocks. */
function isMatrix({ name, dtype, shape, elements }) {
  return (
    shape.length === 2 &&
    /\.weight$/.test(name) &&
    // A bias for each distance, which encoders keep in 32 bits.
    !/relative_attention_bias/.test(name) &&
    dtype in WIDEN &&
    // What would leave a block open may be followed by another part of the same matrix.
    elements % BLOCK === 0
  );
}

/** How a tensor is written: in blocks where there is a packer, or as it is. */
function planOf({ dtype, shape, elements, begin, end }, packer) {
  if (packer === undefined) {
    return { dtype, shape, bytes: end - begin, convert: (bytes) => bytes };
  }
  const { BLOCK_BYTES, pack } = packer;
  const blocks = elements / BLOCK;
  return {
    ...{ dtype: "U8", shape: [blocks, BLOCK_BYTES] },
    bytes: blocks * BLOCK_BYTES,
    convert: (bytes, dtype) => pack(WIDEN[dtype](bytes)),
  };
}

/** The numbers in bytes of a file, in 32 bits. */
const WIDEN = {
  F32: ({ buffer, byteOffset, length }) =>
    new Float32Array(buffer.slice(byteOffset, byteOffset + length)),
  F16(bytes) {
    return Float32Array.from(halves(bytes), (bits) => {
      const sign = bits & 0x8000 ? -1 : 1;
      const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
      if (exponent === 0) return sign * fraction * 2 ** -24;
      if (exponent < 31) return sign * (1024 + fraction) * 2 ** (exponent - 25);
      return fraction === 0 ? sign * Infinity : NaN;
    });
  },
  BF16(bytes) {
    const words = Uint32Array.from(halves(bytes), (bits) => bits << 16);
    return new Float32Array(words.buffer);
  },
};

const halves = ({ buffer, byteOffset, length }) =>
  new Uint16Array(buffer.slice(byteOffset, byteOffset + length));
