// Files of safetensors: their tensors, and the head of a file that is written.
//
// A source of weights is `{ tensors, size, close }`, and a tensor `{ name, dtype, shape, bytes, read }`;
// gguf.mjs opens another kind of file as the same.

import { open } from "node:fs/promises";

/** Opens a file, whose tensors come in the order of their bytes. */
export async function openSafetensors(path) {
  const file = await open(path);
  try {
    const { tensors, data, size } = await headerOf(file, path);
    const readable = tensors.map(({ begin, end, ...tensor }) => {
      const read = async () => {
        const buffer = Buffer.alloc(end - begin);
        await file.read(buffer, 0, buffer.length, data + begin);
        return buffer;
      };
      return { ...tensor, bytes: end - begin, read };
    });
    return { tensors: readable, size, close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
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
      return { name, dtype, shape, begin, end };
    },
  );
  tensors.sort((a, b) => a.begin - b.begin);
  const data = 8 + bytes;
  if (data + (tensors.at(-1)?.end ?? 0) !== size) {
    throw new Error(`${path} has another length than its header says`);
  }
  return { tensors, data, size };
}

/** The bytes in front of tensors that follow each other: `{ name, dtype, shape, bytes }`. */
export function headOf(tensors) {
  const header = {};
  let end = 0;
  for (const { name, dtype, shape, bytes } of tensors) {
    header[name] = { dtype, shape, data_offsets: [end, (end += bytes)] };
  }
  // The format wants eight bytes each; blanks fill up.
  let text = JSON.stringify(header);
  text = text.padEnd(text.length + (-Buffer.byteLength(text) & 7));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  return Buffer.concat([length, Buffer.from(text)]);
}
