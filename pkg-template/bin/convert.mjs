// Converts the folder of a model to one with fewer bytes, and holds it to what the model was.

import {
  copyFile,
  mkdir,
  open,
  readdir,
  readFile,
  rm,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { open as openSession } from "../dist/index.js";
import "../dist/embeddings.js";
import { BLOCK, BLOCK_BYTES, pack } from "./int8.mjs";

const WEIGHTS = "model.safetensors";

/** What a folder has besides, and is copied: descriptions and words, and the weights of modules. */
const COPIED = /\.(json|txt|md)$|\/model\.safetensors$/;

/** Texts that are compared: prose, a question in another language, one without spaces, and code. */
const TEXTS = [
  "The cat sat on the mat, and the dog slept.",
  "Wie spät ist es in Zürich? Um 14:30 Uhr!",
  "価格は1,200円です。",
  "def mean(xs): return sum(xs) / len(xs)",
];
const MOST_TOKENS = 32;

/** Writes the model in `from` to `to`, with matrices as int8, and tells how near its vectors are. */
export async function convert(from, to, say = console.log) {
  const names = await filesOf(from);
  if (names.includes("framebatch.json")) {
    throw new Error(
      `${from} was converted already; give the model's own folder`,
    );
  }
  if (!names.includes(WEIGHTS)) {
    throw new Error(`${from} has no ${WEIGHTS}; give the folder of a model`);
  }
  // Before anything is written, because what fails later is removed: a file of that name stays.
  const there = await readdir(to).catch((error) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  if (there.length > 0) throw new Error(`${to} is there already, with files`);
  try {
    return await write(from, to, names, say);
  } catch (error) {
    // Nothing half written stays.
    await rm(to, { recursive: true, force: true });
    throw error;
  }
}

async function write(from, to, names, say) {
  for (const name of names.filter((name) => COPIED.test(name))) {
    await mkdir(dirname(join(to, name)), { recursive: true });
    await copyFile(join(from, name), join(to, name));
  }
  await mkdir(to, { recursive: true });
  const bytes = await convertWeights(join(from, WEIGHTS), join(to, WEIGHTS));
  const references = await referencesOf(from);
  const kept = { storage: "int8", references };
  await writeFile(join(to, "framebatch.json"), JSON.stringify(kept));
  const fidelity = await fidelityOf(to, references);
  const [before, after] = bytes.map((count) => (count / 1e6).toFixed(1));
  say(`${to}: ${after} MB of weights instead of ${before}`);
  if (fidelity !== undefined) {
    say(`the least cosine with the vectors of ${from}: ${fidelity.toFixed(6)}`);
  }
  return { bytes, fidelity };
}

/** The names of all files of a folder, with `/` between folders. */
async function filesOf(folder) {
  const entries = await readdir(folder, {
    recursive: true,
    withFileTypes: true,
  });
  return entries
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .map((path) => path.slice(join(folder, "/").length).replaceAll("\\", "/"));
}

/** Writes the weights anew, tensor by tensor; bytes before and after. */
async function convertWeights(from, to) {
  const file = await open(from);
  try {
    const { tensors, data } = await headerOf(file, from);
    const plans = tensors.map((tensor) => ({ ...tensor, as: planOf(tensor) }));
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
  return { tensors, data };
}

/** How a tensor is written: a matrix as int8, anything else as it is. */
function planOf({ name, dtype, shape, begin, end }) {
  const elements = shape.reduce((product, dim) => product * dim, 1);
  const isMatrix =
    shape.length === 2 &&
    /\.weight$/.test(name) &&
    // A bias for each distance, which encoders keep in 32 bits.
    !/relative_attention_bias/.test(name) &&
    dtype in WIDEN;
  // What would leave a block open may be followed by another part of the same matrix.
  if (isMatrix && elements % BLOCK === 0) {
    const blocks = elements / BLOCK;
    return {
      ...{ dtype: "U8", shape: [blocks, BLOCK_BYTES] },
      bytes: blocks * BLOCK_BYTES,
      convert: (bytes, dtype) => pack(WIDEN[dtype](bytes)),
    };
  }
  return { dtype, shape, bytes: end - begin, convert: (bytes) => bytes };
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

/** The folder as `gpu.embedder` takes it: files by name. */
async function folderOf(folder) {
  const files = new Map();
  for (const name of await filesOf(folder)) {
    if (name !== WEIGHTS && !COPIED.test(name)) continue;
    files.set(name, await readFile(join(folder, name)));
  }
  return files;
}

/** Texts' vectors by the model as it is; none of a reranker, which gives a number. */
async function referencesOf(folder) {
  const config = JSON.parse(await readFile(join(folder, "config.json")));
  const isReranker = config.architectures?.some((name) =>
    name.endsWith("ForSequenceClassification"),
  );
  if (isReranker) return [];
  return withEmbedder(folder, { dtype: "f32" }, async (embedder) => {
    const references = TEXTS.map(async (text, seed) => {
      const ids = idsOf(embedder, text, seed);
      const vector = await embedder.embedIds(ids);
      return { ids: [...ids], vector: [...vector] };
    });
    return Promise.all(references);
  });
}

/** The first tokens of a text; drawn ones where the model's tokenizer is not known. */
function idsOf(embedder, text, seed) {
  const { maxTokens, vocabulary } = embedder.info;
  const most = Math.min(MOST_TOKENS, maxTokens);
  try {
    const ids = embedder.ids(text);
    if (ids.length > 0) return ids.slice(0, most);
  } catch (error) {
    if (error.code !== "unsupported") throw error;
  }
  const draw = (_, i) =>
    4 + ((Math.imul(most * seed + i, 0x9e3779b1) >>> 0) % (vocabulary - 4));
  return Uint32Array.from({ length: most }, draw);
}

/** Loads the folder that was written, which compares its vectors itself. */
async function fidelityOf(folder, references) {
  if (references.length === 0) return undefined;
  return withEmbedder(folder, {}, ({ info }) => info.fidelity);
}

async function withEmbedder(folder, options, use) {
  const gpu = await openSession({ engine: "cpu", flush: "eager" });
  try {
    return await use(await gpu.embedder(await folderOf(folder), options));
  } finally {
    await gpu.dispose();
  }
}
