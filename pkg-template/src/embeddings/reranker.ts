// A reranker, as callers hold it: a query and documents go in, scores come out.
//
// Arguments are checked here, pairs split, and calls given to the session. How a model is
// loaded is told in `model-loader.ts`, what of it lies on the device in `model.ts`.

/// <reference lib="esnext.disposable" preserve="true" />

import { mark } from "../checks/brand.js";
import { invalid, kindOf, subject } from "../checks/errors.js";
import { checkNames, checkObject, checkSignal } from "../checks/options.js";
import { checkPriority, type Priority } from "../checks/priority.js";
import type { Calls } from "../session/calls.js";
import type { Config } from "./config.js";
import type { FileTokenizer } from "./file-tokenizer.js";
import { shown } from "./json-fields.js";
import type { Model } from "./model.js";
import { checkText } from "./texts.js";
import { refusePadding } from "./token-ids.js";
import { RANK, SCORE, TokenOperands } from "./token-operands.js";
import type { Tokenizer } from "./wasm-instance.js";

type Splitter = Tokenizer | FileTokenizer;

/** What `score` takes last. All of it is optional. */
export interface ScoreOptions {
  /** Gives the pairs up: it rejects with `signal.reason`. Default: none. */
  signal?: AbortSignal;
  /** As of every call. Default: that of the stream whose function makes the call, else `normal`. */
  priority?: Priority;
  /** Appears in the message of every error of this call. Default: none. */
  label?: string;
}

/** What `rank` takes last. All of it is optional. */
export interface RankOptions extends ScoreOptions {
  /** The best so many documents. Default: all. */
  topN?: number;
}

/** A document's place in a ranking. */
export interface Ranked {
  /** Its place among the documents that were given. */
  readonly index: number;
  readonly score: number;
}

/** What a reranker is, and where it runs. */
export interface RerankerInfo extends Pick<
  Config,
  "layers" | "heads" | "vocabulary" | "maxTokens"
> {
  /**
   * How matrices are kept; `mixed` where `auto` found some too large for f16, and of a folder
   * that was converted to int4 with some as int8.
   */
  readonly dtype: "f32" | "f16" | "bf16" | "int8" | "int4" | "mixed";
  /**
   * How near the last layer's vectors come to those of the file's own bits: the least cosine that a
   * few texts have, and 1 where no bits are lost; undefined where it was not tested.
   */
  readonly fidelity: number | undefined;
  /** What computes: the session's device. */
  readonly engine: "gpu" | "cpu";
}

const NAMES = { signal: true, priority: true, label: true } as const;

/**
 * A cross-encoder, which reads a query and a document together and gives one score for both. The
 * pairs of a frame, whoever asks, share one forward pass without padding.
 *
 * @example
 * const reranker = await gpu.reranker("/models/ms-marco-MiniLM-L6-v2/");
 * const [best] = await reranker.rank("where do cats sleep?", passages, { topN: 1 });
 * console.log(passages[best.index], best.score);
 */
export class Reranker {
  readonly #calls: Calls;
  readonly #model: Model;
  readonly #tokenizer: Splitter;

  /** Rerankers come from `gpu.reranker`. */
  constructor(calls: Calls, model: Model, tokenizer: Splitter) {
    this.#calls = calls;
    this.#model = model;
    this.#tokenizer = tokenizer;
  }

  /** What it is, and where it runs. */
  get info(): RerankerInfo {
    const { config, dtype, fidelity } = this.#model;
    const { layers, heads, vocabulary, maxTokens } = config;
    const engine = this.#calls.core?.info().engine === "gpu" ? "gpu" : "cpu";
    const sizes = { layers, heads, vocabulary, maxTokens };
    return { ...sizes, dtype, fidelity, engine };
  }

  /**
   * Ranks documents for a query: resolves to places and scores, the best first; of equal scores the
   * earlier document. Rejects with `invalid-input` for what is no string and for half a surrogate
   * pair, and as any call does. No pair is too long: the longer text of one is cut.
   *
   * @example
   * const ranking = await reranker.rank("where do cats sleep?", passages, { topN: 3 });
   */
  async rank(
    query: string,
    documents: readonly string[],
    options: RankOptions = {},
  ): Promise<Ranked[]> {
    const about = this.#begin("rank", options, { topN: true });
    const { topN = Infinity, ...terms } = options;
    if (!(topN >= 1 && (topN === Infinity || Number.isInteger(topN)))) {
      throw invalid(
        about,
        `topN must be a whole number from 1, got ${shown(topN)}`,
      );
    }
    if (!Array.isArray(documents)) {
      throw invalid(
        about,
        `documents must be an array of strings, got ${kindOf(documents)}`,
      );
    }
    const pairs = documents.map((document) => [query, document]);
    const scores = await this.#scores(about, RANK, pairs, terms);
    const ranking = Array.from(scores, (score, index) => ({ index, score }));
    // Sorting is stable: equal scores stay in the order of their documents.
    ranking.sort((a, b) => b.score - a.score);
    return ranking.slice(0, topN);
  }

  /**
   * Scores pairs of texts: resolves to a float for each, in their order. Rejects as {@link rank}
   * does.
   *
   * @example
   * const [score] = await reranker.score([["where do cats sleep?", "on the mat"]]);
   */
  async score(
    pairs: readonly (readonly [string, string])[],
    options: ScoreOptions = {},
  ): Promise<Float32Array<ArrayBuffer>> {
    const about = this.#begin("score", options, {});
    if (!Array.isArray(pairs)) {
      throw invalid(
        about,
        `pairs must be an array of pairs of strings, got ${kindOf(pairs)}`,
      );
    }
    return this.#scores(about, SCORE, pairs, options);
  }

  /**
   * Gives the model's memory back as soon as no pending call needs it. Ranking after that rejects
   * with `disposed`. Disposing twice is fine.
   *
   * @example
   * {
   *   using reranker = await gpu.reranker("/models/ms-marco-MiniLM-L6-v2/");
   *   await reranker.rank("once", ["or never"]);
   * } // disposed here
   */
  dispose(): void {
    if (this.#model.drop()) this.#tokenizer.free();
  }

  /** Lets `using` dispose of the reranker. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  static {
    mark(this.prototype, "a reranker");
  }

  #begin(
    name: string,
    options: ScoreOptions,
    own: Readonly<Record<string, true>>,
  ): string {
    checkObject(name, options);
    const { label, signal, priority } = options;
    const about = subject(name, typeof label === "string" ? label : undefined);
    this.#model.refuseIfOver(about);
    checkNames(about, options, { ...own, ...NAMES });
    checkSignal(about, signal);
    if (priority !== undefined) checkPriority(about, priority);
    return about;
  }

  async #scores(
    about: string,
    method: typeof SCORE,
    pairs: readonly unknown[],
    terms: ScoreOptions,
  ): Promise<Float32Array<ArrayBuffer>> {
    terms.signal?.throwIfAborted();
    const split = pairs.map((pair) => this.#split(about, pair));
    const calls = split.map(({ ids, types }) => {
      const operands = new TokenOperands(method, this.#model, ids, types);
      return this.#calls.take<Float32Array>(operands, terms);
    });
    const scores = await Promise.all(calls);
    return Float32Array.from(scores, ([score]) => score);
  }

  #split(
    about: string,
    pair: unknown,
  ): { ids: Uint32Array; types: Uint32Array } {
    if (!Array.isArray(pair) || pair.length !== 2) {
      throw invalid(about, `a pair is two strings, got ${kindOf(pair)}`);
    }
    const [a, b] = pair as unknown[];
    checkText(about, a);
    checkText(about, b);
    const { config } = this.#model;
    const words = this.#tokenizer.encodePair(about, a, b, config.maxTokens);
    const count = words.length / 2;
    const ids = words.subarray(0, count);
    refusePadding(about, ids, config);
    const hasTypes = config.types > 1;
    return { ids, types: words.subarray(count, hasTypes ? 2 * count : count) };
  }
}
