// The entry for the AI SDK of Vercel: an embedding model for `embed` and `embedMany`, and a
// reranking model for `rerank`.
//
// Models are plain objects by two versions of the SDK's interfaces. The SDK is not
// imported, not even its types: tests hold the shapes here to those of `@ai-sdk/provider`.

import type { Priority } from "../checks/priority.js";
import {
  type AiSdkWarning,
  otherOptions,
  unsupported,
} from "./ai-sdk-warnings.js";
import {
  ADAPTER_NAMES,
  type AdapterOptions,
  checkNames,
  embedAll,
  loaded,
  type TextTerms,
} from "./texts.js";

export {
  type RerankingCall,
  type RerankingCallOptions,
  type RerankingModel,
  rerankingModel,
  type RerankingModelOptions,
  rerankingModelV3,
  type RerankingResult,
} from "./ai-sdk-reranking.js";
export type { AiSdkWarning } from "./ai-sdk-warnings.js";
export type { RerankerAdapterOptions, TextReranker } from "./rerankers.js";
export type { AdapterOptions, TextEmbedder } from "./texts.js";

/** What {@link embeddingModel} takes. */
export interface EmbeddingModelOptions extends AdapterOptions {
  /** The name of a prompt of the model, which stands before each text. Default: the model's. */
  prompt?: string;
  /** What the SDK calls the model, in telemetry and warnings. Default: `embedder`. */
  modelId?: string;
}

/** What one call may give under `providerOptions.framebatch`, instead of the model's options. */
export interface EmbeddingCallOptions {
  /** The name of a prompt of the model. */
  prompt?: string;
  truncate?: boolean;
  priority?: Priority;
}

/** What the SDK asks of a model. */
export interface EmbeddingCall {
  values: string[];
  /** Floats of a vector; only of version 4. */
  dimensions?: number;
  abortSignal?: AbortSignal;
  providerOptions?: Record<string, object>;
  /** Not looked at: nothing is requested from a server. */
  headers?: Record<string, string | undefined>;
}

/** What a model answers. */
export interface EmbeddingResult {
  embeddings: number[][];
  usage: { tokens: number };
  warnings: AiSdkWarning[];
}

/** An embedding model as `EmbeddingModelV4` and `EmbeddingModelV3` of the SDK declare it. */
export interface EmbeddingModel<Version extends "v3" | "v4"> {
  readonly specificationVersion: Version;
  readonly provider: string;
  readonly modelId: string;
  readonly maxEmbeddingsPerCall: number;
  readonly supportsParallelCalls: boolean;
  doEmbed(call: EmbeddingCall): Promise<EmbeddingResult>;
}

const ABOUT = "embeddingModel";
const NAMES: Record<keyof EmbeddingModelOptions, true> = {
  prompt: true,
  modelId: true,
  ...ADAPTER_NAMES,
};
const CALL_NAMES: Record<keyof EmbeddingCallOptions, true> = {
  prompt: true,
  truncate: true,
  priority: true,
};

/**
 * A model for `embed` and `embedMany` of the AI SDK from version 7 on. Calls of a frame are
 * one submission. `abortSignal` gives a call up, `usage.tokens` counts the tokens that were
 * computed, and errors are those of `embedder.embed`, with their codes.
 *
 * @example
 * const model = embeddingModel({ embedder: gpu.embedder("/models/all-MiniLM-L6-v2/") });
 * const { embedding } = await embed({ model, value: "a cat" });
 */
export function embeddingModel(
  options: EmbeddingModelOptions,
): EmbeddingModel<"v4"> {
  return model("v4", options);
}

/** The same for version 6 of the AI SDK, which knows `EmbeddingModelV3`. */
export function embeddingModelV3(
  options: EmbeddingModelOptions,
): EmbeddingModel<"v3"> {
  return model("v3", options);
}

function model<Version extends "v3" | "v4">(
  specificationVersion: Version,
  options: EmbeddingModelOptions,
): EmbeddingModel<Version> {
  checkNames(ABOUT, options, NAMES);
  return {
    specificationVersion,
    provider: "framebatch",
    modelId: options.modelId ?? "embedder",
    maxEmbeddingsPerCall: Infinity,
    supportsParallelCalls: true,
    doEmbed: (call) => doEmbed(options, call),
  };
}

async function doEmbed(
  options: EmbeddingModelOptions,
  { values, dimensions, abortSignal, providerOptions }: EmbeddingCall,
): Promise<EmbeddingResult> {
  const embedder = await loaded(ABOUT, options.embedder);
  const { framebatch = {} } = providerOptions ?? {};
  const warnings = otherOptions(framebatch, CALL_NAMES);
  const own = embedder.info.dimensions;
  if (dimensions !== undefined && dimensions !== own) {
    warnings.push(unsupported("dimensions", `vectors have ${own} floats`));
  }
  const { prompt, truncate, priority } = { ...options, ...framebatch };
  const terms: TextTerms = { prompt, truncate, priority, signal: abortSignal };
  let tokens = 0;
  const vectors = await embedAll(
    embedder,
    values,
    terms,
    (count) => (tokens = count),
  );
  const embeddings = vectors.map((vector) => Array.from(vector));
  return { embeddings, usage: { tokens }, warnings };
}
