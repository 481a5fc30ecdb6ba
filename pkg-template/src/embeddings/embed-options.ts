// The options of embedding a text, and the facts of an embedder, as types alone.

import type { CallOptions, ComputeOptions } from "../calls/call-options.js";
import type { Pooling } from "./modules.js";

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
  /** How matrices are kept; `mixed` where `auto` found some too large for f16. */
  readonly dtype: "f32" | "f16" | "bf16" | "int8" | "mixed";
  /** What computes: the session's device, unless a call asks for another. */
  readonly engine: "gpu" | "cpu";
  /** The names of the model's prompts. */
  readonly prompts: readonly string[];
}
