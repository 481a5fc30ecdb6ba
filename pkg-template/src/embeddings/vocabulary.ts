// The words of a model: tokenizer.json, or vocab.txt beside tokenizer_config.json.
//
// Reads what the tokenizer is made of, and refuses what is no WordPiece as BERT has it.
// Padding and truncation that a file asks for are left out: texts are not padded, and
// the limit is the model's. Splitting texts is the WebAssembly's.

import { FramebatchError, invalid } from "../checks/errors.js";
import {
  Fields,
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

/** A model's words, or why it takes the numbers of another tokenizer alone. */
export type Words = Vocabulary | FramebatchError;

const ONLY_NUMBERS =
  "split texts with the model's own tokenizer and give the numbers to embedIds";

/** Reads a folder's words. Throws for what contradicts itself. */
export async function readVocabulary(folder: Folder): Promise<Words> {
  try {
    const whole = await readJson(folder, WHOLE);
    if (whole !== undefined) return ofTokenizer(Fields.of(WHOLE, whole));
  } catch (error) {
    if (error instanceof FramebatchError && error.code === "unsupported")
      return error;
    throw error;
  }
  const words = await readText(folder, WORDS);
  if (words === undefined) {
    return invalid(
      ABOUT,
      `${WHOLE} and ${WORDS} are missing; add the one that the model has, or ${ONLY_NUMBERS}`,
    );
  }
  const settings = await readJson(folder, SETTINGS);
  return ofWords(words, Fields.ofFile(SETTINGS, settings));
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
        addedOf(Fields.of(`${WHOLE}: added_tokens[${i}]`, token)),
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
    `${WHOLE}: ${name} is ${shown(has ?? found)}, and only '${type}' is known; ${ONLY_NUMBERS}`,
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

/** What a file puts before and behind one text. */
function endsOf(processor: unknown): [string, string] {
  const type = within(processor, "type");
  let ends: unknown[] = [];
  if (type === "BertProcessing") {
    ends = ["cls", "sep"].map((name) => within(processor, name, 0));
  } else if (type === "TemplateProcessing") {
    const single = within(processor, "single");
    const isOne =
      Array.isArray(single) &&
      single.length === 3 &&
      within(single, 1, "Sequence", "id") === "A";
    if (isOne) {
      ends = [0, 2].map((at) => within(single, at, "SpecialToken", "id"));
    }
  }
  if (ends.length === 2 && ends.every((end) => typeof end === "string")) {
    return ends as [string, string];
  }
  throw unsupported(
    `${WHOLE}: post_processor is ${shown(type ?? processor)}, and only a token before a text and one behind it is known; ${ONLY_NUMBERS}`,
  );
}

function addedOf(fields: Fields): Added {
  if (fields.flag("single_word", false)) {
    throw unsupported(
      `${fields.location}: single_word is not known; ${ONLY_NUMBERS}`,
    );
  }
  return {
    content: fields.text("content"),
    id: fields.whole("id", 0, MOST),
    stripsLeft: fields.flag("lstrip", false),
    stripsRight: fields.flag("rstrip", false),
    isNormalized: fields.flag("normalized", false),
  };
}
