// Folders of models for the tests: small, and as wrong as a test wants them.

/** A safetensors file of `[name, dtype, shape, elements]`; `change` its header. */
export function safetensors(tensors, change = (header) => header) {
  const header = { __metadata__: { format: "pt" } };
  const parts = [];
  let end = 0;
  for (const [name, dtype, shape, elements] of tensors) {
    const bytes = bytesOf(dtype, elements);
    const begin = end;
    end += bytes.length;
    header[name] = { dtype, shape, data_offsets: [begin, end] };
    parts.push(bytes);
  }
  const json = new TextEncoder().encode(JSON.stringify(change(header)));
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(json.length), true);
  return joined([length, json, ...parts]);
}

export function joined(parts) {
  const bytes = new Uint8Array(
    parts.reduce((length, part) => length + part.length, 0),
  );
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function bytesOf(dtype, elements) {
  const Kinds = { F32: Float32Array, F16: Uint16Array, BF16: Uint16Array };
  const Kind = Kinds[dtype] ?? BigInt64Array;
  const array = Kind === BigInt64Array ? elements.map(BigInt) : elements;
  return new Uint8Array(Kind.from(array).buffer);
}

export const json = (value) => new TextEncoder().encode(JSON.stringify(value));

/** The words of the small model; its texts are made of letters. */
export const WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d"];

export const CONFIG = {
  model_type: "bert",
  hidden_size: 4,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  intermediate_size: 8,
  vocab_size: 8,
  max_position_embeddings: 16,
  type_vocab_size: 2,
  layer_norm_eps: 1e-12,
  hidden_act: "gelu",
};

export const TOKENIZER = {
  normalizer: { type: "BertNormalizer", lowercase: true },
  pre_tokenizer: { type: "BertPreTokenizer" },
  post_processor: {
    type: "TemplateProcessing",
    single: [
      { SpecialToken: { id: "[CLS]", type_id: 0 } },
      { Sequence: { id: "A", type_id: 0 } },
      { SpecialToken: { id: "[SEP]", type_id: 0 } },
    ],
  },
  model: {
    type: "WordPiece",
    unk_token: "[UNK]",
    vocab: Object.fromEntries(WORDS.map((word, id) => [word, id])),
  },
};

/** Word `w` has the row w, w + 1/4, w + 1/2, w + 3/4, and the bias is 100. */
export const TABLE = Array.from({ length: 32 }, (_, i) => i / 4);
const square = (from) => Array.from({ length: 16 }, (_, i) => from + i);

/** The tensors of the model, some in another order than they are needed in. */
export const TENSORS = [
  ["bert.ids", "I64", [1, 4], [0, 1, 2, 3]],
  ["bert.layer.key.weight", "F32", [4, 4], square(1000)],
  ["bert.layer.query.weight", "F32", [4, 4], square(2000)],
  ["bert.layer.value.weight", "F32", [4, 4], square(3000)],
  ["bert.words.bias", "F32", [4], [100, 100, 100, 100]],
  ["bert.words.weight", "F32", [8, 4], TABLE],
];

/** The files of the model; `change` them. */
export function folder(change = {}) {
  const files = {
    "config.json": json(CONFIG),
    "tokenizer.json": json(TOKENIZER),
    "modules.json": json([
      { type: "sentence_transformers.models.Transformer", path: "" },
      { type: "sentence_transformers.models.Pooling", path: "1_Pooling" },
      { type: "sentence_transformers.models.Normalize", path: "2_Normalize" },
    ]),
    "1_Pooling/config.json": json({
      word_embedding_dimension: 4,
      pooling_mode_mean_tokens: true,
      pooling_mode_cls_token: false,
    }),
    "sentence_bert_config.json": json({ max_seq_length: 6 }),
    "model.safetensors": safetensors(TENSORS),
    ...change,
  };
  for (const name of Object.keys(files)) {
    if (files[name] === undefined) delete files[name];
  }
  return files;
}

/** What the fake gives for the tokens of a text, ends included. */
export function vector(...ids) {
  return Float32Array.from({ length: 4 }, (_, i) => {
    const sum = ids.reduce((total, id) => total + id + i / 4, 0);
    return sum / ids.length + 100;
  });
}
