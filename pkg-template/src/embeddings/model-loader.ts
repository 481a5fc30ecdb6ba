// Loads a model from its folder to the device, each tensor as its bytes arrive.
//
// The content of files is checked by the files that read these; here, whatever is half
// loaded is released when something is wrong or the caller gives up.

import { endedError } from "../calls/call-errors.js";
import { FramebatchError } from "../checks/errors.js";
import type { Calls } from "../session/calls.js";
import type { Node } from "../tensor/node.js";
import { chooseArithmetic } from "./arithmetic.js";
import { ByteReader } from "./byte-reader.js";
import { type Config, describe, prefetch, type Task } from "./config.js";
import { Embedder } from "./embedder.js";
import { folderOf } from "./folder.js";
import {
  checkEmbedderOptions,
  checkRerankerOptions,
  type EmbedderOptions,
  type RerankerOptions,
} from "./loading-options.js";
import { type LoadedWeights, Model, type Reference } from "./model.js";
import { readReferences } from "./references.js";
import { Reranker } from "./reranker.js";
import { cosine, SelfTest } from "./self-test.js";
import { FILE, headerLength, tensorsOf } from "./safetensors.js";
import {
  ABOUT,
  type Folder,
  missing,
  type ModelSource,
  type OpenFile,
} from "./source.js";
import { FileTokenizer } from "./file-tokenizer.js";
import { EMBED, SCORE, TokenOperands } from "./token-operands.js";
import {
  finishWords,
  freeWords,
  readVocabulary,
  type Splitting,
} from "./vocabulary.js";
import { loadInstance, type ModelEncoder, Tokenizer } from "./wasm-instance.js";
import { bytesFor, type Keeping, WeightList } from "./weights.js";

/** Loads an embedder. */
export async function loadEmbedder(
  calls: Calls,
  source: ModelSource,
  options: EmbedderOptions = {},
): Promise<Embedder> {
  checkEmbedderOptions(options);
  const task = { isReranker: false, dimensions: options.dimensions ?? 0 };
  return load(calls, source, task, options, async (loaded, signal) => {
    const { encoder, weights } = loaded;
    const { config } = encoder;
    const tokenizer = leavingIds(loaded.tokenizer);
    const model = new Model(calls, encoder, "embedder", weights);
    await orDrop(model, async () => {
      await compare(calls, loaded, model, options);
      const textsOf = (): Uint32Array[] => testTexts(encoder, loaded.tokenizer);
      await chooseArithmetic(model, textsOf, options);
      await warm(calls, new TokenOperands(EMBED, model, idOf(config)), signal);
    });
    return new Embedder(calls, model, tokenizer);
  });
}

/** Loads a reranker. */
export async function loadReranker(
  calls: Calls,
  source: ModelSource,
  options: RerankerOptions = {},
): Promise<Reranker> {
  checkRerankerOptions(options);
  const task = { isReranker: true, dimensions: 0 };
  const loading = load(calls, source, task, options, async (loaded, signal) => {
    const { encoder, tokenizer, weights } = loaded;
    if (tokenizer instanceof FramebatchError) throw tokenizer;
    const { config } = encoder;
    const model = new Model(calls, encoder, "reranker", weights);
    const types = new Uint32Array(config.types > 1 ? 1 : 0);
    const operands = new TokenOperands(SCORE, model, idOf(config), types);
    await orDrop(model, () => warm(calls, operands, signal));
    return new Reranker(calls, model, tokenizer);
  });
  return loading.catch((error: unknown) => {
    throw named("reranker", error);
  });
}

/** What splits a model's texts; an error says why it takes only ids. */
function tokenizerOf(
  { instance, config }: ModelEncoder,
  splitting: Splitting,
): Splitter | FramebatchError {
  if (
    splitting instanceof FileTokenizer ||
    splitting instanceof FramebatchError
  ) {
    return splitting;
  }
  return new Tokenizer(instance, splitting, config.lowered);
}

/** What an embedder says where there is no tokenizer. */
function leavingIds(
  tokenizer: Splitter | FramebatchError,
): Splitter | FramebatchError {
  if (!(tokenizer instanceof FramebatchError)) return tokenizer;
  const { code, message } = tokenizer;
  return new FramebatchError(
    code,
    `${message}; or split texts with the model's own tokenizer and give the numbers to embedIds`,
    { cause: tokenizer },
  );
}

/** An error of loading, which speaks of an embedder, as one of something else. */
function named(what: string, error: unknown): unknown {
  const begin = `${ABOUT}: `;
  if (!(error instanceof FramebatchError) || !error.message.startsWith(begin)) {
    return error;
  }
  const message = `${what}: ${error.message.slice(begin.length)}`;
  return new FramebatchError(error.code, message, { cause: error });
}

/** A text of one token, which is any id but that of a padding that has no position. */
const idOf = ({ firstPosition }: Config): Uint32Array =>
  Uint32Array.of(firstPosition === 1 ? 1 : 0);

type Splitter = Tokenizer | FileTokenizer;

/** A model whose weights are on the device. */
interface Loaded {
  readonly encoder: ModelEncoder;
  readonly weights: LoadedWeights;
  readonly tokenizer: Splitter | FramebatchError;
}

/** Makes what callers hold of a model; loading is given up by the signal until then. */
type Finish<Made> = (loaded: Loaded, signal: AbortSignal) => Promise<Made>;

/** Loads a model for a task; `finish` makes of it what callers hold. */
async function load<Made>(
  calls: Calls,
  source: ModelSource,
  task: Task,
  options: EmbedderOptions,
  finish: Finish<Made>,
): Promise<Made> {
  const { signal, cache = true } = options;
  signal?.throwIfAborted();
  const given = new AbortController();
  const abort = (): void => given.abort(signal!.reason);
  const folder = folderOf(source, given.signal, cache);
  signal?.addEventListener("abort", abort);
  try {
    const how = { task, options, signal: given.signal };
    const made = await bring(calls, folder, how, finish);
    folder.keep();
    return made;
  } catch (error) {
    // Requests that are under way end.
    given.abort(error);
    await folder.abandon();
    signal?.throwIfAborted();
    throw placed(error, folder);
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

/** The error of a file that is missing, which says where it was looked for. */
function placed(error: unknown, { place }: Folder): unknown {
  if (!(error instanceof FramebatchError) || place === undefined) return error;
  const { code, message } = error;
  if (!/ is missing; give the folder /.test(message)) return error;
  const where = `${message}; looked for it in ${place}`;
  return new FramebatchError(code, where, { cause: error });
}

/** How a model is loaded. */
interface Loading {
  readonly task: Task;
  readonly options: EmbedderOptions;
  readonly signal: AbortSignal;
}

async function bring<Made>(
  calls: Calls,
  folder: Folder,
  how: Loading,
  finish: Finish<Made>,
): Promise<Made> {
  const { task, options, signal } = how;
  const { backpressure, ended } = calls;
  if (ended !== undefined) throw endedError(ABOUT, ended);
  const isOpen =
    calls.core === undefined && orAbort(backpressure.wait(undefined), signal);
  // All files are opened at once, because most of the time goes to waiting for first bytes.
  const opening = folder.open(FILE);
  const [file, , words, instance] = await Promise.all([
    opening,
    prefetch(folder, task),
    readVocabulary(folder),
    loadInstance(options.wasm),
    isOpen,
  ]).catch((error: unknown) => {
    // The file may be open already, or be so later.
    const close = (file: OpenFile | undefined): void => file?.cancel();
    opening.then(close, () => {});
    throw error;
  });
  try {
    const encoder = await describe(instance, folder, task);
    try {
      if (file === undefined) throw missing(FILE);
      const splitting = finishWords(words, encoder.config);
      const tokenizer = tokenizerOf(encoder, splitting);
      // A reranker takes texts alone.
      if (task.isReranker && tokenizer instanceof FramebatchError) {
        throw tokenizer;
      }
      try {
        const parts = { file, encoder, tokenizer };
        const weights = await upload(calls, folder, parts, how);
        try {
          await folder.confirm();
          return await finish({ encoder, weights, tokenizer }, signal);
        } catch (error) {
          dropAll(calls, weights.nodes);
          throw error;
        }
      } catch (error) {
        if (!(tokenizer instanceof FramebatchError)) tokenizer.free();
        throw error;
      }
    } catch (error) {
      encoder.free();
      throw error;
    }
  } catch (error) {
    // Nothing, once what was read is a tokenizer.
    freeWords(words);
    throw error;
  } finally {
    file?.cancel();
  }
}

/** Compiles the kernels, which texts of all lengths share, ahead of the first text. */
async function warm(
  calls: Calls,
  operands: TokenOperands,
  signal: AbortSignal,
): Promise<void> {
  const ready = calls.warmup(() => calls.take(operands, undefined));
  await orAbort(ready, signal);
  signal.throwIfAborted();
}

/**
 * The last steps of loading. Where one fails, the model is given up; its tokenizer is still that of
 * `bring`, and to be freed once.
 */
async function orDrop(model: Model, steps: () => Promise<void>): Promise<void> {
  try {
    await steps();
  } catch (error) {
    model.drop();
    throw error;
  }
}

/** Holds a converted model to the vectors that it had before. */
async function compare(
  calls: Calls,
  { encoder, weights }: Loaded,
  model: Model,
  { signal }: EmbedderOptions,
): Promise<void> {
  const { references, blocks } = weights;
  if (references.length === 0) return;
  const cosines = references.map(async ({ ids, vector }) => {
    const operands = new TokenOperands(EMBED, model, ids);
    const options = { priority: "high", signal } as const;
    return cosine(await calls.take<Float32Array>(operands, options), vector);
  });
  model.fidelity = Math.min(1, ...(await Promise.all(cosines)));
  encoder.checkFidelity(blocks!, model.fidelity);
}

/** What a promise comes to, unless the signal aborts before. */
function orAbort<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), {
      once: true,
    });
    promise.then(resolve, reject);
  });
}

/** What an upload is of. */
interface Parts extends Omit<Loaded, "weights"> {
  /** The first file. */
  readonly file: OpenFile;
}

/** Takes the tensors of a model's files to the device, in their order there. */
async function upload(
  calls: Calls,
  folder: Folder,
  parts: Parts,
  how: Loading,
): Promise<LoadedWeights> {
  const { file: first, encoder } = parts;
  const { options, signal } = how;
  const list = new WeightList(encoder);
  const keeping = keepingOf(calls, options);
  const nodes = new Array<Node>(list.weights.length);
  const test = testOf(calls, parts, how);
  const place = (at: number, node: Node, dtype: string): void => {
    nodes[at] = node;
    if (list.blocks === undefined) test?.arrived(at, node, dtype);
    calls.residents.makeResident(node);
  };
  const take = async (name: string, file: OpenFile): Promise<void> => {
    const bytes = new ByteReader(name, file, signal);
    const length = headerLength(name, await bytes.take(8), file.size);
    const header = bytesFor(length);
    await bytes.fill(header);
    const tensors = tensorsOf(name, header, file.size);
    const sources = list.sources(name, tensors, keeping.dtype);
    const total = 8 + header.length + (tensors.at(-1)?.end ?? 0);
    if (file === first) {
      bytes.report = (loaded) => options.onProgress?.({ loaded, total });
    }
    for (const tensor of tensors) {
      const weight = sources.get(tensor);
      if (weight === undefined) {
        await bytes.skip(tensor.end - tensor.begin);
        continue;
      }
      const target = weight.target(tensor, keeping);
      await bytes.fill(target);
      const node = weight.filled(tensor, target);
      if (node === undefined) continue;
      if (calls.ended !== undefined) throw endedError(ABOUT, calls.ended);
      place(list.weights.indexOf(weight), node, tensor.dtype);
      await test?.advance();
    }
    await bytes.end();
  };
  try {
    for (const at of list.computed) {
      const floats = encoder.computed(at);
      place(at, list.weights[at].computed(floats, keeping), "F32");
    }
    // The files of modules are small: theirs are opened when the encoder's is there.
    for (const name of list.names) {
      if (name === FILE) await take(name, first);
      else await takeModule(folder, name, take);
    }
    const matrices = nodes.filter((_, at) => list.weights[at].isMatrix);
    const references = await referencesOf(folder, encoder, list, how);
    const { blocks } = list;
    const fidelity = blocks === undefined ? test?.finish() : undefined;
    return { nodes, matrices, fidelity, references, blocks };
  } catch (error) {
    dropAll(calls, nodes);
    throw error;
  } finally {
    test?.free();
  }
}

/** The vectors that a converted folder has of its model; none where they are not to be compared. */
async function referencesOf(
  folder: Folder,
  { config }: ModelEncoder,
  { blocks }: WeightList,
  { task, options }: Loading,
): Promise<Reference[]> {
  // Vectors that were cut have other directions, and a reranker has none.
  const isWhole = !task.isReranker && task.dimensions === 0;
  if (blocks === undefined || !isWhole || options.verify === false) return [];
  return readReferences(folder, config);
}

/** The test of storage in fewer bits; undefined where it is not asked for, or there is none. */
function testOf(
  calls: Calls,
  { encoder, tokenizer }: Parts,
  { task, options, signal }: Loading,
): SelfTest | undefined {
  if (options.verify === false) return undefined;
  const texts = testTexts(encoder, tokenizer);
  const hasRoom = (): Promise<void> => {
    if (calls.ended !== undefined) throw endedError(ABOUT, calls.ended);
    return orAbort(calls.backpressure.wait(calls.core), signal);
  };
  const { isReranker } = task;
  return new SelfTest(calls, encoder, texts, signal, hasRoom, isReranker);
}

/** The tokens of the texts that a model is tested by. */
function testTexts(
  encoder: ModelEncoder,
  tokenizer: Splitter | FramebatchError,
): Uint32Array[] {
  const most = encoder.testTokens();
  const texts: Uint32Array[] = [];
  for (;;) {
    const text = encoder.testText(texts.length);
    if (text === undefined) return texts;
    const ids =
      tokenizer instanceof FramebatchError
        ? undefined
        : tokenizer.encode(ABOUT, text, most);
    // Of some tokenizers a text has no token, or more than the encoder takes.
    const isUsable = ids !== undefined && ids.length > 0 && ids.length <= most;
    texts.push(isUsable ? ids : encoder.testIds(texts.length));
  }
}

async function takeModule(
  folder: Folder,
  name: string,
  take: (name: string, file: OpenFile) => Promise<void>,
): Promise<void> {
  const file = await folder.open(name);
  if (file === undefined) throw missing(name);
  try {
    await take(name, file);
  } finally {
    file.cancel();
  }
}

function keepingOf(
  { core, ended }: Calls,
  { dtype = "auto", keep = true }: EmbedderOptions,
): Keeping {
  if (core === undefined) throw endedError(ABOUT, ended!);
  const { engine, software } = core.info();
  return { dtype, keep, isHardware: engine === "gpu" && !software };
}

function dropAll({ residents }: Calls, nodes: readonly Node[]): void {
  nodes.forEach(({ storage }) => residents.drop(storage!));
}
