// An embedder, as callers hold it: texts go in, vectors come out.
//
// Arguments are checked here, texts split, and calls given to the session. How a model is
// loaded is told in `model-loader.ts`, what of it lies on the device in `model.ts`.

/// <reference lib="esnext.disposable" preserve="true" />

import {
  CALL_NAMES,
  type CallOptions,
  checkCallOptions,
  COMPUTE_NAMES,
  type ComputeOptions,
} from "../calls/call-options.js";
import type { CallMethod } from "../calls/operands.js";
import { mark } from "../checks/brand.js";
import { FramebatchError, invalid, kindOf, subject } from "../checks/errors.js";
import { checkNames, checkObject, checkOptions } from "../checks/options.js";
import type { Calls } from "../session/calls.js";
import type { StreamSource } from "../stream/source.js";
import { FLOATS } from "../tensor/codes.js";
import { shapeOf } from "../tensor/shape.js";
import { inputLike } from "../tensor/stored-calls.js";
import { Tensor } from "../tensor/tensor.js";
import { Deduplication } from "./deduplication.js";
import { Embeddings, type EmbedManyOptions } from "./embed-many.js";
import type {
  EmbedComputeOptions,
  EmbedderInfo,
  EmbedIdsOptions,
  EmbedOptions,
  TextOptions,
  TextTokens,
} from "./embed-options.js";
import type { Model } from "./model.js";
import { checkText } from "./texts.js";
import { idsOf, refusePadding } from "./token-ids.js";
import {
  COMPUTE,
  COMPUTE_IDS,
  EMBED,
  EMBED_IDS,
  EMBED_MANY,
  StoredTokenOperands,
  TokenOperands,
} from "./token-operands.js";
import type { FileTokenizer } from "./file-tokenizer.js";
import type { Tokenizer } from "./wasm-instance.js";

const OWN = { prompt: true, truncate: true } as const;

/** What splits texts. */
type Splitter = Tokenizer | FileTokenizer;

/** Options that leave a call equal to others of the same text. */
const SHARED = ["into", "signal", "label", "priority", "prompt", "truncate"];

/**
 * A model that embeds texts. The texts of a frame share one forward pass, whatever their
 * lengths; equal ones are computed once.
 *
 * @example
 * const embedder = await gpu.embedder("/models/all-MiniLM-L6-v2/");
 * const [a, b] = await Promise.all([embedder.embed("a cat"), embedder.embed("a kitten")]);
 * const similarity = a.reduce((sum, x, i) => sum + x * b[i], 0);
 */
export class Embedder {
  readonly #calls: Calls;
  readonly #model: Model;
  /** An error says why the model takes only the ids of another tokenizer. */
  readonly #tokenizer: Splitter | FramebatchError;
  readonly #deduplication = new Deduplication();

  /** Embedders come from `gpu.embedder`. */
  constructor(
    calls: Calls,
    model: Model,
    tokenizer: Splitter | FramebatchError,
  ) {
    this.#calls = calls;
    this.#model = model;
    this.#tokenizer = tokenizer;
  }

  /** What it is, and where it runs. */
  get info(): EmbedderInfo {
    const { config, dtype, fidelity, arithmetic } = this.#model;
    return {
      dimensions: config.dimensions,
      layers: config.layers,
      heads: config.heads,
      vocabulary: config.vocabulary,
      maxTokens: config.maxTokens,
      pooling: config.pooling,
      normalized: config.normalize,
      dtype,
      arithmetic,
      fidelity,
      engine: this.#calls.core?.info().engine === "gpu" ? "gpu" : "cpu",
      prompts: [...config.prompts.keys()],
    };
  }

  /**
   * The vector of a text, in the frame's batch. Resolves to `info.dimensions` floats. An
   * empty text is the tokens at a text's ends. Takes the options of every call, and its
   * own. Rejects with `invalid-input` for what is no string, for half a surrogate pair,
   * and for a text beyond the limit with `truncate: false`; and, where the folder has no
   * tokenizer of a kind that is known, with what is wrong with it, which
   * leaves `embedIds`.
   *
   * @example
   * const query = await embedder.embed("where do cats sleep?", { priority: "high" });
   */
  embed<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    text: string,
    options: EmbedOptions<Into> = {},
  ): Promise<Into> {
    try {
      const about = this.#begin(EMBED, options, OWN);
      const { prompt, truncate, ...terms } = options;
      const ids = this.#split(about, text, { prompt, truncate });
      const isShared = Object.keys(options).every((name) =>
        SHARED.includes(name),
      );
      const key = isShared ? this.#key(about, text, options) : undefined;
      const operands = new TokenOperands(EMBED, this.#model, ids);
      return this.#take(operands, terms, key);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The ids of a text's tokens, as {@link embed} takes them: after the prompt, cut to
   * `info.maxTokens`, those at the ends included. Throws `invalid-input` where `embed` rejects.
   *
   * @example
   * const tokens = embedder.ids("where do cats sleep?", { prompt: "query" }).length;
   */
  ids(text: string, options: TextOptions = {}): Uint32Array {
    checkOptions("ids", options, OWN);
    return this.#split("ids", text, options);
  }

  /**
   * The tokens of a text, however many they are, without a prompt: `ids`, those at the ends
   * included, and `offsets`, two for each id, from and to in `text` as JavaScript counts it. Those
   * at the ends have 0 and 0. Throws `invalid-input` where `embed` rejects.
   *
   * @example
   * const text = "where do cats sleep?";
   * const { ids, offsets } = embedder.tokenize(text);
   * const words = [...ids].map((_, i) => text.slice(offsets[2 * i], offsets[2 * i + 1]));
   */
  tokenize(text: string): TextTokens {
    const about = "tokenize";
    this.#model.refuseIfOver(about);
    checkText(about, text);
    const all = this.#splitter.tokenize(about, text);
    const count = all.length / 3;
    return { ids: all.slice(0, count), offsets: all.slice(count) };
  }

  /**
   * The vector of tokens that another tokenizer made, those at the ends included: 1 to
   * `info.maxTokens` whole numbers below `info.vocabulary`, without padding.
   *
   * @example
   * await embedder.embedIds([101, 7592, 102]);
   */
  embedIds<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    ids: Uint32Array | Int32Array | readonly number[],
    options: EmbedIdsOptions<Into> = {},
  ): Promise<Into> {
    try {
      const about = this.#begin(EMBED_IDS, options, {});
      const own = idsOf(about, ids, this.#model.config);
      const operands = new TokenOperands(EMBED_IDS, this.#model, own);
      return this.#take(operands, options, undefined);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The vector of a text, left on the device: resolves to a tensor of `[info.dimensions]` as
   * soon as the text was submitted, and nothing is read back. An index takes it as it is
   * ({@link VectorIndex.add}), and chains of tensors compute with it.
   *
   * Takes the options of `compute` of tensors, `prompt` and `truncate`. After a lost device the
   * vector is computed again unasked, as long as the embedder is not disposed of; with
   * `keep: false` it is lost, unless `snapshotEvery` asked for snapshots. Equal texts are computed
   * apart. Rejects as {@link embed} does.
   *
   * @example
   * const vector = await embedder.compute("a cat");
   * index.add(vector);
   */
  compute(text: string, options: EmbedComputeOptions = {}): Promise<Tensor> {
    try {
      const about = this.#begin(COMPUTE, options, OWN);
      const { prompt, truncate, ...terms } = options;
      const ids = this.#split(about, text, { prompt, truncate });
      return this.#store(COMPUTE, ids, terms);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The same of tokens that another tokenizer made, as {@link embedIds} takes them.
   *
   * @example
   * const vector = await embedder.computeIds([101, 7592, 102]);
   */
  computeIds(
    ids: Uint32Array | Int32Array | readonly number[],
    options: ComputeOptions = {},
  ): Promise<Tensor> {
    try {
      const about = this.#begin(COMPUTE_IDS, options, {});
      const own = idsOf(about, ids, this.#model.config);
      return this.#store(COMPUTE_IDS, own, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The vectors of many texts, in order: of an array, an iterable, an async iterable or
   * a ReadableStream. Awaited, all of them; with `for await`, as they come, while a few
   * slices are on their way and texts are taken as needed. A text that is wrong rejects
   * at its place, and so does a wrong `signal`, `prompt` or `truncate`. Throws
   * `invalid-input` for any other wrong option.
   *
   * @example
   * for await (const vector of embedder.embedMany(paragraphs, { priority: "low" })) {
   *   vectors.push(vector);
   * }
   */
  embedMany(
    texts: StreamSource<string>,
    options?: EmbedManyOptions,
  ): Embeddings {
    this.#model.refuseIfOver("embedMany");
    return new Embeddings(
      texts,
      {
        streams: this.#calls.streams,
        split: (text, place) =>
          this.#split(`embedMany: text ${place}`, text, options ?? {}),
        embed: (text, ids) => {
          const operands = new TokenOperands(EMBED_MANY, this.#model, ids);
          const { priority } = options ?? {};
          const terms = priority === undefined ? {} : { priority };
          const key = this.#key("embedMany", text, options ?? {});
          return this.#take(operands, terms, key);
        },
        flush: () => this.#calls.send(),
      },
      options,
    );
  }

  /**
   * Gives the model's memory back as soon as no pending call needs it; of an embedder that
   * nobody has any more, the garbage collector gives back the tensors alone. Embedding after
   * this rejects with `disposed`. Disposing twice is fine.
   *
   * @example
   * {
   *   using embedder = await gpu.embedder("/models/all-MiniLM-L6-v2/");
   *   await embedder.embed("once");
   * } // disposed here
   */
  dispose(): void {
    const isLast = this.#model.drop();
    if (isLast && !(this.#tokenizer instanceof FramebatchError))
      this.#tokenizer.free();
  }

  /** Lets `using` dispose of the embedder. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  static {
    mark(this.prototype, "an embedder");
  }

  #begin(
    { name, option }: CallMethod,
    options: unknown,
    own: Readonly<Record<string, true>>,
  ): string {
    checkObject(name, options);
    const { label } = options as { label?: unknown };
    const about = subject(name, typeof label === "string" ? label : undefined);
    this.#model.refuseIfOver(about);
    const names = option === "keep" ? COMPUTE_NAMES : CALL_NAMES;
    checkNames(about, options, { ...own, ...names });
    return about;
  }

  #prompt(about: string, name: string | undefined): string {
    const { prompt, prompts } = this.#model.config;
    if (name === undefined) return prompt;
    const text = prompts.get(name);
    if (text !== undefined) return text;
    throw invalid(
      about,
      `prompt must be one of the model's (${[...prompts.keys()].join(", ") || "it has none"}), got '${String(name)}'`,
    );
  }

  // By what texts are equal: one that is more urgent does not wait for another.
  #key(
    about: string,
    text: string,
    { prompt, priority }: Pick<EmbedOptions, "prompt" | "priority">,
  ): string {
    const own = priority ?? this.#calls.inherited ?? "normal";
    return `${own} ${this.#prompt(about, prompt)}${text}`;
  }

  /** What splits texts. Throws where there is no tokenizer that is known. */
  get #splitter(): Splitter {
    const tokenizer = this.#tokenizer;
    if (tokenizer instanceof FramebatchError) throw tokenizer;
    return tokenizer;
  }

  #split(
    about: string,
    text: unknown,
    { prompt, truncate = true }: { prompt?: string; truncate?: boolean },
  ): Uint32Array {
    this.#model.refuseIfOver(about);
    checkText(about, text);
    if (typeof truncate !== "boolean") {
      throw invalid(
        about,
        `truncate must be true or false, got ${kindOf(truncate)}`,
      );
    }
    const whole = this.#prompt(about, prompt) + text;
    const { maxTokens } = this.#model.config;
    const limit = truncate ? maxTokens : 2 ** 31;
    const ids = this.#splitter.encode(about, whole, limit);
    // Some tokenizers put nothing around a text.
    if (ids.length === 0) {
      throw invalid(about, "the text has no tokens; leave it out");
    }
    if (ids.length > maxTokens) {
      throw invalid(
        about,
        `the text has ${ids.length} tokens, but the model takes ${maxTokens}; split it, or leave truncate out`,
      );
    }
    refusePadding(about, ids, this.#model.config);
    return ids;
  }

  #store(
    method: CallMethod,
    ids: Uint32Array,
    options: ComputeOptions,
  ): Promise<Tensor> {
    // Wrong options are told of before a tensor is made with them.
    checkCallOptions(method, options);
    const model = this.#model;
    const shape = shapeOf(method.name, [model.config.dimensions]);
    const target = inputLike({ shape, dtype: FLOATS }, options);
    const operands = new StoredTokenOperands(method, model, ids, {
      target,
      targeting: "made",
      isRemembered: options.keep !== false,
      answer: new Tensor(this.#calls, target),
    });
    return this.#calls.take(operands, options);
  }

  #take<Into extends Float32Array>(
    operands: TokenOperands,
    terms: CallOptions<Into>,
    key: string | undefined,
  ): Promise<Into> {
    const { into, signal, label } = terms;
    const options = Object.keys(terms).length === 0 ? undefined : terms;
    const compute = (): Promise<Into> =>
      this.#calls.take(operands, options as CallOptions);
    // Calls that are only planned answer nobody.
    if (key === undefined || this.#calls.isRecording) return compute();
    if (options !== undefined) {
      const { method } = operands;
      operands.check(
        method.name,
        checkCallOptions(method, options as CallOptions),
      );
    }
    if (signal?.aborted) return Promise.reject(signal.reason);
    const about = subject(operands.method.name, label);
    const asked = { about, into, signal };
    return this.#deduplication.ask(key, compute, asked) as Promise<Into>;
  }
}
