// The WebAssembly of embeddings, which splits texts and describes forward passes.
//
// The file is loaded once for a page, and entered through `Tokenizer` and `ModelEncoder` alone:
// an instance that traps ends every embedder on it, and the next embedder gets another
// instance. The file has no device, and neither memory nor calls in common with the core.

import type { FramebatchError } from "../checks/errors.js";
import type { WasmSource } from "../core/core.js";
import { compileAndStart } from "../core/wasm-file.js";
import { EMBEDDINGS, start } from "../embeddings-glue.js";
import type { Config, Pooling, Task } from "./config.js";
import { type Glue, type GlueObject, Instance } from "./instance.js";
import type { Arithmetic } from "./model.js";
import { ABOUT } from "./source.js";
import type { Vocabulary } from "./vocabulary.js";

/** Splits texts into tokens. Throws `{ code, message }`. */
interface TokenizerGlue extends GlueObject {
  /** Flags: 1 strips what is left of it, 2 what is right, 4 looks at normalized text. */
  add(content: string, id: number, flags: number): void;
  /** The tokens of a text, at most `limit` with those at its ends. */
  encode(text: string, limit: number): Uint32Array;
  /** The tokens of a pair of texts, and behind these as many types. */
  encodePair(a: string, b: string, limit: number): Uint32Array;
  /** The tokens of a text, and behind them from and to of each. */
  tokenize(text: string): Uint32Array;
}

/** Reads what a folder says of its model. Throws `{ code, message }`. */
interface FolderGlue extends GlueObject {
  give(name: string, content: Uint8Array): void;
  /** Hears that there is no such file. */
  lacks(name: string): void;
  /** The names of files that are needed next, a line each; none once the model is described. */
  needs(isReranker: boolean, dimensions: number): string;
  encoder(): EncoderGlue;
}

/** What is computed of tokens. Throws `{ code, message }`. */
interface EncoderGlue extends GlueObject {
  /** The numbers of a configuration, in the order in which `configOf` takes them. */
  facts(): Uint32Array;
  promptName(number: number): string | undefined;
  /** The prompt of this number; the default one behind the last. */
  prompt(number: number): string;
  /** Prefixes of names, divided by spaces. */
  prefixes(): string;
  /** A line for each tensor of a model's files; `weights.ts` describes the line. */
  weights(): string;
  /** The floats of all parts of the weight of this number as they lie on the device. */
  layOut(number: number, stored: Float32Array): Float32Array<ArrayBuffer>;
  /** The floats of the weight of this number, which no file has. */
  computed(number: number): Float32Array<ArrayBuffer>;
  /** The chain of a text of so many tokens, in words; `homes` of each weight. */
  forward(tokens: number, isTyped: boolean, homes: Uint32Array): Uint32Array;
  /** The numbers that all these chains have. */
  numbers(): Float32Array;
  /** The places of a stage's weights: 0 from ids, 1 from rows, then the layers, then the vector. */
  stage(number: number): Uint32Array;
  /** The chain of a stage of so many tokens, in words; `homes` of each of its weights. */
  stageChain(number: number, tokens: number, homes: Uint32Array): Uint32Array;
  /** A text that storage is tested by; none behind the last. */
  testText(number: number): string | undefined;
  /** The most tokens of such a text. */
  testTokens(): number;
  /** Ids in the place of such a text's. */
  testIds(number: number): Uint32Array;
  /** Throws for storage of this name whose least cosine is too small. */
  checkFidelity(storage: string, cosine: number): void;
  /** Has products computed in the precision of this number, 1 in 16 bits. */
  setPrecision(number: number): void;
  /** Throws where 16-bit arithmetic does not suit the model, or the least cosine is too small. */
  checkArithmetic(cosine: number): void;
}

/** One instance of the WebAssembly file. */
export interface EmbeddingsInstance extends Glue {
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
  readonly Folder: new () => FolderGlue;
}

/** An instance of the file of embeddings. */
export type Home = Instance<EmbeddingsInstance>;

let loading: Promise<Home> | undefined;

/** Loads the file from `source`, or from beside the package's scripts. */
export function loadInstance(source: WasmSource | undefined): Promise<Home> {
  return (loading ??= load(source));
}

async function load(source: WasmSource | undefined): Promise<Home> {
  try {
    const instance = start();
    await compileAndStart(
      `${ABOUT}: the WebAssembly file of embeddings`,
      EMBEDDINGS,
      source,
      instance.start,
    );
    return new Instance(instance, "embeddings", () => (loading = undefined));
  } catch (error) {
    loading = undefined;
    throw error;
  }
}

/** The tokenizer of a model. */
export class Tokenizer {
  private readonly glue: TokenizerGlue;

  constructor(
    private readonly instance: Home,
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

  /** The tokens of a pair, at most so many, and behind these as many types. */
  encodePair(about: string, a: string, b: string, limit: number): Uint32Array {
    return this.instance.ask(about, () => this.glue.encodePair(a, b, limit));
  }

  /** The tokens of a text, and behind them from and to of each. */
  tokenize(about: string, text: string): Uint32Array {
    return this.instance.ask(about, () => this.glue.tokenize(text));
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

/** What a folder says, while its files are read. */
export class FolderReader {
  private readonly glue: FolderGlue;

  constructor(private readonly instance: Home) {
    this.glue = instance.ask(ABOUT, ({ Folder }) => new Folder());
  }

  /** Files that are needed next; none once the model is described. */
  needs({ isReranker, dimensions }: Task): string[] {
    const names = this.instance.ask(ABOUT, () =>
      this.glue.needs(isReranker, dimensions),
    );
    return names === "" ? [] : names.split("\n");
  }

  /** Takes a file; undefined where there is none of that name. */
  give(name: string, content: Uint8Array | undefined): void {
    this.instance.ask(ABOUT, () => {
      if (content === undefined) this.glue.lacks(name);
      else this.glue.give(name, content);
    });
  }

  /** The encoder of the model that was described. */
  encoder(): ModelEncoder {
    const glue = this.instance.ask(ABOUT, () => this.glue.encoder());
    return new ModelEncoder(this.instance, glue);
  }

  /** No more will be asked. */
  free(): void {
    this.instance.free(this.glue);
  }
}

/** The forward pass of a model. */
export class ModelEncoder {
  /** Hears of a trap of the instance. */
  ended: (error: FramebatchError) => void = () => {};
  readonly config: Config;
  private readonly leave: () => boolean;

  constructor(
    /** The instance that it lives on. */
    readonly instance: Home,
    private readonly glue: EncoderGlue,
  ) {
    this.config = instance.ask(ABOUT, () => configOf(glue));
    this.leave = instance.enter(this);
  }

  /** Prefixes that all names of a file may have. */
  prefixes(): string[] {
    return this.instance.ask(ABOUT, () => this.glue.prefixes()).split(" ");
  }

  /** A line for each tensor of the files: see `weights.ts`. */
  weights(): string {
    return this.instance.ask(ABOUT, () => this.glue.weights());
  }

  /** The floats of all parts of the weight of this number as they lie on the device. */
  layOut(number: number, stored: Float32Array): Float32Array<ArrayBuffer> {
    return this.instance.ask(ABOUT, () => this.glue.layOut(number, stored));
  }

  /** The floats of the weight of this number, which no file has. */
  computed(number: number): Float32Array<ArrayBuffer> {
    return this.instance.ask(ABOUT, () => this.glue.computed(number));
  }

  /** The chain of a text of so many tokens, in words; `homes` of each weight. */
  forward(
    about: string,
    tokens: number,
    isTyped: boolean,
    homes: Uint32Array,
  ): Uint32Array {
    return this.instance.ask(about, () =>
      this.glue.forward(tokens, isTyped, homes),
    );
  }

  /** The numbers of every such chain. */
  numbers(): Float32Array {
    return this.instance.ask(ABOUT, () => this.glue.numbers());
  }

  /** The places of a stage's weights: 0 from ids, 1 from rows, then the layers, then the vector. */
  stage(number: number): Uint32Array {
    return this.instance.ask(ABOUT, () => this.glue.stage(number));
  }

  /** The chain of a stage of so many tokens, in words; `homes` of each of its weights. */
  stageChain(stage: number, tokens: number, homes: Uint32Array): Uint32Array {
    return this.instance.ask(ABOUT, () =>
      this.glue.stageChain(stage, tokens, homes),
    );
  }

  /** A text that storage is tested by; none behind the last. */
  testText(number: number): string | undefined {
    return this.instance.ask(ABOUT, () => this.glue.testText(number));
  }

  /** The most tokens of such a text. */
  testTokens(): number {
    return this.instance.ask(ABOUT, () => this.glue.testTokens());
  }

  /** Ids in the place of such a text's. */
  testIds(number: number): Uint32Array {
    return this.instance.ask(ABOUT, () => this.glue.testIds(number));
  }

  /** Throws for storage of this name whose least cosine is too small. */
  checkFidelity(storage: string, cosine: number): void {
    this.instance.ask(ABOUT, () => this.glue.checkFidelity(storage, cosine));
  }

  /** Has the products of chains that are asked for from now on computed so. */
  computeIn(arithmetic: Arithmetic): void {
    const number = arithmetic === "f16" ? 1 : 0;
    this.instance.ask(ABOUT, () => this.glue.setPrecision(number));
  }

  /** Throws where 16-bit arithmetic does not suit the model, or the least cosine is too small. */
  checkArithmetic(cosine: number): void {
    this.instance.ask(ABOUT, () => this.glue.checkArithmetic(cosine));
  }

  /** No more texts will be embedded. Freeing twice is fine. */
  free(): void {
    if (this.leave()) this.instance.free(this.glue);
  }
}

const POOLINGS: readonly Pooling[] = ["mean", "cls", "max", "lasttoken"];

function configOf(glue: EncoderGlue): Config {
  const [dimensions, layers, heads, vocabulary, maxTokens, ...facts] =
    glue.facts();
  const [types, firstPosition, pooling, normalize, lowered, ...more] = facts;
  const [positions, staged] = more;
  const prompts = new Map<string, string>();
  for (;;) {
    const name = glue.promptName(prompts.size);
    const prompt = glue.prompt(prompts.size);
    if (name !== undefined) prompts.set(name, prompt);
    else {
      return {
        ...{ dimensions, layers, heads, vocabulary, maxTokens },
        ...{ types, firstPosition, staged, prompts, prompt },
        pooling: POOLINGS[pooling],
        normalize: normalize === 1,
        lowered: lowered === 1,
        hasPositions: positions === 1,
      };
    }
  }
}
