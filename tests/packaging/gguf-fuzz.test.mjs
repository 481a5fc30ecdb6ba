// GGUF files as strangers might write them: each is read to its end, or refused by name, in bounded
// time and within a few times its own bytes.
//
// FUZZ_SECONDS is how long it goes on, FUZZ_SEED where it begins. A finding is kept in target/fuzz.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Mutator } from "../../pkg-template/test/mutation.mjs";
import { ggufFileOf } from "../../pkg/bin/gguf-file.mjs";
import { modelOf } from "../../pkg/bin/gguf-names.mjs";
import { weightsOf } from "../../pkg/bin/gguf.mjs";
import {
  ARRAY,
  STRING,
  U16,
  U32,
  U8,
  architecture,
  encoded,
  entry,
  ggufFile,
  text,
  u32,
  u64,
} from "./gguf-writer.mjs";

const SECONDS = process.env.FUZZ_SECONDS;
const SEED = Number(process.env.FUZZ_SEED ?? 20_261_128);
/** Inputs, unless there is a time to fill. */
const FEW = 3000;
/** Milliseconds of CPU time that an input may take. */
const SLOW = 5000;
/** Inputs that mutation begins with, and bytes of each of them, at most. */
const MOST_KEPT = 256;
const MOST_BYTES = 8192;
/** Bytes of 32-bit floats for each byte of the smallest blocks, rounded up. */
const WIDENED = 8;

const PATH = "model.gguf";
const CONFIG = {
  model_type: "bert",
  max_position_embeddings: 8,
  pad_token_id: 0,
};
const MODEL = modelOf(CONFIG);

const ramp = (count) => Array.from({ length: count }, (_, i) => Math.sin(i));
const tensor = (name, shape, format) => {
  const { type, bytes } = encoded(format, ramp(shape[0] * (shape[1] ?? 1)));
  return { name, shape, type, bytes };
};
const bert = architecture("bert");

/** Files that are right: formats of all kinds, and metadata that is read and that is skipped. */
const FILES = [
  ...["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"].map((format) => ({
    metadata: [bert],
    tensors: [tensor("token_embd.weight", [2, 256], format)],
  })),
  {
    metadata: [
      bert,
      entry("general.alignment", U32, u32(64)),
      entry("split.count", U16, Buffer.from([1, 0])),
      entry("words", ARRAY, Buffer.concat([u32(STRING), u64(1), text("a")])),
      entry("flags", ARRAY, Buffer.concat([u32(U8), u64(2), Buffer.alloc(2)])),
    ],
    tensors: [
      tensor("position_embd.weight", [7, 32], "Q8_0"),
      tensor("blk.0.attn_q.weight", [32, 32], "F16"),
      tensor("blk.0.attn_q.bias", [32], "F32"),
    ],
    alignment: 64,
  },
].map((file) => new Uint8Array(ggufFile(file)));

/** Reads all that is in a file; what its reader says. */
function judge(input) {
  const bytes = Buffer.from(input);
  let asked = 0;
  const bytesAt = (from, length) => {
    assert.ok(from >= 0 && from + length <= bytes.length, "behind the end");
    asked += length;
    return Buffer.from(bytes.subarray(from, from + length));
  };
  let file;
  try {
    file = ggufFileOf(PATH, bytes.length, bytesAt);
  } catch (error) {
    return refusal(error, error);
  }
  let tensors;
  try {
    ({ tensors } = weightsOf(file, MODEL, CONFIG));
  } catch (error) {
    return refusal(error, error.cause);
  }
  assert.ok(asked <= 2 * bytes.length, `${asked} bytes of the head`);
  const all = tensors.reduce((sum, { bytes }) => sum + bytes, 0);
  const most = WIDENED * bytes.length + 4 * CONFIG.max_position_embeddings * 32;
  assert.ok(all <= most, `${all} bytes of tensors`);
  for (const { name, bytes, read, int8 } of tensors) {
    assert.equal(read().length, bytes, name);
    try {
      int8?.();
    } catch (error) {
      // Whoever converts says which tensor it is of.
      assert.match(error.message, /^int8 holds magnitudes/);
      return error.message;
    }
  }
  return `taken: ${tensors.map(({ dtype }) => dtype)}`;
}

/** What the reader says of a file; an error by accident is a finding. */
function refusal(error, own) {
  assert.equal(own?.constructor, Error, own?.stack ?? error.stack);
  assert.ok(error.message.startsWith(`${PATH}: `), error.message);
  return error.message;
}

const classOf = (said) =>
  said.replace(/'.*'|UTF-8.*/s, "").replace(/\d+/g, "0");

test("mutated GGUF files are read to their end, or refused by name", () => {
  const mutator = new Mutator(SEED);
  const inputs = [...FILES];
  for (const input of inputs) assert.match(judge(input), /^taken/);
  const heard = new Set();
  const until = Date.now() + Number(SECONDS) * 1000;
  let tried = 0;
  for (; SECONDS === undefined ? tried < FEW : Date.now() < until; tried++) {
    const input = mutator.mutate(mutator.pick(["words", "text"]), inputs);
    const start = process.cpuUsage();
    let said;
    try {
      said = judge(input);
      const { user } = process.cpuUsage(start);
      assert.ok(user / 1000 < SLOW, `it took ${user / 1000} ms`);
    } catch (error) {
      mkdirSync("target/fuzz", { recursive: true });
      writeFileSync("target/fuzz/finding-gguf", input);
      error.message = `target/fuzz/finding-gguf: ${error.message}`;
      throw error;
    }
    const { size } = heard;
    heard.add(classOf(said));
    const isNew = heard.size > size && input.length <= MOST_BYTES;
    if (isNew && inputs.length < MOST_KEPT) inputs.push(input);
  }
  assert.ok(heard.size > 10, `${heard.size} answers`);
  console.log(`fuzzed gguf: ${tried} inputs, ${heard.size} answers`);
});
