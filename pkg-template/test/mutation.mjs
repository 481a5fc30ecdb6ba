// Inputs made of others, for fuzz.test.mjs: by the values of JSON, by words, by bytes.
//
// The same as `tests/fuzz/mutation.rs` for the native face, without changes of single bits.

const NUMBERS = [
  ...[0, 1, 2, -1, 0.5, 1e-12, 1e30, 1e308, -0, 3, 7, 64, 127, 128, 255, 65536],
  ...[2 ** 24 - 1, 2 ** 24, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 + 2],
];

const TEXTS = [
  ...["", " ", "a", "\0", "\n", "\ufeff", "é", "👍", "..", "../x", "/", "//h"],
  ...[
    "1_Pooling",
    "http://h/",
    "%2e%2e",
    "mean",
    "cls",
    "max",
    "bert",
    "roberta",
  ],
  ...["gelu", "[UNK]", "[CLS]", "[SEP]", "##", "WordPiece", "Unigram", "A"],
  ...["BertNormalizer", "TemplateProcessing", "BertProcessing", "F32", "F16"],
  ...["BF16", "I64", "BOOL", "__proto__", "constructor", "toString", "length"],
];

const PIECES = [
  ...['{"__proto__":1}', "{", "}", "[", "]", ",", ":", '"', "\\", "\\u0000"],
  ...["\\ud800", "null", "true", "1e999", "-0", "01", "1.", "NaN", "\ufeff"],
  ...["\r\n", "\n", "##"],
];

const encode = (text) => new TextEncoder().encode(text);
const isObject = (value) => typeof value === "object" && value !== null;

export class Mutator {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** A whole number below `end` (mulberry32). */
  below(end) {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) % Math.max(end, 1);
  }

  pick(among) {
    return among[this.below(among.length)];
  }

  /** An input of a form made of these. */
  mutate(form, inputs) {
    const [input, other] = [this.pick(inputs), this.pick(inputs)];
    if (this.below(5) === 0) return this.#bytes(input, other);
    if (form === "words") return this.#words(input);
    if (form === "text") return this.#bytes(input, other);
    if (form === "json") return this.#json(input, other);
    return form === "named"
      ? this.#named(input, other)
      : this.#headered(input, other);
  }

  #json(input, other) {
    const value = parsed(input);
    if (value === undefined) return this.#bytes(input, other);
    let changed = value;
    for (let i = this.below(3); i >= 0; i -= 1) {
      changed = this.#change(changed, parsed(other) ?? null, 0);
    }
    return encode(JSON.stringify(changed) ?? "null");
  }

  #named(input, other) {
    const ends = [input, other].map((bytes) => bytes.indexOf(10));
    if (ends.includes(-1)) return this.#bytes(input, other);
    const [end, others] = ends;
    const json = this.#json(
      input.subarray(end + 1),
      other.subarray(others + 1),
    );
    return joined(input.subarray(0, end + 1), json);
  }

  #headered(input, other) {
    const parts = (bytes) => {
      if (bytes.length < 8) return undefined;
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      const end = 8 + Number(view.getBigUint64(0, true));
      return end > bytes.length
        ? undefined
        : [bytes.subarray(8, end), bytes.subarray(end)];
    };
    const [own, others] = [parts(input), parts(other)];
    if (own === undefined || others === undefined) {
      return this.#bytes(input, other);
    }
    const header = this.#json(own[0], others[0]);
    const cut = this.below(10) === 0 ? own[1].length >> 1 : own[1].length;
    const length = new Uint8Array(8);
    const odd = [0, 1, 2, header.length + 1, 1e8, 1e8 + 1, 2 ** 53];
    const said = this.below(16) === 0 ? this.pick(odd) : header.length;
    new DataView(length.buffer).setBigUint64(0, BigInt(said), true);
    return joined(length, header, own[1].subarray(0, cut));
  }

  #words(input) {
    let bytes = input.slice();
    for (let i = this.below(3); i >= 0; i -= 1) {
      const words = bytes.length >> 2;
      const at = this.below(this.below(2) ? words : Math.min(words, 8)) * 4;
      const ends = [0, 1, 2, 3, 5, 0x7c00, 0x7f800000, 0x7fc00000];
      const word = this.below(2)
        ? this.pick([...ends, 2 ** 31, 2 ** 32 - 1, 65536])
        : this.below(8);
      const part = new Uint8Array(Uint32Array.of(word).buffer);
      const how = this.below(8);
      if (how === 0) bytes = bytes.slice(0, at);
      else if (how === 1) bytes = joined(bytes, part);
      else if (at + 4 <= bytes.length) bytes.set(part, at);
    }
    return bytes;
  }

  #bytes(input, other) {
    let bytes = input;
    for (let i = this.below(4); i >= 0; i -= 1) {
      const at = this.below(bytes.length + 1);
      const end = Math.min(at + this.below(9), bytes.length);
      const from = this.below(other.length + 1);
      const [before, cut, behind] = [
        bytes.subarray(0, at),
        bytes.subarray(at, end),
        bytes.subarray(end),
      ];
      const middle = [
        () => new Uint8Array(0),
        () => joined(encode(this.pick(PIECES)), cut),
        () => other.subarray(from, from + this.below(33)),
        // The same again and again, to nest or to grow.
        () => joined(...new Array(1 + this.below(80)).fill(cut)),
        () => cut.map((byte) => byte ^ (1 << this.below(8))),
      ];
      bytes = joined(before, this.pick(middle)(), behind);
    }
    return bytes.slice();
  }

  #change(value, other, depth) {
    const isLeaf = !isObject(value) || Object.keys(value).length === 0;
    if (isLeaf || this.below(5) === 0) return this.#value(other);
    const name = this.pick(Object.keys(value));
    const how = this.below(12);
    if (Array.isArray(value)) {
      const list = [...value];
      if (how === 0) list.splice(+name, 1);
      else if (how === 1) list.push(list[name]);
      else list[name] = this.#change(list[name], other, depth + 1);
      return list;
    }
    const fields = Object.entries(value).filter(
      ([own]) => how !== 0 || own !== name,
    );
    if (how === 1) fields.push([this.pick(TEXTS), this.#value(other)]);
    const changed = fields.map(([own, field]) => {
      if (own !== name) return [own, field];
      if (how === 2) return [own + this.pick(TEXTS), field];
      return [own, this.#change(field, other, depth + 1)];
    });
    return Object.fromEntries(changed);
  }

  #value(other) {
    const all = [
      () => null,
      () => this.below(2) === 0,
      () => this.pick(NUMBERS),
      () => this.below(300),
      () => this.pick(TEXTS),
      () => ["x", 1, [this.below(9)]],
      () => this.pick([{}, []]),
      () => this.#part(other),
    ];
    return this.pick(all)();
  }

  #part(value) {
    const parts = isObject(value) ? Object.values(value) : [];
    if (parts.length === 0 || this.below(4) === 0) return value;
    return this.#part(this.pick(parts));
  }
}

function parsed(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function joined(...parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
