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
import { openGguf } from "./gguf.mjs";
import { headOf, openSafetensors } from "./safetensors.mjs";
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

/**
 * Writes the model in `from` to `to`, with matrices as `dtype`, and tells how near its vectors are.
 * Its weights are those of the file `gguf`, if one is named.
 */
export async function convert(
  from,
  to,
  { dtype = "int8", gguf, say = console.log } = {},
) {
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
    return await write({ from, names, source }, to, { dtype, say });
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

async function write(model, to, { dtype, say }) {
  const { from, names, source } = model;
  try {
    for (const name of names.filter((name) => COPIED.test(name))) {
      await mkdir(dirname(join(to, name)), { recursive: true });
      await copyFile(join(from, name), join(to, name));
    }
    await mkdir(to, { recursive: true });
    // Before anything is computed, because this names a tensor that cannot be packed.
    const size = await convertWeights(source, join(to, WEIGHTS), () => dtype);
    const references = await referencesOf(model);
    const kept = { storage: dtype, references };
    await writeFile(join(to, "framebatch.json"), JSON.stringify(kept));
    const { fidelity, note, ...written } =
      dtype === "int4"
        ? await writeInt4({ from, to, source, references })
        : { size, fidelity: await fidelityOf(to, references), note: "" };
    const bytes = [source.size, written.size];
    const [before, after] = bytes.map((count) => (count / 1e6).toFixed(1));
    say(`${to}: ${after} MB of weights instead of ${before}${note}`);
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

/**
 * Writes matrices as int4, and those of the last layers as int8: of as few as loading takes.
 * Errors of the last layers reach the vector with the least between.
 */
async function writeInt4({ from, to, source, references }) {
  if (references.length === 0) {
    throw new Error(
      `${from} is a reranker, which has no vectors that tell what 4 bits cost; convert it with --dtype int8`,
    );
  }
  const layers = layersOf(source);
  const attempt = async (kept) => {
    const dtypeOf = ({ layer, isLargest }) => {
      const isKept = layer === undefined || layer >= layers - kept;
      return isKept && !isLargest ? "int8" : "int4";
    };
    const size = await convertWeights(source, join(to, WEIGHTS), dtypeOf);
    return { size, fidelity: await fidelityOf(to, references) };
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
  const gpu = await open({ engine: "cpu", flush: "eager" });
  try {
    return await use(gpu);
  } finally {
    await gpu.dispose();
  }
}
