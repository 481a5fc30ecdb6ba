// Writes `tests/data/models/reranker-qwen3-logits` of `reranker-qwen3` beside it: a decoder that
// answers with one of two words, in place of a head.
//
//   node tests/embed/make_logits.mjs
//
// No text of the oracle has the two words. Their rows of the table differ by the weight of the head,
// so that the difference of their logits is what the head gives, and transformers' scores of that
// model are those of this one.

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

const MODELS = "tests/data/models";
const [FROM, TO] = ["reranker-qwen3", "reranker-qwen3-logits"];
const [NO, YES] = [100, 101];
const HEAD = "score.weight";

const json = (value) => `${JSON.stringify(value, null, 2)}\n`;
const write = (name, content) =>
  writeFileSync(`${MODELS}/${TO}/${name}`, content);

mkdirSync(`${MODELS}/${TO}/1_LogitScore`, { recursive: true });
for (const name of ["oracle.json", "tokenizer_config.json", "vocab.txt"]) {
  copyFileSync(`${MODELS}/${FROM}/${name}`, `${MODELS}/${TO}/${name}`);
}
const {
  id2label: _,
  label2id: __,
  ...config
} = JSON.parse(readFileSync(`${MODELS}/${FROM}/config.json`, "utf8"));
write(
  "config.json",
  json({
    ...config,
    architectures: ["Qwen3ForCausalLM"],
    tie_word_embeddings: true,
  }),
);
const types = "sentence_transformers.cross_encoder.modules";
write(
  "modules.json",
  json([
    { idx: 0, name: "0", path: "", type: `${types}.Transformer` },
    { idx: 1, name: "1", path: "1_LogitScore", type: `${types}.LogitScore` },
  ]),
);
write(
  "1_LogitScore/config.json",
  json({ true_token_id: YES, false_token_id: NO }),
);

const bytes = readFileSync(`${MODELS}/${FROM}/model.safetensors`);
const start = 8 + Number(bytes.readBigUInt64LE(0));
const { [HEAD]: head, ...header } = JSON.parse(bytes.subarray(8, start));
const data = Buffer.from(bytes.subarray(start, start + head.data_offsets[0]));
if (start + head.data_offsets[1] !== bytes.length) {
  throw new Error("the head is not the last tensor");
}
const { shape, data_offsets } = header["model.embed_tokens.weight"];
const [table] = data_offsets;
for (let i = 0; i < shape[1]; i += 1) {
  const weight = bytes.readFloatLE(start + head.data_offsets[0] + 4 * i);
  const at = (row) => table + 4 * (row * shape[1] + i);
  data.writeFloatLE(weight / 2, at(YES));
  data.writeFloatLE(-weight / 2, at(NO));
}
let text = JSON.stringify(header);
text = text.padEnd(Math.ceil(text.length / 8) * 8);
const length = Buffer.alloc(8);
length.writeBigUInt64LE(BigInt(text.length));
write("model.safetensors", Buffer.concat([length, Buffer.from(text), data]));
