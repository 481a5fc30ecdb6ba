// The words of a model: tokenizer.json, or vocab.txt beside tokenizer_config.json.
//
// Reads what a WordPiece tokenizer is made of, as BERT has it. Whatever else a tokenizer.json
// describes is read by a WebAssembly file of its own (`file-tokenizer.ts`), which is loaded then.
// Padding and truncation that a file asks for are left out: texts are not padded, and
// the limit is the model's. Splitting texts is the WebAssembly's.

import { FramebatchError, invalid } from "../checks/errors.js";
import type { Config } from "./config.js";
import {
  FileTokenizer,
  TokenizerReader,
  TokenizersFailure,
} from "./file-tokenizer.js";
import {
  decode,
  Fields,
  parse,
  readJson,
  readText,
  shown,
  unsupported,
} from "./json-fields.js";
import { ABOUT, type Folder } from "./source.js";

/** A token that is found in a text as it stands. */
export interface Added {
  readonly content: string;
  readonly id: number;
  readonly stripsLeft: boolean;
  readonly stripsRight: boolean;
  readonly isNormalized: boolean;
}

/** What a tokenizer is made of. */
export interface Vocabulary {
  /** A line for each token, in the order of their numbers. */
  readonly lines: string;
  readonly tokens: number;
  readonly prefix: string;
  readonly unknown: string;
  /** What stands before and behind every text. */
  readonly first: string;
  readonly last: string;
  readonly maxChars: number;
  readonly lowercase: boolean;
  /** Undefined: as `lowercase`. */
  readonly stripAccents: boolean | undefined;
  readonly splitsChinese: boolean;
  readonly cleans: boolean;
  /** Found in a text as they stand, as far as they are among the words. */
  readonly verbatim: readonly string[];
  readonly added: readonly Added[];
}

const WHOLE = "tokenizer.json";
const WORDS = "vocab.txt";
/** The file with the settings of a tokenizer. */
export const SETTINGS = "tokenizer_config.json";
const MOST = 2 ** 24;
/** Ids below others that no token has. */
const MOST_HOLES = 2 ** 16;

/** Bytes that a tokenizer.json may have. */
const MOST_BYTES = 64 << 20;
/** How models are named that BERT's file does not have, and bytes that are searched at once. */
const BEYOND = /"(?:BPE|Unigram)"/;
const WINDOW = 1 << 16;

/** A model's words as they are read, or why it takes the numbers of another tokenizer alone. */
export type Words = Vocabulary | TokenizerReader | FramebatchError;

/** What splits a model's texts, as far as it was read. */
export type Splitting = Vocabulary | FileTokenizer | FramebatchError;

/** Reads a folder's words. Throws for what contradicts itself. */
export async function readVocabulary(folder: Folder): Promise<Words> {
  const whole = await leavingIds(() => readWhole(folder));
  if (whole !== undefined) return whole;
  const words = await readText(folder, WORDS);
  if (words === undefined) {
    return invalid(
      ABOUT,
      `${WHOLE} and ${WORDS} are missing; add the one that the model has`,
    );
  }
  const settings = await readJson(folder, SETTINGS);
  return ofWords(words, Fields.ofFile(SETTINGS, settings));
}

/** Finishes reading, and holds the ids against the model's table. Throws for those it lacks. */
export function finishWords(words: Words, config: Config): Splitting {
  const { vocabulary, lowered } = config;
  let splitting: Splitting;
  if (words instanceof TokenizerReader) {
    try {
      splitting = words.finish(lowered, vocabulary);
    } catch (error) {
      splitting = refusal(error);
    }
  } else splitting = limited(words, vocabulary);
  if (splitting instanceof FramebatchError) return splitting;
  const rows = rowsOf(splitting);
  if (rows <= vocabulary) return splitting;
  if (splitting instanceof FileTokenizer) splitting.free();
  throw invalid(
    ABOUT,
    `the vocabulary has ${rows} tokens, but vocab_size of config.json is ${vocabulary}`,
  );
}

/** Words without added tokens that a model's table has no rows for. */
function limited(words: Splitting, rows: number): Splitting {
  if (words instanceof FileTokenizer || words instanceof FramebatchError) {
    return words;
  }
  return { ...words, added: words.added.filter(({ id }) => id < rows) };
}

/** The file will not be read to its end, if one is being read. */
export function freeWords(words: Words): void {
  if (words instanceof TokenizerReader) words.free();
}

function rowsOf(words: Vocabulary | FileTokenizer): number {
  if (words instanceof FileTokenizer) return words.rows;
  const { added, tokens } = words;
  return added.reduce((rows, { id }) => Math.max(rows, id + 1), tokens);
}

/** What reading comes to; what is not known leaves the model's ids. */
async function leavingIds<Read>(
  read: () => Promise<Read>,
): Promise<Read | FramebatchError> {
  try {
    return await read();
  } catch (error) {
    return refusal(error);
  }
}

/** The error of a tokenizer that is not known. Throws every other error. */
function refusal(error: unknown): FramebatchError {
  const isOne =
    error instanceof FramebatchError && !(error instanceof TokenizersFailure);
  if (!isOne || error.code !== "unsupported") throw error;
  return error;
}

/** Reads tokenizer.json, where there is one. */
async function readWhole(
  folder: Folder,
): Promise<Vocabulary | TokenizerReader | undefined> {
  const file = await folder.open(WHOLE);
  if (file === undefined) return undefined;
  let parts: Uint8Array[] = [];
  let length = 0;
  let reader: TokenizerReader | undefined;
  const search = new Search();
  try {
    for (;;) {
      const part = await file.read();
      if (part === undefined) break;
      length += part.length;
      if (length > MOST_BYTES) {
        throw invalid(ABOUT, `${WHOLE} has more than ${MOST_BYTES} bytes`);
      }
      parts.push(part);
      if (reader === undefined && !search.finds(part)) continue;
      reader ??= await TokenizerReader.begin(WHOLE);
      await feed(reader, parts);
      parts = [];
    }
  } finally {
    file.cancel();
  }
  if (reader !== undefined) return reader;
  try {
    const bytes = new Uint8Array(
      await new Blob(parts as BlobPart[]).arrayBuffer(),
    );
    return ofTokenizer(Fields.of(WHOLE, parse(WHOLE, textOf(bytes))));
  } catch (error) {
    refusal(error);
  }
  // BERT's model with parts that BERT does not have.
  reader = await TokenizerReader.begin(WHOLE);
  await feed(reader, parts);
  return reader;
}

async function feed(
  reader: TokenizerReader,
  parts: readonly Uint8Array[],
): Promise<void> {
  for (const part of parts) await reader.feed(part);
}

function textOf(bytes: Uint8Array): string {
  try {
    return decode(bytes);
  } catch {
    throw invalid(ABOUT, `${WHOLE} is not UTF-8`);
  }
}

/** Looks for the name of a model in bytes as they arrive. */
class Search {
  /** The end of what was searched, which a name may begin in. */
  private last = "";

  finds(part: Uint8Array): boolean {
    for (let at = 0; at < part.length; at += WINDOW) {
      // No byte of the names is part of another character.
      const window = String.fromCharCode(
        ...part.subarray(at, at + WINDOW).filter((byte) => byte < 128),
      );
      if (BEYOND.test(this.last + window)) return true;
      this.last = window.slice(-16);
    }
    return false;
  }
}

function ofWords(text: string, settings: Fields): Vocabulary {
  const lines = text.replace(/\r\n/g, "\n").replace(/\n$/, "");
  const token = (name: string): string =>
    settings.token(`${name}_token`, `[${name.toUpperCase()}]`);
  const verbatim = ["pad", "unk", "cls", "sep", "mask"].map(token);
  const [, unknown, first, last] = verbatim;
  return {
    lines,
    tokens: lines === "" ? 0 : lines.split("\n").length,
    prefix: "##",
    unknown,
    first,
    last,
    maxChars: 100,
    lowercase: settings.flag("do_lower_case", true),
    stripAccents: accentsOf(settings),
    splitsChinese: settings.flag("tokenize_chinese_chars", true),
    cleans: true,
    verbatim: [...new Set(verbatim)],
    added: [],
  };
}

function ofTokenizer(fields: Fields): Vocabulary {
  const model = part(fields, "model", "WordPiece");
  const normalizer = part(fields, "normalizer", "BertNormalizer");
  part(fields, "pre_tokenizer", "BertPreTokenizer");
  const [first, last] = endsOf(fields.get("post_processor"));
  const words = model.object("vocab");
  if (words === undefined) throw model.wrong("vocab", "is missing");
  for (const end of [first, last]) {
    if (words.get(end) !== undefined) continue;
    throw unsupported(`${WHOLE}: '${end}' is no word of the vocabulary`);
  }
  return {
    ...linesOf(model, model.get("vocab") as Record<string, unknown>),
    prefix: model.text("continuing_subword_prefix", "##"),
    unknown: model.text("unk_token", "[UNK]"),
    first,
    last,
    maxChars: model.whole("max_input_chars_per_word", 0, MOST, 100),
    lowercase: normalizer.flag("lowercase", true),
    stripAccents: accentsOf(normalizer),
    splitsChinese: normalizer.flag("handle_chinese_chars", true),
    cleans: normalizer.flag("clean_text", true),
    verbatim: [],
    added: fields
      .list("added_tokens")
      .map((token, i) =>
        addedOf(Fields.of(`${WHOLE}: added_tokens[${i}]`, token), words),
      ),
  };
}

/** A part of a tokenizer, which must be of the type that BERT has. */
function part(fields: Fields, name: string, type: string): Fields {
  const found = fields.get(name);
  const has = within(found, "type") ?? undefined;
  // Older files leave the type of the model out.
  const isOld = name === "model" && has === undefined && isObject(found);
  if (has === type || isOld) return fields.object(name)!;
  throw unsupported(
    `${WHOLE}: ${name} is ${shown(has ?? found)}, and only '${type}' is known`,
  );
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value at a path within any value; undefined where there is none. */
function within(value: unknown, ...path: (string | number)[]): unknown {
  for (const key of path) {
    const has =
      typeof key === "number" ? Array.isArray(value) : isObject(value);
    if (!has || !Object.hasOwn(value as object, key)) return undefined;
    value = (value as Record<string | number, unknown>)[key];
  }
  return value;
}

function accentsOf(fields: Fields): boolean | undefined {
  const strips = fields.get("strip_accents") ?? undefined;
  return strips === undefined ? undefined : fields.flag("strip_accents", true);
}

function linesOf(
  model: Fields,
  words: Record<string, unknown>,
): Pick<Vocabulary, "lines" | "tokens"> {
  const lines: string[] = [];
  const all = Object.entries(words);
  // Ids without a token take a line each.
  const most = Math.min(MOST, all.length + MOST_HOLES);
  for (const [token, id] of all) {
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) >= most) {
      throw model.wrong(
        `vocab['${token}']`,
        `must be a whole number below ${most}, got ${shown(id)}`,
      );
    }
    // A token with a space in it is no word of any text.
    lines[id as number] = /\s/.test(token) ? "" : token;
  }
  // Holes become empty lines.
  return { lines: Array.from(lines).join("\n"), tokens: lines.length };
}

/** The pieces of a template, each with the type of its tokens. */
function piecesOf(template: unknown): string {
  const pieces = Array.isArray(template) ? template : [];
  const shown = pieces.map((piece) => {
    const of = within(piece, "SpecialToken") ?? within(piece, "Sequence");
    return `${String(within(of, "id"))} ${String(within(of, "type_id"))}`;
  });
  return shown.join(", ");
}

/** What a file puts before and behind one text. */
function endsOf(processor: unknown): [string, string] {
  const type = within(processor, "type");
  let ends: unknown[] = [];
  if (type === "BertProcessing") {
    ends = ["cls", "sep"].map((name) => within(processor, name, 0));
  } else if (type === "TemplateProcessing") {
    const [single, pair] = ["single", "pair"].map((of) =>
      piecesOf(within(processor, of)),
    );
    const [first, last] = [0, 2].map((at) =>
      within(processor, "single", at, "SpecialToken", "id"),
    );
    const one = `${first} 0, A 0, ${last} 0`;
    // A file without pairs is no reranker's.
    const isUsual = [`${one}, B 1, ${last} 1`, ""].includes(pair);
    if (single === one && isUsual) ends = [first, last];
  }
  if (ends.length === 2 && ends.every((end) => typeof end === "string")) {
    return ends as [string, string];
  }
  throw unsupported(
    `${WHOLE}: post_processor is ${shown(type ?? processor)}, and only a token before a text and one behind it is known`,
  );
}

function addedOf(fields: Fields, words: Fields): Added {
  if (fields.flag("single_word", false)) {
    throw unsupported(`${fields.location}: single_word is not known`);
  }
  const content = fields.text("content");
  const id = fields.whole("id", 0, MOST);
  return {
    content,
    // Where the vocabulary has the token, its id counts.
    id: (words.get(content) as number | undefined) ?? id,
    stripsLeft: fields.flag("lstrip", false),
    stripsRight: fields.flag("rstrip", false),
    isNormalized: fields.flag("normalized", false),
  };
}
