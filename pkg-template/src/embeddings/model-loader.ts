// Loads a model from its folder to the device, each tensor as its bytes arrive.
//
// The content of files is checked by the files that read these; here, whatever is half
// loaded is released when something is wrong or the caller gives up.

import { endedError } from "../calls/call-errors.js";
import { FramebatchError, invalid, kindOf } from "../checks/errors.js";
import { checkFunction, checkOptions, checkSignal } from "../checks/options.js";
import type { WasmSource } from "../core/core.js";
import type { Calls } from "../session/calls.js";
import { PACKED } from "../tensor/codes.js";
import type { StorageType } from "../tensor/input.js";
import type { Node } from "../tensor/node.js";
import { ByteReader } from "./byte-reader.js";
import { type Config, readConfig } from "./config.js";
import { Embedder } from "./embedder.js";
import { folderOf } from "./folder.js";
import { Model } from "./model.js";
import { FILE, headerLength, tensorsOf } from "./safetensors.js";
import {
  ABOUT,
  type Folder,
  missing,
  type ModelSource,
  type OpenFile,
} from "./source.js";
import { readVocabulary, type Words } from "./vocabulary.js";
import { ModelEncoder, loadInstance, Tokenizer } from "./wasm-instance.js";
import { bytesFor, type Keeping, weightsOf } from "./weights.js";

/** How much of a model is there. */
export interface EmbedderProgress {
  /** Bytes of `model.safetensors` that have arrived. */
  loaded: number;
  /** Bytes that it has. */
  total: number;
}

/** What `gpu.embedder` takes last. All of it is optional. */
export interface EmbedderOptions {
  /**
   * How the device keeps the model's matrices, see `StorageType`; everything is computed
   * in 32-bit floats. `auto` is f16 on a GPU in hardware, bf16 where the file has that,
   * and f32 otherwise; `embedder.info.dtype` says. Default: `auto`.
   */
  dtype?: StorageType;
  /** Hears of the bytes that arrive. Default: none. */
  onProgress?: (progress: EmbedderProgress) => void;
  /** Gives loading up: it rejects with `signal.reason`. Default: none. */
  signal?: AbortSignal;
  /**
   * Whether files from the web are kept in the browser's cache, `framebatch-models`, as
   * far as it has room. A kept folder is revalidated by each load, and serves as it is
   * where the server is out of reach. Default: true.
   */
  cache?: boolean;
  /**
   * Whether the page keeps the weights, to restore them when the device is lost; without
   * it an embedder is gone then. Default: true.
   */
  keep?: boolean;
  /** The WebAssembly file of embeddings, as `open` takes the core's. Default: beside the scripts. */
  wasm?: WasmSource;
}

const NAMES: Record<keyof EmbedderOptions, true> = {
  dtype: true,
  onProgress: true,
  signal: true,
  cache: true,
  keep: true,
  wasm: true,
};

/** Loads a model. */
export async function loadEmbedder(
  calls: Calls,
  source: ModelSource,
  options: EmbedderOptions = {},
): Promise<Embedder> {
  check(options);
  const { signal, cache = true } = options;
  signal?.throwIfAborted();
  const given = new AbortController();
  const abort = (): void => given.abort(signal!.reason);
  signal?.addEventListener("abort", abort);
  const folder = folderOf(source, given.signal, cache);
  try {
    const embedder = await bring(calls, folder, options, given.signal);
    folder.keep();
    return embedder;
  } catch (error) {
    // Requests that are under way end.
    given.abort(error);
    await folder.abandon(error);
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

async function bring(
  calls: Calls,
  folder: Folder,
  options: EmbedderOptions,
  signal: AbortSignal,
): Promise<Embedder> {
  const { backpressure, ended } = calls;
  if (ended !== undefined) throw endedError(ABOUT, ended);
  const isOpen =
    calls.core === undefined && orAbort(backpressure.wait(undefined), signal);
  // All files are opened at once, because most of the time goes to waiting for first bytes.
  const [file, config, words, instance] = await Promise.all([
    folder.open(FILE),
    readConfig(folder),
    readVocabulary(folder),
    loadInstance(options.wasm),
    isOpen,
  ]);
  if (file === undefined) {
    throw missing(FILE);
  }
  checkWords(words, config);
  const encoder = new ModelEncoder(instance, config);
  try {
    const lines = encoder.weights();
    const nodes = await upload(calls, file, lines, options, signal);
    try {
      await folder.confirm();
      const tokenizer =
        words instanceof FramebatchError
          ? words
          : new Tokenizer(instance, words, config.lowered);
      const model = new Model(calls, config, encoder, nodes);
      const embedder = new Embedder(calls, model, tokenizer);
      await warm(calls, embedder, config);
      return embedder;
    } catch (error) {
      dropAll(calls, nodes);
      throw error;
    }
  } catch (error) {
    encoder.free();
    throw error;
  } finally {
    file.cancel();
  }
}

/** Compiles the kernels, which texts of all lengths share, ahead of the first text. */
async function warm(
  calls: Calls,
  embedder: Embedder,
  { firstPosition }: Config,
): Promise<void> {
  const id = firstPosition === 1 ? 1 : 0; // Any id but that of the padding.
  try {
    await calls.warmup(() => embedder.embedIds([id]));
  } catch (error) {
    embedder.dispose();
    throw error;
  }
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

function checkWords(words: Words, { vocabulary }: Config): void {
  if (words instanceof FramebatchError) return;
  const tokens = words.added.reduce(
    (tokens, { id }) => Math.max(tokens, id + 1),
    words.tokens,
  );
  if (tokens <= vocabulary) return;
  throw invalid(
    ABOUT,
    `the vocabulary has ${tokens} tokens, but vocab_size of config.json is ${vocabulary}`,
  );
}

/** Takes the tensors of a file to the device, in their order there. */
async function upload(
  calls: Calls,
  file: OpenFile,
  lines: string,
  options: EmbedderOptions,
  signal: AbortSignal,
): Promise<Node[]> {
  const bytes = new ByteReader(file, signal);
  const header = bytesFor(headerLength(await bytes.take(8), file.size));
  await bytes.fill(header);
  const tensors = tensorsOf(header, file.size);
  const { weights, sources } = weightsOf(lines, tensors);
  const keeping = keepingOf(calls, options);
  const total = 8 + header.length + (tensors.at(-1)?.end ?? 0);
  bytes.report = (loaded) => options.onProgress?.({ loaded, total });
  const nodes = new Array<Node>(weights.length);
  try {
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
      nodes[weights.indexOf(weight)] = node;
      calls.residents.makeResident(node);
    }
    await bytes.end();
    return nodes;
  } catch (error) {
    dropAll(calls, nodes);
    throw error;
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

function check(options: EmbedderOptions): void {
  checkOptions(ABOUT, options, NAMES);
  const { dtype, signal, onProgress, cache, keep } = options;
  const dtypes = ["f32", "auto", ...Object.keys(PACKED)];
  if (dtype !== undefined && !dtypes.includes(dtype)) {
    throw invalid(
      ABOUT,
      `dtype must be 'f32', 'f16', 'bf16', 'int8' or 'auto', got '${String(dtype)}'`,
    );
  }
  checkSignal(ABOUT, signal);
  checkFunction(ABOUT, "onProgress", onProgress);
  for (const [name, value] of Object.entries({ cache, keep })) {
    if (value === undefined || typeof value === "boolean") continue;
    throw invalid(ABOUT, `${name} must be true or false, got ${kindOf(value)}`);
  }
}
