// The WebAssembly of embeddings, which splits texts and describes forward passes.
//
// The file is loaded once for a page, and entered through `Tokenizer` and `ModelEncoder` alone:
// an instance that traps ends every embedder on it, and the next embedder gets another
// instance. The file has no device, and neither memory nor calls in common with the core.

import { endedError } from "../calls/call-errors.js";
import { FramebatchError, isCoreFailure } from "../checks/errors.js";
import type { WasmSource } from "../core/core.js";
import { start } from "../embeddings-glue.js";
import type { Config } from "./config.js";
import { ABOUT } from "./source.js";
import type { Vocabulary } from "./vocabulary.js";

/** An object in the memory of an instance, until it is freed. */
interface GlueObject {
  free(): void;
}

/** Splits texts into tokens. Throws `{ code, message }`. */
interface TokenizerGlue extends GlueObject {
  /** Flags: 1 strips what is left of it, 2 what is right, 4 looks at normalized text. */
  add(content: string, id: number, flags: number): void;
  /** The tokens of a text, at most `limit` with those at its ends. */
  encode(text: string, limit: number): Uint32Array;
}

/** What is computed of tokens. Throws `{ code, message }`. */
interface EncoderGlue extends GlueObject {
  /** A line for each tensor of a model's file; `weights.ts` describes the line. */
  weights(): string;
  /** The chain of a text of so many tokens, in words; `homes` of each weight. */
  forward(tokens: number, homes: Uint32Array): Uint32Array;
  /** The numbers that all these chains have. */
  numbers(): Float32Array;
}

/** One instance of the WebAssembly file. */
export interface EmbeddingsInstance {
  init(input?: { module_or_path?: WasmSource }): Promise<unknown>;
  /**
   * Words, a line each; prefix, unknown, first, last and what is found verbatim, a line
   * each; 1 lowercase, 2 strips accents, 4 keeps them, 8 splits Chinese, 16 cleans.
   */
  readonly Tokenizer: new (
    words: string,
    names: string,
    flags: number,
    maxChars: number,
  ) => TokenizerGlue;
  /**
   * Hidden, layers, heads, intermediate, vocabulary, positions, the first position,
   * types, 1 for CLS pooling, 1 to normalize, tokens at most.
   */
  readonly Encoder: new (sizes: Uint32Array, epsilon: number) => EncoderGlue;
  /** To be called after a trap: the instance's own finalizers then enter it no more. */
  abandon(): void;
}

/** A loaded instance, and the encoders of the embedders that live on it. */
class Instance {
  readonly encoders = new Set<ModelEncoder>();
  /** Why nothing enters the instance any more. */
  private ended: FramebatchError | undefined;

  constructor(private readonly instance: EmbeddingsInstance) {}

  /**
   * What the instance answers; its refusals become the package's errors. Throws `fatal`
   * where it traps, and from then on.
   */
  ask<Answer>(
    about: string,
    question: (instance: EmbeddingsInstance) => Answer,
  ): Answer {
    if (this.ended !== undefined) throw endedError(about, this.ended);
    try {
      return question(this.instance);
    } catch (thrown) {
      if (isCoreFailure(thrown)) {
        throw new FramebatchError(thrown.code, `${about}: ${thrown.message}`);
      }
      throw endedError(about, this.condemn(thrown));
    }
  }

  /** Frees an object. Never throws, because callers have more to free. */
  free(held: GlueObject): void {
    // All objects of an instance go with its memory.
    if (this.ended !== undefined) return;
    try {
      held.free();
    } catch (thrown) {
      this.condemn(thrown);
    }
  }

  // After a trap nothing in the instance's memory can be trusted.
  private condemn(thrown: unknown): FramebatchError {
    this.ended = new FramebatchError(
      "fatal",
      `the WebAssembly of embeddings stopped (${thrown}); make a new embedder, and please report this`,
      { cause: thrown },
    );
    loading = undefined;
    this.instance.abandon();
    for (const encoder of this.encoders) encoder.ended(this.ended);
    return this.ended;
  }
}

let loading: Promise<Instance> | undefined;

/** Loads the file from `source`, or from beside the package's scripts. */
export function loadInstance(
  source: WasmSource | undefined,
): Promise<Instance> {
  return (loading ??= load(source));
}

async function load(source: WasmSource | undefined): Promise<Instance> {
  try {
    const instance = start();
    await instance.init(
      source === undefined ? undefined : { module_or_path: source },
    );
    return new Instance(instance);
  } catch (error) {
    loading = undefined;
    throw new FramebatchError(
      "unsupported",
      `${ABOUT}: the WebAssembly file of embeddings could not be loaded (${error instanceof Error ? error.message : error}); give its address or its bytes as the option wasm`,
      { cause: error },
    );
  }
}

/** The tokenizer of a model. */
export class Tokenizer {
  private readonly glue: TokenizerGlue;

  constructor(
    private readonly instance: Instance,
    words: Vocabulary,
    lowered: boolean,
  ) {
    this.glue = instance.ask(ABOUT, (instance) =>
      tokenizerOf(instance, words, lowered),
    );
  }

  /** The tokens of a text, at most so many with the first and the last. */
  encode(about: string, text: string, limit: number): Uint32Array {
    return this.instance.ask(about, () => this.glue.encode(text, limit));
  }

  /** No more texts will be split. */
  free(): void {
    this.instance.free(this.glue);
  }
}

function tokenizerOf(
  { Tokenizer }: EmbeddingsInstance,
  words: Vocabulary,
  lowered: boolean,
): TokenizerGlue {
  const { prefix, unknown, first, last, verbatim, lowercase } = words;
  const names = [prefix, unknown, first, last, ...verbatim];
  // Lowercasing by the model's settings strips accents only where the tokenizer's own would.
  const strips = words.stripAccents ?? (lowered ? lowercase : undefined);
  const accents = strips === undefined ? 0 : strips ? 2 : 4;
  const flags =
    (lowercase || lowered ? 1 : 0) |
    accents |
    (words.splitsChinese ? 8 : 0) |
    (words.cleans ? 16 : 0);
  const tokenizer = new Tokenizer(
    words.lines,
    names.join("\n"),
    flags,
    words.maxChars,
  );
  for (const token of words.added) {
    const { stripsLeft, stripsRight, isNormalized } = token;
    const flags =
      (stripsLeft ? 1 : 0) | (stripsRight ? 2 : 0) | (isNormalized ? 4 : 0);
    tokenizer.add(token.content, token.id, flags);
  }
  return tokenizer;
}

/** The forward pass of a model. */
export class ModelEncoder {
  /** Hears of a trap of the instance. */
  ended: (error: FramebatchError) => void = () => {};
  private readonly glue: EncoderGlue;

  constructor(
    private readonly instance: Instance,
    config: Config,
  ) {
    this.glue = instance.ask(ABOUT, (instance) => encoderOf(instance, config));
    instance.encoders.add(this);
  }

  /** A line for each tensor of the file: see `weights.ts`. */
  weights(): string {
    return this.instance.ask(ABOUT, () => this.glue.weights());
  }

  /** The chain of a text of so many tokens, in words; `homes` of each weight. */
  forward(about: string, tokens: number, homes: Uint32Array): Uint32Array {
    return this.instance.ask(about, () => this.glue.forward(tokens, homes));
  }

  /** The numbers of every such chain. */
  numbers(): Float32Array {
    return this.instance.ask(ABOUT, () => this.glue.numbers());
  }

  /** No more texts will be embedded. Freeing twice is fine. */
  free(): void {
    if (this.instance.encoders.delete(this)) this.instance.free(this.glue);
  }
}

function encoderOf(
  { Encoder }: EmbeddingsInstance,
  config: Config,
): EncoderGlue {
  const { hidden, layers, heads, intermediate, vocabulary } = config;
  const sizes = [hidden, layers, heads, intermediate, vocabulary];
  sizes.push(config.positions, config.firstPosition, config.types);
  sizes.push(config.pooling === "cls" ? 1 : 0, config.normalize ? 1 : 0);
  sizes.push(config.maxTokens);
  return new Encoder(Uint32Array.from(sizes), config.epsilon);
}
