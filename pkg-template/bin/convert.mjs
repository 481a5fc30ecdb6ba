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
import { WIDEN } from "./floats.mjs";
import { openGguf } from "./gguf.mjs";
import { BLOCK, BLOCK_BYTES, pack } from "./int8.mjs";
import { headOf, openSafetensors } from "./safetensors.mjs";

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

/**
 * Writes the model in `from` to `to`, with matrices as int8, and tells how near its vectors are.
 * Its weights are those of the file `gguf`, if one is named.
 */
export async function convert(from, to, { gguf, say = console.log } = {}) {
  const names = await filesOf(from);
  if (names.includes("framebatch.json")) {
    throw new Error(
      `${from} was converted already; give the model's own folder`,
    );
  }
  const source = await sourceOf(from, names, gguf);
  try {
    // Before anything is written, because what fails later is removed: a file of that name stays.
    const there = await readdir(to).catch((error) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    if (there.length > 0) throw new Error(`${to} is there already, with files`);
    return await write({ from, names, source }, to, say);
  } finally {
    await source.close();
  }
}

/** Opens the weights of a folder: of safetensors, or else of the one GGUF file that is there. */
async function sourceOf(from, names, gguf) {
  if (gguf === undefined && names.includes(WEIGHTS)) {
    return openSafetensors(join(from, WEIGHTS));
  }
  const files = names.filter((name) => /^[^/]*\.gguf$/i.test(name));
  if (gguf === undefined && files.length === 0) {
    throw new Error(
      `${from} has no ${WEIGHTS} and no GGUF file; give the folder of a model`,
    );
  }
  if (gguf === undefined && files.length > 1) {
    throw new Error(
      `${from} has several GGUF files: ${files.join(", ")}; name one with --gguf`,
    );
  }
  return openGguf(gguf ?? join(from, files[0]), await configOf(from));
}

async function write({ from, names, source }, to, say) {
  try {
    for (const name of names.filter((name) => COPIED.test(name))) {
      await mkdir(dirname(join(to, name)), { recursive: true });
      await copyFile(join(from, name), join(to, name));
    }
    await mkdir(to, { recursive: true });
    const size = await convertWeights(source, join(to, WEIGHTS));
    const references = await referencesOf({ from, names, source });
    const kept = { storage: "int8", references };
    await writeFile(join(to, "framebatch.json"), JSON.stringify(kept));
    const fidelity = await fidelityOf(to, references);
    const bytes = [source.size, size];
    const [before, after] = bytes.map((count) => (count / 1e6).toFixed(1));
    say(`${to}: ${after} MB of weights instead of ${before}`);
    if (source.unused?.length > 0) {
      say(`left out, because nothing reads them: ${source.unused.join(", ")}`);
    }
    if (fidelity !== undefined) {
      const [of, cosine] = [source.path ?? from, fidelity.toFixed(6)];
      say(`the least cosine with the vectors of ${of}: ${cosine}`);
    }
    return { bytes, fidelity };
  } catch (error) {
    // Nothing half written stays.
    await rm(to, { recursive: true, force: true });
    throw error;
  }
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

/** Writes the weights anew, tensor by tensor; the bytes of the file. */
async function convertWeights({ tensors }, to) {
  const plans = tensors.map(planOf);
  const head = headOf(plans);
  const out = await open(to, "w");
  try {
    await out.write(head);
    for (const { name, convert } of plans) {
      try {
        await out.write(await convert());
      } catch (cause) {
        throw new Error(`tensor '${name}': ${cause.message}`, { cause });
      }
    }
  } finally {
    await out.close();
  }
  return plans.reduce((sum, { bytes }) => sum + bytes, head.length);
}

/** How a tensor is written: a matrix as int8, anything else as it is. */
function planOf(tensor) {
  const { name, dtype, shape, read } = tensor;
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
      ...{ name, dtype: "U8", shape: [blocks, BLOCK_BYTES] },
      bytes: blocks * BLOCK_BYTES,
      convert: async () => tensor.int8?.() ?? pack(WIDEN[dtype](await read())),
    };
  }
  return { name, dtype, shape, bytes: tensor.bytes, convert: read };
}

/** The folder as `gpu.embedder` takes it: files by name. */
async function folderOf(folder) {
  const files = new Map();
  for (const name of await filesOf(folder)) {
    if (name !== WEIGHTS && !COPIED.test(name)) continue;
    files.set(name, await readFile(join(folder, name)));
  }
  return files;
}

/** The same, with the model as it is in place of weights that the folder may have. */
async function wholeFolderOf({ from, names, source }) {
  const files = new Map();
  for (const name of names.filter((name) => COPIED.test(name))) {
    files.set(name, await readFile(join(from, name)));
  }
  const head = headOf(source.tensors);
  const bytes = source.tensors.reduce((sum, { bytes }) => sum + bytes, 0);
  const weights = new Uint8Array(head.length + bytes);
  weights.set(head);
  let at = head.length;
  for (const tensor of source.tensors) {
    weights.set(await tensor.read(), at);
    at += tensor.bytes;
  }
  return files.set(WEIGHTS, weights);
}

async function configOf(folder) {
  const path = join(folder, "config.json");
  const text = await readFile(path, "utf8");
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`${path}: ${cause.message}`, { cause });
  }
}

/** Texts' vectors by the model as it is; none of a reranker, which gives a number. */
async function referencesOf(model) {
  const { architectures } = await configOf(model.from);
  const isReranker = architectures?.some((name) =>
    name.endsWith("ForSequenceClassification"),
  );
  const files = await wholeFolderOf(model);
  const options = { dtype: "f32" };
  // A reranker is loaded all the same, which says what its weights lack.
  if (isReranker) {
    await withSession((gpu) => gpu.reranker(files, options));
    return [];
  }
  return withSession(async (gpu) => {
    const embedder = await gpu.embedder(files, options);
    const references = TEXTS.map(async (text, seed) => {
      const ids = idsOf(embedder, text, seed);
      const vector = await embedder.embedIds(ids);
      if (!vector.every(Number.isFinite)) {
        throw new Error("the model's weights give vectors that are no numbers");
      }
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
  const files = await folderOf(folder);
  return withSession(async (gpu) => (await gpu.embedder(files)).info.fidelity);
}

async function withSession(use) {
  const gpu = await openSession({ engine: "cpu", flush: "eager" });
  try {
    return await use(gpu);
  } finally {
    await gpu.dispose();
  }
}
