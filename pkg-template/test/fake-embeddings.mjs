// The WebAssembly of embeddings in JavaScript: the same boundary, a small model.
//
// The fake stands where the glue stands. Words are what spaces divide, one token each; an
// embedding is the mean of its tokens' rows plus one vector. The fused matrix is taken
// along and not computed with, so that its parts can be looked at.

import assert from "node:assert/strict";
import { compiling } from "./framebatch.js";

/** What tests read and turn. */
export const chunk = {
  instances: 0,
  /** Instances that trapped and were cut off, by number. */
  abandoned: new Set(),
  /** Awaited by `start`; rejects to make it fail. */
  loading: Promise.resolve(),
  /** What `start` was given. */
  module: undefined,
  /** The arguments of each tokenizer, and what was added. */
  tokenizers: [],
  /** The most tokens of each pair. */
  limits: [],
  /** What each folder was described for. */
  tasks: [],
  /** How many tokenizers, folders and encoders were made, and how many were freed. */
  made: 0,
  freed: 0,
  /** Texts that were split, into which ids, and lengths that a chain was asked for. */
  split: [],
  encoded: [],
  asked: [],
  /** Thrown by the next call of the method it is named after. */
  failures: {},
};

/** The glue, as the package's tools wrap it. */
export function instantiate() {
  chunk.instances += 1;
  const number = chunk.instances;
  return {
    ...{ start, abandon: () => chunk.abandoned.add(number) },
    Tokenizer: class extends Tokenizer {
      instance = number;
    },
    Folder: class extends Folder {
      instance = number;
    },
  };
}

async function start(module) {
  await chunk.loading;
  chunk.module = module;
  compiling.isQuick = true;
}

/** What lives on an instance, which it enters with every method. */
class Tenant {
  constructor() {
    chunk.made += 1;
  }

  enter(method) {
    assert.ok(!chunk.abandoned.has(this.instance), "it trapped before");
    fail(method);
  }

  free() {
    this.enter("free");
    assert.ok(!this.isFree, "it is freed once");
    this.isFree = true;
    chunk.freed += 1;
  }
}

class Tokenizer extends Tenant {
  constructor(words, names, flags, maxChars) {
    fail("Tokenizer");
    super();
    this.added = [];
    const { added } = this;
    chunk.tokenizers.push({ words, names, flags, maxChars, added });
    this.words = words.split("\n");
    [, this.unknown, this.first, this.last] = names.split("\n");
  }

  add(content, id, flags) {
    this.added.push({ content, id, flags });
  }

  encode(text, limit) {
    this.enter("encode");
    chunk.split.push(text);
    const words = text.split(" ").filter((word) => word !== "");
    const id = (word) => {
      const at = this.words.indexOf(word);
      return at < 0 ? this.words.indexOf(this.unknown) : at;
    };
    const cut = words.slice(0, limit - 2).map(id);
    const ids = [id(this.first), ...cut, id(this.last)];
    chunk.encoded.push(ids);
    return Uint32Array.from(ids);
  }

  /** Whole pairs, whatever the limit, which is kept for tests to look at. */
  encodePair(a, b, limit) {
    this.enter("encodePair");
    chunk.limits.push(limit);
    const first = [...this.encode(a, Infinity)];
    const second = [...this.encode(b, Infinity)].slice(1);
    const types = [...first.map(() => 0), ...second.map(() => 1)];
    return Uint32Array.from([...first, ...second, ...types]);
  }
}

/**
 * Reads a few fields as they stand: what is said of wrong ones is tested where the reader is, by
 * `tests/data/folders.json`.
 */
class Folder extends Tenant {
  files = new Map();

  give(name, content) {
    this.enter("give");
    const text = new TextDecoder().decode(content);
    try {
      this.files.set(name, JSON.parse(text));
    } catch {
      throw wrong(`${name} is no JSON: expected a value at byte 0`);
    }
  }

  lacks(name) {
    this.enter("lacks");
    this.files.set(name, undefined);
  }

  needs(isReranker, dimensions) {
    this.enter("needs");
    this.task = { isReranker, dimensions };
    const wanted = ["config.json", ...(isReranker ? [SETTINGS] : MODULES)];
    const needed = () => wanted.filter((name) => !this.files.has(name));
    if (needed().length > 0) return needed().join("\n");
    const config = this.files.get("config.json");
    if (config === undefined) throw wrong("config.json is missing");
    if (config.model_type === undefined) {
      throw wrong("config.json: model_type must be a string, got nothing");
    }
    const [, pooling] = this.files.get("modules.json") ?? [];
    if (pooling !== undefined) {
      if (!/^[\w-]+([./][\w-]+)*$/.test(pooling.path)) {
        throw wrong("modules.json: [1]: path must name a folder below");
      }
      const name = `${pooling.path}/config.json`;
      wanted.push(name);
      if (this.files.has(name) && this.files.get(name) === undefined) {
        throw wrong(`${name} is missing, which modules.json names`);
      }
    }
    return needed().join("\n");
  }

  encoder() {
    this.enter("encoder");
    chunk.tasks.push(this.task);
    const encoder = new Encoder(this);
    encoder.instance = this.instance;
    return encoder;
  }
}

const wrong = (message) => ({ code: "invalid-input", message });

const SETTINGS = "tokenizer_config.json";
const MODULES = [
  ...["modules.json", "sentence_bert_config.json"],
  ...["config_sentence_transformers.json", SETTINGS],
];

class Encoder extends Tenant {
  constructor({ files, task }) {
    super();
    const config = files.get("config.json");
    const sentence = files.get("sentence_bert_config.json") ?? {};
    const texts = files.get("config_sentence_transformers.json") ?? {};
    this.config = config;
    this.hidden = config.hidden_size;
    this.vocabulary = config.vocab_size;
    this.prompts = Object.entries(texts.prompts ?? {});
    this.usual = texts.prompts?.[texts.default_prompt_name] ?? "";
    this.gives = task.isReranker ? 1 : task.dimensions || this.hidden;
    const positions = config.max_position_embeddings;
    const settings = files.get(SETTINGS) ?? {};
    const own = settings.model_max_length ?? positions;
    const limit = sentence.max_seq_length ?? own;
    this.numbersOf = [
      ...[this.gives, config.num_hidden_layers, config.num_attention_heads],
      ...[this.vocabulary, Math.min(limit, positions), config.type_vocab_size],
      config.model_type === "roberta" ? config.pad_token_id + 1 : 0,
      files.get("1_Pooling/config.json")?.pooling_mode_cls_token ? 1 : 0,
      files.get("modules.json")?.length === 3 ? 1 : 0,
      sentence.do_lower_case ? 1 : 0,
      ...[0, this.hidden], // No table of positions; stages hand on a vector a token.
    ];
  }

  facts() {
    this.enter("facts");
    return Uint32Array.from(this.numbersOf);
  }

  promptName(number) {
    return this.prompts[number]?.[0];
  }

  prompt(number) {
    return this.prompts[number]?.[1] ?? this.usual;
  }

  prefixes() {
    return " bert.";
  }

  weights() {
    this.enter("weights");
    const { hidden, vocabulary } = this;
    const file = "model.safetensors";
    const line = (number, role, part, whole, name) =>
      `${number} ${role} ${part} ${whole} 1 ${name}.weight ${file}`;
    const words = `${vocabulary},${hidden}`;
    const [square, fused] = [`${hidden},${hidden}`, `${3 * hidden},${hidden}`];
    return [
      line(0, 0, words, words, "words"),
      ...["query", "key", "value"].map((part) =>
        line(1, 0, square, fused, `layer.${part}`),
      ),
      `2 1 ${hidden} ${hidden} 1 words.bias ${file}`,
    ].join("\n");
  }

  forward(tokens, isTyped, homes) {
    this.enter("forward");
    chunk.asked.push(tokens);
    if (isTyped) return this.pair(tokens, homes);
    const { hidden, vocabulary } = this;
    return Uint32Array.from([
      ...[8, 1],
      ...input(1, 0, tokens),
      ...input(0, homes[0], vocabulary, hidden),
      ...input(0, homes[1], 3 * hidden, hidden),
      ...input(0, homes[2], hidden),
      1, // a number
      ...[11 | (2 << 8) | (1 << 16), 1, 0, 0], // gather
      ...[6 | (1 << 8) | (3 << 16), 5, 1, 0, 0], // mean
      ...[3 | (2 << 8) | (1 << 16), 6, 3, 0], // add
      7,
    ]);
  }

  /** The mean of all floats of its tokens' rows and of its types' rows. */
  pair(tokens, homes) {
    const { hidden, vocabulary } = this;
    return Uint32Array.from([
      ...[10, 1],
      ...input(1, 0, tokens),
      ...input(1, 0, tokens),
      ...input(0, homes[0], vocabulary, hidden),
      ...input(0, homes[1], 3 * hidden, hidden),
      ...input(0, homes[2], hidden),
      1, // a number
      ...[11 | (2 << 8) | (1 << 16), 2, 0, 0], // gather
      ...[11 | (2 << 8) | (1 << 16), 2, 1, 0],
      ...[3 | (2 << 8) | (1 << 16), 6, 7, 0], // add
      ...[6 | (1 << 8) | (4 << 16), 8, 1, 0, 0, 1], // mean
      9,
    ]);
  }

  numbers() {
    this.enter("numbers");
    return Float32Array.of(0.5);
  }

  /** The passes of texts in stages: rows of words, what leaves them as they are, mean and bias. */
  stage(number) {
    this.enter("stage");
    return Uint32Array.from([[0], [], [1], [2]][number]);
  }

  stageChain(number, tokens, [home]) {
    this.enter("stageChain");
    const { hidden, vocabulary } = this;
    const rows = input(0, 0, tokens, hidden);
    const words = [
      [
        ...[4, 1, ...input(1, 0, tokens)],
        ...[...input(0, home, vocabulary, hidden), 1],
        ...[11 | (2 << 8) | (1 << 16), 1, 0, 0, 3], // gather
      ],
      [2, 1, ...rows, 1, 0],
      [3, 1, ...rows, ...input(0, home, 3 * hidden, hidden), 1, 0],
      [
        ...[5, 1, ...rows, ...input(0, home, hidden), 1],
        ...[6 | (1 << 8) | (3 << 16), 0, 1, 0, 0], // mean
        ...[3 | (2 << 8) | (1 << 16), 3, 1, 0, 4], // add
      ],
    ];
    return Uint32Array.from(words[number]);
  }

  testText(number) {
    this.enter("testText");
    return ["a b", "c"][number];
  }

  testTokens() {
    this.enter("testTokens");
    return 6;
  }

  testIds(number) {
    this.enter("testIds");
    return Uint32Array.of(4, 5 + number);
  }

  checkFidelity(storage, cosine) {
    this.enter("checkFidelity");
    if (cosine >= 0.99) return;
    const message = `as ${storage} the model gives other vectors: ${cosine}`;
    throw { code: "unsupported", message };
  }
}

const input = (dtype, home, ...dims) => [
  (2 + dims.length) << 16,
  ...[dtype, home, ...dims],
];

function fail(method) {
  const failure = chunk.failures[method];
  delete chunk.failures[method];
  if (failure !== undefined) throw failure;
}
