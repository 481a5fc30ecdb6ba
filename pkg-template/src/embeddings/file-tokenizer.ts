// Tokenizers beyond BERT's WordPiece: a WebAssembly file of their own, which reads a folder's
// tokenizer.json in slices.
//
// The file is loaded once for a page, where the first folder needs it. Which folders do is known
// in `vocabulary.ts`.

import { FramebatchError } from "../checks/errors.js";
import { compileAndStart } from "../core/wasm-file.js";
import { hostEnvironment, nextTask } from "../platform/environment.js";
import { startTokenizers, TOKENIZERS } from "../embeddings-tokenizers-glue.js";
import { type Glue, type GlueObject, Instance } from "./instance.js";
import { ABOUT } from "./source.js";

/** Reads a file slice by slice. Throws `{ code, message }`. */
interface ReaderGlue extends GlueObject {
  feed(slice: Uint8Array): void;
  /**
   * The tokenizer of the file, which ends here, for a table of so many rows; 1 lowers texts.
   * Afterwards the reader is freed.
   */
  finish(flags: number, rows: number): TokenizerGlue;
}

/** Splits texts. Throws `{ code, message }`. */
interface TokenizerGlue extends GlueObject {
  /** How many rows the table needs that ids are rows of. */
  readonly rows: number;
  encode(text: string, limit: number): Uint32Array;
  /** The ids of a pair of texts, and behind these as many types. */
  encodePair(a: string, b: string, limit: number): Uint32Array;
  /** Ids, and behind them from and to of each. */
  tokenize(text: string): Uint32Array;
}

/** One instance of the WebAssembly file. */
export interface TokenizersInstance extends Glue {
  readonly TokenizerReader: new () => ReaderGlue;
}

type Home = Instance<TokenizersInstance>;

/** Bytes that are read in one go, and milliseconds after which the page has its turn. */
const SLICE = 1 << 16;
const TURN_MS = 8;

let loading: Promise<Home> | undefined;

/** Loads the file from beside the package's scripts, or takes what a script holds. */
function load(): Promise<Home> {
  return (loading ??= start());
}

async function start(): Promise<Home> {
  try {
    const glue = startTokenizers();
    await compileAndStart(
      `${ABOUT}: the WebAssembly file of tokenizers`,
      TOKENIZERS,
      undefined,
      glue.start,
    );
    return new Instance(glue, "tokenizers", () => (loading = undefined));
  } catch (error) {
    loading = undefined;
    if (!(error instanceof FramebatchError)) throw error;
    throw new TokenizersFailure(error.code, error.message, { cause: error });
  }
}

/** The error of the WebAssembly file, which says nothing of a model's. */
export class TokenizersFailure extends FramebatchError {}

/** A tokenizer.json that is being read, piece by piece. */
export class TokenizerReader {
  private glue: ReaderGlue | undefined;

  private constructor(
    private readonly home: Home,
    private readonly name: string,
  ) {
    this.glue = home.ask(ABOUT, (glue) => new glue.TokenizerReader());
  }

  /** Begins to read the file of this name. */
  static async begin(name: string): Promise<TokenizerReader> {
    return new TokenizerReader(await load(), name);
  }

  /** Takes the next bytes, and lets the page have turns meanwhile. */
  async feed(bytes: Uint8Array): Promise<void> {
    let begun = performance.now();
    for (let at = 0; at < bytes.length; at += SLICE) {
      if (performance.now() - begun > TURN_MS) {
        await nextTask(hostEnvironment());
        begun = performance.now();
      }
      const slice = bytes.subarray(at, at + SLICE);
      this.ask(() => this.glue!.feed(slice));
    }
  }

  /** The tokenizer of the file, which ends here: added tokens beyond a model's rows are none. */
  finish(lowers: boolean, rows: number): FileTokenizer {
    const { glue } = this;
    this.glue = undefined;
    return new FileTokenizer(
      this.home,
      this.ask(() => glue!.finish(lowers ? 1 : 0, rows)),
    );
  }

  /** The file will not be read on. */
  free(): void {
    if (this.glue !== undefined) this.home.free(this.glue);
    this.glue = undefined;
  }

  private ask<Answer>(question: () => Answer): Answer {
    try {
      return this.home.ask(`${ABOUT}: ${this.name}`, question);
    } catch (error) {
      // What refuses a file gives it up.
      if (error instanceof FramebatchError) this.free();
      throw error;
    }
  }
}

/** The tokenizer of a file. */
export class FileTokenizer {
  /** How many rows the model's table of words needs. */
  readonly rows: number;
  private isFree = false;

  constructor(
    private readonly home: Home,
    private readonly glue: TokenizerGlue,
  ) {
    this.rows = home.ask(ABOUT, () => glue.rows);
  }

  /** The tokens of a text, at most so many with those at its ends. */
  encode(about: string, text: string, limit: number): Uint32Array {
    return this.home.ask(about, () => this.glue.encode(text, limit));
  }

  /** The tokens of a pair, at most so many, and behind these as many types. */
  encodePair(about: string, a: string, b: string, limit: number): Uint32Array {
    return this.home.ask(about, () => this.glue.encodePair(a, b, limit));
  }

  /** The tokens of a text, and behind them from and to of each. */
  tokenize(about: string, text: string): Uint32Array {
    return this.home.ask(about, () => this.glue.tokenize(text));
  }

  /** No more texts will be split. Freeing twice is fine. */
  free(): void {
    if (!this.isFree) this.home.free(this.glue);
    this.isFree = true;
  }
}
