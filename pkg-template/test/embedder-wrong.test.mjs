// What is said of wrong models and arguments, and that nothing of them stays.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, face, manual, module } from "./face.mjs";
import {
  CONFIG,
  folder,
  json,
  safetensors,
  TENSORS,
  TOKENIZER,
  vector,
} from "./folder.mjs";

await module("embeddings/index");

/** A file whose header is `text`, and `behind` it so many bytes. */
function headed(text, behind = 0) {
  const json = new TextEncoder().encode(text);
  const bytes = new Uint8Array(8 + json.length + behind);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  return bytes;
}

const without = (object, name) => {
  const { [name]: _, ...rest } = object;
  return rest;
};
const config = (change) => ({ "config.json": json({ ...CONFIG, ...change }) });
const weights = (file) => ({ "model.safetensors": file });
const tensors = (change) => weights(safetensors(TENSORS.map(change)));
const whole = safetensors(TENSORS);
const text = (string) => new TextEncoder().encode(string);

/** A file that the page has, and that was changed since. */
const gone = Object.assign(new Blob(["{}"]), {
  stream() {
    const start = (to) => to.error(new Error("it was changed"));
    return new ReadableStream({ start });
  },
});

const WRONG = [
  [{ "config.json": gone }, "config.json could not be read (it was changed)"],
  [
    { "config.json": 5 },
    "config.json must be an ArrayBuffer, a Uint8Array or a Blob, got number",
  ],
  [
    config({ vocab_size: 7 }),
    "the vocabulary has 8 tokens, but vocab_size of config.json is 7",
  ],
  [
    {
      "tokenizer.json": json({
        ...TOKENIZER,
        model: { vocab: { "[CLS]": 0, "[SEP]": 1, a: -1 } },
      }),
    },
    "vocab['a'] must be a whole number below 65539, got -1",
  ],
  [{ "model.safetensors": undefined }, "model.safetensors is missing"],
  [
    weights(new Uint8Array(3)),
    "it ends at byte 3, before its tensors do; it is truncated",
  ],
  [weights(text("<!doctype html><html>")), "this is no safetensors file"],
  [
    weights(headed("{}").slice(0, 9)),
    "its header ends at byte 10, but the file at 9; it is truncated",
  ],
  [weights(headed("nonsense")), "its header is no JSON"],
  [weights(headed("[1]")), "its header must be an object, got Array"],
  [weights(headed('{"a":1}')), "tensor 'a' must be an object, got number"],
  [
    weights(headed('{"a":{"dtype":"F33","shape":[],"data_offsets":[0,4]}}', 4)),
    "dtype is 'F33', which the format does not have",
  ],
  [
    weights(
      headed('{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', 4),
    ),
    "shape must be whole numbers from 0, got [-1]",
  ],
  [
    weights(
      headed('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', 4),
    ),
    "data_offsets are [0,4], but F32 of shape [2] has 8 bytes",
  ],
  [
    weights(
      headed(
        '{"a":{"dtype":"F32","shape":[9007199254740991],"data_offsets":[0,4]}}',
        4,
      ),
    ),
    "has 36028797018963964 bytes",
  ],
  [
    weights(
      headed('{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', 8),
    ),
    "tensor 'a' begins at byte 4 of the data, but the one before ends at 0",
  ],
  [
    weights(
      headed(
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        8,
      ),
    ),
    "tensor 'b' begins at byte 4 of the data, but the one before ends at 8",
  ],
  [
    weights(whole.slice(0, -4)),
    `its tensors end at byte ${whole.length}, but the file at ${whole.length - 4}; it is truncated`,
  ],
  [weights(Uint8Array.from([...whole, 0])), "there is more behind them"],
  [
    weights(safetensors(TENSORS.slice(0, -1))),
    "tensor 'words.weight' is missing, of shape [8, 4]",
  ],
  [
    tensors((tensor, i) =>
      i === 4 ? ["bert.words.bias", "F32", [2, 2], tensor[3]] : tensor,
    ),
    "tensor 'bert.words.bias' has shape [2, 2], but config.json asks for [4]",
  ],
  [
    tensors((tensor, i) =>
      i === 4 ? ["bert.words.bias", "I64", [4], tensor[3]] : tensor,
    ),
    "tensor 'bert.words.bias' holds I64, and only F32, F16 and BF16 are known",
    "unsupported",
  ],
];

test("what is wrong with a folder is said, and nothing of it stays", async () => {
  const { gpu, core } = await manual();
  const { freed, made } = chunk;
  for (const [change, message, code = "invalid-input"] of WRONG) {
    const loading = gpu.embedder(folder(change));
    await assert.rejects(loading, (error) => {
      assert.ok(error.message.startsWith("embedder: "), error.message);
      assert.ok(
        error.message.includes(message),
        `${error.message}\nlacks ${message}`,
      );
      assert.equal(error.code, code, message);
      return true;
    });
    assert.equal(core.tensors.size, 0, message);
  }
  assert.equal(chunk.freed - freed, chunk.made - made);
});

test("a file of a wrong kind is told once, while the session opens too", async () => {
  const unhandled = [];
  const hear = (error) => unhandled.push(error);
  process.on("unhandledRejection", hear);
  const gpu = face.shared({ flush: "manual" });
  const awaited = weights(Promise.resolve(whole)); // The broken file was forgotten.
  await assert.rejects(gpu.embedder(folder(awaited)), {
    code: "invalid-input",
    message: /^embedder: model\.safetensors must be .*, got Promise$/,
  });
  await new Promise((run) => setTimeout(run, 5));
  process.off("unhandledRejection", hear);
  assert.deepEqual(unhandled, []);
  await gpu.dispose();
});

const UNSPLIT = [
  [
    { "tokenizer.json": undefined },
    "tokenizer.json and vocab.txt are missing",
    "invalid-input",
  ],
  [
    { "tokenizer.json": json({ ...TOKENIZER, model: { type: "WordLevel" } }) },
    'tokenizer.json: model {"type":"WordLevel"}',
  ],
  [
    { "tokenizer.json": json({ ...TOKENIZER, normalizer: { type: "Nmt" } }) },
    'tokenizer.json: normalizer {"type":"Nmt"}',
  ],
];

test("a model with another tokenizer, or none, embeds the numbers of its own", async () => {
  for (const [change, message, code = "unsupported"] of UNSPLIT) {
    const { gpu, core } = await manual();
    const { freed, made } = chunk;
    const { length } = chunk.tokenizers;
    const embedder = await gpu.embedder(folder(change));
    const isSaid = (error) => {
      assert.equal(error.code, code, message);
      for (const words of ["embedder: ", message, "to embedIds"]) {
        assert.ok(error.message.includes(words), error.message);
      }
      return true;
    };
    await assert.rejects(embedder.embed("a"), isSaid);
    await assert.rejects(embedder.embedMany(["a", "b"]).then(), isSaid);
    const vectors = embedder.embedMany(["a"])[Symbol.asyncIterator]();
    await assert.rejects(vectors.next(), isSaid);
    const answer = embedder.embedIds([2, 4, 3]);
    gpu.flush();
    core.answer();
    assert.deepEqual(await answer, vector(2, 4, 3));
    assert.equal(chunk.tokenizers.length, length);
    embedder.dispose();
    assert.equal(chunk.freed - freed, chunk.made - made);
    assert.equal(core.tensors.size, 0);
  }
});

test("RoBERTa's padding is no part of a text", async () => {
  const { gpu, core } = await manual();
  const change = config({ model_type: "roberta", pad_token_id: 7 });
  const embedder = await gpu.embedder(folder(change));
  // What d is, in this vocabulary.
  const cases = [
    [embedder.embed("a d"), "embed"],
    [embedder.embedIds([2, 7, 3]), "embedIds"],
  ];
  for (const [call, about] of cases) {
    await assert.rejects(call, {
      code: "invalid-input",
      message: `${about}: 7 is the model's padding, which is no part of a text; leave it out`,
    });
  }
  const answer = embedder.embed("a c");
  gpu.flush();
  core.answer();
  assert.deepEqual(await answer, vector(2, 4, 6, 3));
});

test("wrong arguments are refused in a sentence", async () => {
  const { gpu } = await manual();
  const cases = [
    [
      [undefined],
      "give the address of a model's folder, or its files by name, got undefined",
    ],
    [["http://["], "'http://[' is no address of a folder"],
    [[{}, null], "options must be an object, got null"],
    [[{}, { type: 1 }], "there is no option 'type'"],
    [
      [{}, { dtype: "f64" }],
      "dtype must be 'f32', 'f16', 'bf16', 'int8', 'int4' or 'auto', got 'f64'",
    ],
    [
      [{}, { dimensions: 1.5 }],
      "dimensions must be a whole number from 1 and below the model's own, got 1.5",
    ],
    [[{}, { signal: 1 }], "signal must be an AbortSignal, got number"],
    [[{}, { onProgress: 1 }], "onProgress must be a function, got number"],
    [[{}, { cache: 1 }], "cache must be true or false, got number"],
    [[{}, { keep: "" }], "keep must be true or false, got string"],
  ];
  for (const [args, message] of cases) {
    await assert.rejects(gpu.embedder(...args), {
      code: "invalid-input",
      message: new RegExp(RegExp.escape?.(message) ?? escaped(message)),
    });
  }
});

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
