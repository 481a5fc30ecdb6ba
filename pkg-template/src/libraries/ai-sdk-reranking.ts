// The reranking model of the entry for the AI SDK, for its `rerank`.

import type { Priority } from "../checks/priority.js";
import { type AiSdkWarning, otherOptions } from "./ai-sdk-warnings.js";
import {
  loadedReranker,
  RERANKER_NAMES,
  type RerankerAdapterOptions,
} from "./rerankers.js";
import { checkNames } from "./texts.js";

/** What {@link rerankingModel} takes. */
export interface RerankingModelOptions extends RerankerAdapterOptions {
  /** What the SDK calls the model, in telemetry and warnings. Default: `reranker`. */
  modelId?: string;
}

/** What one call may give under `providerOptions.framebatch`, instead of the model's options. */
export interface RerankingCallOptions {
  priority?: Priority;
}

/** What the SDK asks of a model that reranks. */
export interface RerankingCall {
  documents:
    { type: "text"; values: string[] } | { type: "object"; values: object[] };
  query: string;
  topN?: number;
  abortSignal?: AbortSignal;
  providerOptions?: Record<string, object>;
  /** Not looked at: nothing is requested from a server. */
  headers?: Record<string, string | undefined>;
}

/** What a model that reranks answers. */
export interface RerankingResult {
  /** The best document first. */
  ranking: { index: number; relevanceScore: number }[];
  warnings: AiSdkWarning[];
}

/** A reranking model as `RerankingModelV4` and `RerankingModelV3` of the SDK declare it. */
export interface RerankingModel<Version extends "v3" | "v4"> {
  readonly specificationVersion: Version;
  readonly provider: string;
  readonly modelId: string;
  doRerank(call: RerankingCall): Promise<RerankingResult>;
}

const ABOUT = "rerankingModel";
const NAMES: Record<keyof RerankingModelOptions, true> = {
  modelId: true,
  ...RERANKER_NAMES,
};
const CALL_NAMES: Record<keyof RerankingCallOptions, true> = {
  priority: true,
};

/**
 * A model for `rerank` of the AI SDK from version 7 on. The pairs of a frame are one
 * submission. `abortSignal` gives a call up, and errors are those of `reranker.rank`, with
 * their codes. Documents that are objects are read as JSON, with a warning.
 *
 * @example
 * const model = rerankingModel({ reranker: gpu.reranker("/models/ms-marco-MiniLM-L6-v2/") });
 * const { rerankedDocuments } = await rerank({ model, query, documents, topN: 3 });
 */
export function rerankingModel(
  options: RerankingModelOptions,
): RerankingModel<"v4"> {
  return model("v4", options);
}

/** The same for version 6 of the AI SDK, which knows `RerankingModelV3`. */
export function rerankingModelV3(
  options: RerankingModelOptions,
): RerankingModel<"v3"> {
  return model("v3", options);
}

function model<Version extends "v3" | "v4">(
  specificationVersion: Version,
  options: RerankingModelOptions,
): RerankingModel<Version> {
  checkNames(ABOUT, options, NAMES);
  return {
    specificationVersion,
    provider: "framebatch",
    modelId: options.modelId ?? "reranker",
    doRerank: (call) => doRerank(options, call),
  };
}

async function doRerank(
  options: RerankingModelOptions,
  { documents, query, topN, abortSignal, providerOptions }: RerankingCall,
): Promise<RerankingResult> {
  const reranker = await loadedReranker(ABOUT, options.reranker);
  const { framebatch = {} } = providerOptions ?? {};
  const warnings = otherOptions(framebatch, CALL_NAMES);
  if (documents.type === "object") {
    const details = "objects are read as JSON";
    const feature = "object documents";
    warnings.push({ type: "compatibility", feature, details });
  }
  const texts =
    documents.type === "text"
      ? documents.values
      : documents.values.map((value) => JSON.stringify(value));
  const { priority } = { ...options, ...framebatch };
  const terms = { topN, priority, signal: abortSignal };
  const ranked = await reranker.rank(query, texts, terms);
  const ranking = ranked.map(({ index, score }) => ({
    index,
    relevanceScore: score,
  }));
  return { ranking, warnings };
}
