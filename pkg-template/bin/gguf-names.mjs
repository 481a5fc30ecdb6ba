// The names of tensors in GGUF files, and those of the same tensors in Hugging Face's folders.
//
// A model's `model_type` is a row of a table. The first column has llama.cpp's names
// (https://github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py), `N` being a layer's number;
// what its converter does to numbers (conversion/*.py there) is a field of the row. Nothing is
// read or computed here.

const BERT = {
  token_embd: "embeddings.word_embeddings",
  position_embd: "embeddings.position_embeddings",
  token_types: "embeddings.token_type_embeddings",
  token_embd_norm: "embeddings.LayerNorm",
  "blk.N.attn_q": "encoder.layer.N.attention.self.query",
  "blk.N.attn_k": "encoder.layer.N.attention.self.key",
  "blk.N.attn_v": "encoder.layer.N.attention.self.value",
  "blk.N.attn_output": "encoder.layer.N.attention.output.dense",
  "blk.N.attn_output_norm": "encoder.layer.N.attention.output.LayerNorm",
  "blk.N.ffn_up": "encoder.layer.N.intermediate.dense",
  "blk.N.ffn_down": "encoder.layer.N.output.dense",
  "blk.N.layer_output_norm": "encoder.layer.N.output.LayerNorm",
  "cls.output": "classifier",
};

const ROBERTA = {
  ...BERT,
  cls: "classifier.dense",
  "cls.output": "classifier.out_proj",
};

const DISTILBERT = {
  token_embd: "embeddings.word_embeddings",
  position_embd: "embeddings.position_embeddings",
  token_embd_norm: "embeddings.LayerNorm",
  "blk.N.attn_q": "transformer.layer.N.attention.q_lin",
  "blk.N.attn_k": "transformer.layer.N.attention.k_lin",
  "blk.N.attn_v": "transformer.layer.N.attention.v_lin",
  "blk.N.attn_output": "transformer.layer.N.attention.out_lin",
  "blk.N.attn_output_norm": "transformer.layer.N.sa_layer_norm",
  "blk.N.ffn_up": "transformer.layer.N.ffn.lin1",
  "blk.N.ffn_down": "transformer.layer.N.ffn.lin2",
  "blk.N.layer_output_norm": "transformer.layer.N.output_layer_norm",
};

const NOMIC = {
  token_embd: "embeddings.word_embeddings",
  token_types: "embeddings.token_type_embeddings",
  token_embd_norm: "emb_ln",
  "blk.N.attn_qkv": "encoder.layers.N.attn.Wqkv",
  "blk.N.attn_output": "encoder.layers.N.attn.out_proj",
  "blk.N.attn_output_norm": "encoder.layers.N.norm1",
  "blk.N.ffn_up": "encoder.layers.N.mlp.fc11",
  "blk.N.ffn_gate": "encoder.layers.N.mlp.fc12",
  "blk.N.ffn_down": "encoder.layers.N.mlp.fc2",
  "blk.N.layer_output_norm": "encoder.layers.N.norm2",
};

const JINA_V3 = {
  token_embd: "embeddings.word_embeddings",
  token_types: "embeddings.token_type_embeddings",
  token_embd_norm: "emb_ln",
  "blk.N.attn_qkv": "encoder.layers.N.mixer.Wqkv",
  "blk.N.attn_output": "encoder.layers.N.mixer.out_proj",
  "blk.N.attn_output_norm": "encoder.layers.N.norm1",
  "blk.N.ffn_up": "encoder.layers.N.mlp.fc1",
  "blk.N.ffn_down": "encoder.layers.N.mlp.fc2",
  "blk.N.layer_output_norm": "encoder.layers.N.norm2",
};

const MODERNBERT = {
  token_embd: "embeddings.tok_embeddings",
  token_embd_norm: "embeddings.norm",
  "blk.N.attn_norm": "layers.N.attn_norm",
  "blk.N.attn_qkv": "layers.N.attn.Wqkv",
  "blk.N.attn_output": "layers.N.attn.Wo",
  "blk.N.ffn_norm": "layers.N.mlp_norm",
  "blk.N.ffn_up": "layers.N.mlp.Wi",
  "blk.N.ffn_down": "layers.N.mlp.Wo",
  output_norm: "final_norm",
  cls: "head.dense",
  "cls.norm": "head.norm",
  "cls.output": "classifier",
};

const QWEN3 = {
  token_embd: "embed_tokens",
  "blk.N.attn_norm": "layers.N.input_layernorm",
  "blk.N.attn_q": "layers.N.self_attn.q_proj",
  "blk.N.attn_k": "layers.N.self_attn.k_proj",
  "blk.N.attn_v": "layers.N.self_attn.v_proj",
  "blk.N.attn_q_norm": "layers.N.self_attn.q_norm",
  "blk.N.attn_k_norm": "layers.N.self_attn.k_norm",
  "blk.N.attn_output": "layers.N.self_attn.o_proj",
  "blk.N.ffn_norm": "layers.N.post_attention_layernorm",
  "blk.N.ffn_gate": "layers.N.mlp.gate_proj",
  "blk.N.ffn_up": "layers.N.mlp.up_proj",
  "blk.N.ffn_down": "layers.N.mlp.down_proj",
  output_norm: "norm",
};

const GEMMA3 = {
  ...QWEN3,
  "blk.N.post_attention_norm": "layers.N.post_attention_layernorm",
  "blk.N.ffn_norm": "layers.N.pre_feedforward_layernorm",
  "blk.N.post_ffw_norm": "layers.N.post_feedforward_layernorm",
};

/**
 * What GGUF files have of a model, by its `model_type`:
 * - `architectures`, the names that llama.cpp has for it;
 * - `padding`, where rows of positions up to that of the padding's id are cut off: the id, unless
 *   config.json says another;
 * - `normsAdd`, what the weights of norms have in addition to those of the folder.
 */
const MODELS = {
  bert: { architectures: ["bert"], names: BERT },
  roberta: { architectures: ["bert"], names: ROBERTA, padding: 1 },
  "xlm-roberta": { architectures: ["bert"], names: ROBERTA, padding: 1 },
  distilbert: { architectures: ["bert"], names: DISTILBERT },
  nomic_bert: { architectures: ["nomic-bert"], names: NOMIC },
  jina_embeddings_v3: { architectures: ["jina-bert-v3"], names: JINA_V3 },
  modernbert: { architectures: ["modern-bert"], names: MODERNBERT },
  qwen3: { architectures: ["qwen3"], names: QWEN3 },
  gemma3_text: {
    ...{ architectures: ["gemma-embedding", "gemma3"], names: GEMMA3 },
    normsAdd: 1,
  },
};

/**
 * Tensors that embeddings do without: the words that a model would say next, tables that loading
 * computes, and layers behind the pooling, which the folder has in files of their own.
 */
const UNUSED = /^(output|rope_freqs|dense_[23])\.(weight|bias)$/;

/** The row of a configuration's model. */
export function modelOf(config) {
  if (Object.hasOwn(MODELS, config.model_type))
    return MODELS[config.model_type];
  const known = Object.keys(MODELS).join(", ");
  throw new Error(
    `config.json: model_type is '${config.model_type}'; of GGUF only ${known} are known`,
  );
}

/**
 * What a tensor of a file is in the folder: its name, its part (a matrix, a norm or a bias), and
 * whether it is the table of positions. `undefined` for one that is not used.
 */
export function placeOf(model, name) {
  if (UNUSED.test(name)) return undefined;
  const [, of, end] = /^(.*)\.(weight|bias)$/s.exec(name) ?? [];
  const [, number, ofLayer] = /^blk\.(\d{1,4})\.(.*)$/s.exec(of) ?? [];
  const row = number === undefined ? of : `blk.N.${ofLayer}`;
  const isKnown = Object.hasOwn(model.names, row);
  if (!isKnown || row.startsWith("blk.") !== (number !== undefined)) {
    throw new Error(
      `tensor '${name}' is none that a folder of this model_type has`,
    );
  }
  const isNorm = row.endsWith("norm");
  return {
    name: `${model.names[row].replace(".N.", `.${number}.`)}.${end}`,
    part: end === "bias" ? "bias" : isNorm ? "norm" : "matrix",
    isPositions: row === "position_embd",
  };
}
