// What `gpu.embedder` and `gpu.reranker` take last, and what of it is refused.

import { invalid, kindOf } from "../checks/errors.js";
import { checkFunction, checkOptions, checkSignal } from "../checks/options.js";
import type { WasmSource } from "../core/core.js";
import { PACKED } from "../tensor/codes.js";
import type { StorageType } from "../tensor/input.js";
import { shown } from "./json-fields.js";
import { ABOUT } from "./source.js";

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
   * How the device keeps the model's matrices, see `StorageType`; it says nothing of what is
   * computed. `auto` is f16 on a GPU in hardware, bf16 where the file has that,
   * and f32 otherwise; `embedder.info.dtype` says. Default: `auto`.
   */
  dtype?: StorageType;
  /**
   * The floats that products of matrices are computed in; all else is in 32 bits. `f16` is for GPUs
   * with the feature `shader-f16`: factors are rounded to 11 bits, 32 products in a row are summed in
   * 16 bits, and these sums in 32. Loading rejects with `unsupported` where the device lacks it,
   * for Gemma, and where a few texts' vectors have a cosine below 0.9999 with those in 32 bits,
   * which `verify: false` leaves untested. `auto` is `f16` where that does not reject, and `f32`
   * otherwise; `embedder.info.arithmetic` says. Default: `f32`.
   */
  arithmetic?: "f32" | "f16" | "auto";
  /**
   * Floats that embeddings are cut to, for models that were trained for it (Matryoshka): a whole
   * number below what the model gives. A model that normalizes does so behind the cut.
   * Default: all.
   */
  dimensions?: number;
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
  /**
   * Whether matrices in fewer bits than the file has are tested while the model loads: a few texts
   * pass the encoder in both, layer by layer, and loading rejects with `unsupported` where the
   * cosine of their vectors is below 0.99. `embedder.info.fidelity` is the cosine. Default: true.
   */
  verify?: boolean;
  /** The WebAssembly file of embeddings, as `open` takes the core's. Default: beside the scripts. */
  wasm?: WasmSource;
}

const NAMES: Record<keyof EmbedderOptions, true> = {
  dtype: true,
  arithmetic: true,
  dimensions: true,
  onProgress: true,
  signal: true,
  cache: true,
  keep: true,
  verify: true,
  wasm: true,
};

/** What `gpu.reranker` takes last. All of it is optional. */
export type RerankerOptions = Omit<
  EmbedderOptions,
  "dimensions" | "arithmetic"
>;

/** Throws `invalid-input` for an option that an embedder does not take. */
export function checkEmbedderOptions(options: EmbedderOptions): void {
  check(ABOUT, options, NAMES);
}

/** Throws `invalid-input` for an option that a reranker does not take. */
export function checkRerankerOptions(options: RerankerOptions): void {
  const { dimensions: _, arithmetic: __, ...names } = NAMES;
  check("reranker", options, names);
}

function check(
  about: string,
  options: EmbedderOptions,
  names: Readonly<Partial<Record<keyof EmbedderOptions, true>>>,
): void {
  checkOptions(about, options, names);
  const { dtype, dimensions, signal, onProgress } = options;
  const { cache, keep, verify } = options;
  const dtypes = ["f32", "auto", ...Object.keys(PACKED)];
  if (dtype !== undefined && !dtypes.includes(dtype)) {
    throw invalid(
      about,
      `dtype must be 'f32', 'f16', 'bf16', 'int8', 'int4' or 'auto', got '${String(dtype)}'`,
    );
  }
  const { arithmetic = "f32" } = options;
  if (!["f32", "f16", "auto"].includes(arithmetic)) {
    throw invalid(
      about,
      `arithmetic must be 'f32', 'f16' or 'auto', got '${String(arithmetic)}'`,
    );
  }
  const most = 2 ** 32 - 1;
  if (
    dimensions !== undefined &&
    !(Number.isInteger(dimensions) && dimensions > 0 && dimensions <= most)
  ) {
    throw invalid(
      about,
      `dimensions must be a whole number from 1 and below the model's own, got ${shown(dimensions)}`,
    );
  }
  checkSignal(about, signal);
  checkFunction(about, "onProgress", onProgress);
  for (const [name, value] of Object.entries({ cache, keep, verify })) {
    if (value === undefined || typeof value === "boolean") continue;
    throw invalid(about, `${name} must be true or false, got ${kindOf(value)}`);
  }
}
