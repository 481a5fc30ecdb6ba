// Converts the folder of a model to one with fewer bytes, and holds it to what the model was.

import {
  copyFile,
  mkdir,
  readdir,
  readFile,
  rm,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { open } from "../dist/index.js";
import "../dist/embeddings.js";
import * as int4 from "./int4.mjs";
import * as int8 from "./int8.mjs";
import { convertWeights, layersOf, WEIGHTS } from "./weights.mjs";

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

/** How matrices can be kept. */
export const DTYPES = { int8, int4 };

/** Writes the model in `from` to `to`, with matrices as `dtype`, and tells how near its vectors are. */
export async function convert(from, to, dtype = "int8", say = console.log) {
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
    return await write(from, to, { names, dtype, say });
  } catch (error) {
    // Nothing half written stays.
    await rm(to, { recursive: true, force: true });
    throw error;
  }
}

async function write(from, to, { names, dtype, say }) {
  // First of all, because the weights may not be what they should.
  const layers = await layersOf(from);
  for (const name of names.filter((name) => COPIED.test(name))) {
    await mkdir(dirname(join(to, name)), { recursive: true });
    await copyFile(join(from, name), join(to, name));
  }
  await mkdir(to, { recursive: true });
  const references = await referencesOf(from);
  const kept = { storage: dtype, references };
  await writeFile(join(to, "framebatch.json"), JSON.stringify(kept));
  const model = { from, to, layers, references };
  const written = dtype === "int4" ? writeInt4(model) : writeInt8(model);
  const { bytes, fidelity, note } = await written;
  const [before, after] = bytes.map((count) => (count / 1e6).toFixed(1));
  say(`${to}: ${after} MB of weights instead of ${before}${note}`);
  if (fidelity !== undefined) {
    say(`the least cosine with the vectors of ${from}: ${fidelity.toFixed(6)}`);
  }
  return { bytes, fidelity };
}

async function writeInt8({ from, to, references }) {
  const bytes = await convertWeights(from, to, () => int8);
  return { bytes, fidelity: await fidelityOf(to, references), note: "" };
}

/**
 * Writes matrices as int4, and those of the last layers as int8: of as few as loading takes.
 * Errors of the last layers reach the vector with the least between.
 */
async function writeInt4({ from, to, layers, references }) {
  if (references.length === 0) {
    throw new Error(
      `${from} is a reranker, which has no vectors that tell what 4 bits cost; convert it with --dtype int8`,
    );
  }
  const attempt = async (kept) => {
    const bytes = await convertWeights(from, to, (matrix, largest) => {
      const isKept =
        matrix.layer === undefined || matrix.layer >= layers - kept;
      return isKept && matrix !== largest ? int8 : int4;
    });
    return { bytes, fidelity: await fidelityOf(to, references) };
  };
  let [fewest, most] = [0, layers];
  while (fewest < most) {
    const kept = Math.floor((fewest + most) / 2);
    if (await isTaken(attempt(kept))) most = kept;
    else fewest = kept + 1;
  }
  try {
    const note = ` (${fewest} of ${layers} layers as int8)`;
    return { ...(await attempt(fewest)), note };
  } catch (cause) {
    if (cause.code !== "unsupported") throw cause;
    const problem = `${from} cannot be had as int4, with all layers as int8 either; convert it with --dtype int8`;
    throw new Error(problem, { cause });
  }
}

/** Whether loading takes a folder: `unsupported` are vectors that are too far off. */
async function isTaken(attempt) {
  try {
    await attempt;
    return true;
  } catch (error) {
    if (error.code === "unsupported") return false;
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
  const gpu = await open({ engine: "cpu", flush: "eager" });
  try {
    return await use(await gpu.embedder(await folderOf(folder), options));
  } finally {
    await gpu.dispose();
  }
}
