//! The names of the tensors of each family, as a table.

use super::config::Family;

/// The names of a family's tensors. Those of a layer have the layer's number in front.
pub(super) struct Names {
    pub(super) prefixes: &'static [&'static str],
    pub(super) words: &'static str,
    pub(super) embedded_norm: &'static str,
    pub(super) layers: &'static str,
    /// Queries, keys and values, if they are not one tensor.
    pub(super) projections: &'static [&'static str],
    /// The norms of queries and keys, where there are any.
    pub(super) of_heads: [&'static str; 2],
    pub(super) attended: &'static str,
    pub(super) attended_norm: &'static str,
    /// The halves of a gated network, if they are not one tensor.
    pub(super) inner: &'static [&'static str],
    pub(super) outer: &'static str,
    pub(super) outer_norm: &'static str,
    /// The second norms of attention and network, where norms are around these.
    pub(super) behind: [&'static str; 2],
    /// The norm behind the last layer, where norms are not behind each.
    pub(super) last_norm: &'static str,
}

const BERT: Names = Names {
    prefixes: &["", "bert.", "roberta."],
    words: "embeddings.word_embeddings",
    embedded_norm: "embeddings.LayerNorm",
    layers: "encoder.layer.",
    projections: &[
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
    ],
    of_heads: ["", ""],
    attended: "attention.output.dense",
    attended_norm: "attention.output.LayerNorm",
    inner: &["intermediate.dense"],
    outer: "output.dense",
    outer_norm: "output.LayerNorm",
    behind: ["", ""],
    last_norm: "final_norm",
};

const DISTILBERT: Names = Names {
    prefixes: &["", "distilbert."],
    layers: "transformer.layer.",
    projections: &["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    attended: "attention.out_lin",
    attended_norm: "sa_layer_norm",
    inner: &["ffn.lin1"],
    outer: "ffn.lin2",
    outer_norm: "output_layer_norm",
    ..BERT
};

const MPNET: Names = Names {
    prefixes: &["", "mpnet."],
    projections: &["attention.attn.q", "attention.attn.k", "attention.attn.v"],
    attended: "attention.attn.o",
    attended_norm: "attention.LayerNorm",
    ..BERT
};

const MODERNBERT: Names = Names {
    prefixes: &["", "model."],
    words: "embeddings.tok_embeddings",
    embedded_norm: "embeddings.norm",
    layers: "layers.",
    projections: &["attn.Wqkv"],
    attended: "attn.Wo",
    attended_norm: "attn_norm",
    inner: &["mlp.Wi"],
    outer: "mlp.Wo",
    outer_norm: "mlp_norm",
    ..BERT
};

const NOMIC: Names = Names {
    prefixes: &["", "nomic_bert.", "bert."],
    embedded_norm: "emb_ln",
    layers: "encoder.layers.",
    projections: &["attn.Wqkv"],
    attended: "attn.out_proj",
    attended_norm: "norm1",
    inner: &["mlp.fc11", "mlp.fc12"],
    outer: "mlp.fc2",
    outer_norm: "norm2",
    ..BERT
};

const GTE: Names = Names {
    prefixes: &["", "new.", "gte."],
    projections: &["attention.qkv_proj"],
    attended: "attention.o_proj",
    attended_norm: "attn_ln",
    inner: &["mlp.up_gate_proj"],
    outer: "mlp.down_proj",
    outer_norm: "mlp_ln",
    ..BERT
};

const JINA_V2: Names = Names {
    prefixes: &["", "bert."],
    inner: &["mlp.gated_layers"],
    outer: "mlp.wo",
    outer_norm: "mlp.layernorm",
    ..BERT
};

const JINA_V3: Names = Names {
    prefixes: &["", "roberta."],
    embedded_norm: "emb_ln",
    layers: "encoder.layers.",
    projections: &["mixer.Wqkv"],
    attended: "mixer.out_proj",
    attended_norm: "norm1",
    inner: &["mlp.fc1"],
    outer: "mlp.fc2",
    outer_norm: "norm2",
    ..BERT
};

const QWEN3: Names = Names {
    prefixes: &["", "model."],
    words: "embed_tokens",
    layers: "layers.",
    projections: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    of_heads: ["self_attn.q_norm", "self_attn.k_norm"],
    attended: "self_attn.o_proj",
    attended_norm: "input_layernorm",
    inner: &["mlp.gate_proj", "mlp.up_proj"],
    outer: "mlp.down_proj",
    outer_norm: "post_attention_layernorm",
    last_norm: "norm",
    ..BERT
};

const GEMMA3: Names = Names {
    outer_norm: "pre_feedforward_layernorm",
    behind: ["post_attention_layernorm", "post_feedforward_layernorm"],
    ..QWEN3
};

/// The second version has all of it below what images and sounds are for.
const EMBEDDING_GEMMA2: Names = Names {
    prefixes: &["", "language_model.", "model.language_model.", "model."],
    ..GEMMA3
};

impl Family {
    /// The names of the family's tensors.
    pub(super) fn names(self) -> &'static Names {
        match self {
            Family::Bert | Family::Roberta => &BERT,
            Family::DistilBert => &DISTILBERT,
            Family::Mpnet => &MPNET,
            Family::ModernBert => &MODERNBERT,
            Family::NomicBert => &NOMIC,
            Family::Gte => &GTE,
            Family::JinaV2 => &JINA_V2,
            Family::JinaV3 => &JINA_V3,
            Family::Qwen3 => &QWEN3,
            Family::Gemma3 => &GEMMA3,
            Family::EmbeddingGemma2 => &EMBEDDING_GEMMA2,
        }
    }
}
