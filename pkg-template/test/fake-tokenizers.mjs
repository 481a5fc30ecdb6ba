// The WebAssembly of tokenizers in JavaScript: the same boundary, a small tokenizer.
//
// The fake stands where the glue stands. It reads whatever JSON it is fed, refuses parts whose
// kind Rust's does not know, and makes a token of each word between spaces.

import assert from "node:assert/strict";

/** What tests read and turn. */
export const file = {
  instances: 0,
  /** Instances that trapped and were cut off, by number. */
  abandoned: new Set(),
  /** Awaited by `start`; rejects to make it fail. */
  loading: Promise.resolve(),
  /** The lengths of the slices that were fed, and what finished tokenizers were told. */
  slices: [],
  finished: [],
  /** Readers and tokenizers that were made and not freed. */
  held: 0,
  /** Thrown by the next call of the method it is named after. */
  failures: {},
};

const KNOWN = {
  normalizer: ["BertNormalizer", "NFC", "Precompiled", "Replace", "Sequence"],
  pre_tokenizer: ["BertPreTokenizer", "ByteLevel", "Metaspace", "Split"],
  post_processor: ["BertProcessing", "TemplateProcessing"],
  model: ["WordPiece", "Unigram", "BPE"],
};

/** The glue, as the package's tools wrap it. */
export function instantiate() {
  file.instances += 1;
  const number = file.instances;
  return {
    start: () => file.loading,
    abandon: () => file.abandoned.add(number),
    TokenizerReader: class extends TokenizerReader {
      instance = number;
    },
  };
}

/** What lives on an instance, which it enters with every method. */
class Tenant {
  constructor() {
    file.held += 1;
  }

  enter(method) {
    assert.ok(!file.abandoned.has(this.instance), "it trapped before");
    assert.ok(!this.isFree, "it is not free yet");
    const failure = file.failures[method];
    delete file.failures[method];
    if (failure !== undefined) throw failure;
  }

  free() {
    this.enter("free");
    this.isFree = true;
    file.held -= 1;
  }
}

class TokenizerReader extends Tenant {
  bytes = [];

  feed(slice) {
    this.enter("feed");
    file.slices.push(slice.length);
    this.bytes.push(...slice);
  }

  finish(flags, rows) {
    const lowers = flags === 1;
    this.free();
    this.enter = () => assert.fail("it is finished");
    const json = parsed(Uint8Array.from(this.bytes));
    for (const [part, kinds] of Object.entries(KNOWN)) {
      const given = json?.[part] ?? undefined;
      if (given === undefined && part !== "model") continue;
      const isOld = part === "model" && given?.vocab !== undefined;
      const kind = given?.type ?? (isOld ? "WordPiece" : undefined);
      const { single } = given ?? {};
      const hasText =
        !Array.isArray(single) || single.some((piece) => piece?.Sequence);
      if (kinds.includes(kind) && hasText) continue;
      throw refused("unsupported", `${part} ${JSON.stringify(given)}`);
    }
    file.finished.push({ lowers, rows, json });
    const tokenizer = new Tokenizer(json, lowers);
    tokenizer.instance = this.instance;
    return tokenizer;
  }
}

function parsed(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw refused("invalid-input", `cannot be read as JSON: ${error}`);
  }
}

const refused = (code, message) => ({ code, message });

class Tokenizer extends Tenant {
  constructor({ model }, lowers) {
    const vocab = model.vocab ?? {};
    const isPair = (piece) => Array.isArray(piece) && piece.length === 2;
    if (Array.isArray(vocab) && !vocab.every(isPair)) {
      throw refused("invalid-input", "model.vocab: pieces are pairs");
    }
    super();
    this.lowers = lowers;
    this.words = Array.isArray(vocab)
      ? new Map(vocab.map(([word], id) => [word, id]))
      : new Map(Object.entries(vocab));
  }

  get rows() {
    return Math.max(0, ...this.words.values()) + 1;
  }

  encode(text, limit) {
    this.enter("encode");
    return Uint32Array.from(this.#found(text).slice(0, limit), ([id]) => id);
  }

  encodePair(a, b, limit) {
    this.enter("encodePair");
    const [first, second] = [a, b].map((text) => this.#found(text));
    const ids = [...first, ...second].slice(0, limit).map(([id]) => id);
    return Uint32Array.from([
      ...ids,
      ...ids.map((_, at) => +(at >= first.length)),
    ]);
  }

  tokenize(text) {
    this.enter("tokenize");
    const found = this.#found(text);
    const ids = found.map(([id]) => id);
    return Uint32Array.from([
      ...ids,
      ...found.flatMap(([, from, to]) => [from, to]),
    ]);
  }

  #found(text) {
    const whole = this.lowers ? text.toLowerCase() : text;
    return [...whole.matchAll(/[^ ]+/g)].map(({ 0: word, index }) => [
      this.words.get(word) ?? 0,
      ...[index, index + word.length],
    ]);
  }
}
