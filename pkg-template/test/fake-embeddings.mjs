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
  /** Awaited by `init`; rejects to make it fail. */
  loading: Promise.resolve(),
  /** What `init` was given. */
  input: undefined,
  /** The arguments of each tokenizer and encoder, and what was added. */
  tokenizers: [],
  encoders: [],
  /** How many of both were freed. */
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
    ...{ init, abandon: () => chunk.abandoned.add(number) },
    Tokenizer: class extends Tokenizer {
      instance = number;
    },
    Encoder: class extends Encoder {
      instance = number;
    },
  };
}

async function init(input) {
  await chunk.loading;
  chunk.input = input;
  compiling.isQuick = true;
}

/** What lives on an instance, which it enters with every method. */
class Tenant {
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
    super();
    fail("Tokenizer");
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
}

class Encoder extends Tenant {
  constructor(sizes, epsilon) {
    super();
    fail("Encoder");
    chunk.encoders.push({ sizes: [...sizes], epsilon });
    [this.hidden, , , , this.vocabulary] = sizes;
  }

  weights() {
    this.enter("weights");
    const { hidden, vocabulary } = this;
    const part = (name) => `1 0 ${hidden},${hidden} layer.${name}.weight`;
    return [
      `0 0 ${vocabulary},${hidden} words.weight`,
      ...["query", "key", "value"].map(part),
      `2 1 ${hidden} words.bias`,
    ].join("\n");
  }

  forward(tokens, homes) {
    this.enter("forward");
    chunk.asked.push(tokens);
    const { hidden, vocabulary } = this;
    const input = (dtype, home, ...dims) => [
      (2 + dims.length) << 16,
      ...[dtype, home, ...dims],
    ];
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

  numbers() {
    this.enter("numbers");
    return Float32Array.of(0.5);
  }
}

function fail(method) {
  const failure = chunk.failures[method];
  delete chunk.failures[method];
  if (failure !== undefined) throw failure;
}
