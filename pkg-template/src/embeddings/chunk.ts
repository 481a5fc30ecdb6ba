// The WebAssembly of embeddings: it splits texts, and says what a forward pass is.
//
// Types, and loading once for a page. It has no device and no memory in common with the
// core, which knows nothing of it.

import { start } from "../embeddings-glue.js";
import type { WasmSource } from "../core.js";
import { FramebatchError, isCoreFailure } from "../errors.js";
import type { Config } from "./config.js";
import { ABOUT } from "./source.js";
import type { Vocabulary } from "./vocabulary.js";

/** Splits texts into tokens. Throws `{ code, message }`. */
export interface Tokenizer {
  /** Flags: 1 strips what is left of it, 2 what is right, 4 looks at normalized text. */
  add(content: string, id: number, flags: number): void;
  /** The tokens, at most so many with the first and the last. */
  encode(text: string, limit: number): Uint32Array;
  free(): void;
}

/** What is computed of tokens. Throws `{ code, message }`. */
export interface Encoder {
  /** A line for each tensor of the file: see `weights.ts`. */
  weights(): string;
  /** The chain of a text of so many tokens, in words; `homes` of each weight. */
  forward(tokens: number, homes: Uint32Array): Uint32Array;
  /** The numbers of every such chain. */
  numbers(): Float32Array;
  free(): void;
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
  ) => Tokenizer;
  /**
   * Hidden, layers, heads, intermediate, vocabulary, positions, the first position,
   * types, 1 for CLS pooling, 1 to normalize, tokens at most.
   */
  readonly Encoder: new (sizes: Uint32Array, epsilon: number) => Encoder;
}

let loading: Promise<EmbeddingsInstance> | undefined;

/** Loads the file from `source`, or from beside the package's scripts. */
export function loadChunk(
  source: WasmSource | undefined,
): Promise<EmbeddingsInstance> {
  return (loading ??= load(source));
}

async function load(
  source: WasmSource | undefined,
): Promise<EmbeddingsInstance> {
  try {
    const instance = start();
    await instance.init(
      source === undefined ? undefined : { module_or_path: source },
    );
    return instance;
  } catch (error) {
    loading = undefined;
    throw new FramebatchError(
      "unsupported",
      `${ABOUT}: the WebAssembly file of embeddings could not be loaded (${error instanceof Error ? error.message : error}); give its address or its bytes as the option wasm`,
      { cause: error },
    );
  }
}

/** What the chunk answers; its refusals become the package's errors. */
export function ask<Answer>(about: string, question: () => Answer): Answer {
  try {
    return question();
  } catch (thrown) {
    if (isCoreFailure(thrown)) {
      throw new FramebatchError(thrown.code, `${about}: ${thrown.message}`);
    }
    // Nothing that a trap left behind can be trusted.
    loading = undefined;
    throw new FramebatchError(
      "fatal",
      `${about}: the WebAssembly of embeddings stopped (${thrown}); make a new embedder, and please report this`,
      { cause: thrown },
    );
  }
}

/** The tokenizer of a model. */
export function tokenizerOf(
  { Tokenizer }: EmbeddingsInstance,
  words: Vocabulary,
  lowered: boolean,
): Tokenizer {
  const { prefix, unknown, first, last, verbatim, lowercase } = words;
  const names = [prefix, unknown, first, last, ...verbatim];
  // What is lowered before keeps its accents if it would have.
  const strips = words.stripAccents ?? (lowered ? lowercase : undefined);
  const accents = strips === undefined ? 0 : strips ? 2 : 4;
  const flags =
    (lowercase || lowered ? 1 : 0) |
    accents |
    (words.splitsChinese ? 8 : 0) |
    (words.cleans ? 16 : 0);
  return ask(ABOUT, () => {
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
  });
}

/** The forward pass of a model. */
export function encoderOf(
  { Encoder }: EmbeddingsInstance,
  config: Config,
): Encoder {
  const { hidden, layers, heads, intermediate, vocabulary } = config;
  const sizes = [hidden, layers, heads, intermediate, vocabulary];
  sizes.push(config.positions, config.firstPosition, config.types);
  sizes.push(config.pooling === "cls" ? 1 : 0, config.normalize ? 1 : 0);
  sizes.push(config.maxTokens);
  return ask(ABOUT, () => new Encoder(Uint32Array.from(sizes), config.epsilon));
}
