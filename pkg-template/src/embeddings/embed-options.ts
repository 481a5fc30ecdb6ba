// The options of embedding a text, and the facts of an embedder, as types alone.

import type { CallOptions, ComputeOptions } from "../calls/call-options.js";
import type { Pooling } from "./config.js";

/** What `embedIds` takes last: as every call. */
export type EmbedIdsOptions<Into extends Float32Array = Float32Array> =
  CallOptions<Into>;

/** What `embed` takes last. All of it is optional. */
export interface EmbedOptions<Into extends Float32Array = Float32Array>
  extends EmbedIdsOptions<Into>, TextOptions {}

/** What `compute` takes last: as `compute` of tensors, and its own. All of it is optional. */
export interface EmbedComputeOptions extends ComputeOptions, TextOptions {}

/** How a text becomes tokens. */
export interface TextOptions {
  /** The name of a prompt of the model, which stands before the text. Default: the model's. */
  prompt?: string;
  /** Whether a text beyond the model's limit is cut; otherwise it rejects. Default: true. */
  truncate?: boolean;
}

/** The tokens of a text, and where they are from. */
export interface TextTokens {
  /** The tokens' ids, those at the ends included. */
  ids: Uint32Array;
  /**
   * From and to of each token in the text, in units of UTF-16; 0 and 0 of those at the ends.
   * Tokens may share characters, and characters may belong to no token.
   */
  offsets: Uint32Array;
}

/** What an embedder is, and where it runs. */
export interface EmbedderInfo {
  /** Floats of an embedding. */
  readonly dimensions: number;
  readonly layers: number;
  readonly heads: number;
  /** Tokens that ids are below. */
  readonly vocabulary: number;
  /** Tokens of a text at most, with those at its ends. */
  readonly maxTokens: number;
  readonly pooling: Pooling;
  /** Whether embeddings have length 1. */
  readonly normalized: boolean;
  /**
   * How matrices are kept; `mixed` where `auto` found some too large for f16, and of a folder
   * that was converted to int4 with some as int8.
   */
  readonly dtype: "f32" | "f16" | "bf16" | "int8" | "int4" | "mixed";
  /**
   * How near vectors come to those of the file's own bits: the least cosine that a few texts have
   * in both storages, and 1 where no bits are lost; undefined where it was not tested.
   */
  readonly fidelity: number | undefined;
  /** What products of matrices are computed in. */
  readonly arithmetic: "f32" | "f16";
  /** What computes: the session's device, unless a call asks for another. */
  readonly engine: "gpu" | "cpu";
  /** The names of the model's prompts. */
  readonly prompts: readonly string[];
}
