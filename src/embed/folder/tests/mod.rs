use super::*;
use crate::embed::{
    Activation, Bias, Config, DistanceBias, Family, HeadNorms, Heads, Pooling, Sight,
};

mod second_gemma;
mod settings;
mod turns;

const BERT: &str = r#"{"model_type": "bert", "hidden_size": 64, "num_attention_heads": 2,
    "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 128,
    "max_position_embeddings": 48, "id2label": {"0": "LABEL_0"}}"#;

const EMBED: Task = Task::Embed { dimensions: None };

/// Describes a folder of these files; also which files were asked for, in which order.
fn read(task: Task, files: &[(&str, &str)]) -> (Vec<Vec<String>>, Result<Description, Error>) {
    let mut folder = Folder::default();
    let mut asked = Vec::new();
    loop {
        match folder.describe(task) {
            Ok(Progress::Described(description)) => return (asked, Ok(*description)),
            Err(error) => return (asked, Err(error)),
            Ok(Progress::Needs(names)) => {
                for name in &names {
                    let file = files.iter().find(|(known, _)| known == name);
                    let content = file.map(|(_, content)| content.as_bytes());
                    folder.give(name, content).unwrap();
                }
                asked.push(names);
            }
        }
    }
}

#[test]
fn files_are_asked_for_as_they_are_needed() {
    let (asked, description) = read(EMBED, &[("config.json", BERT)]);
    assert_eq!(asked, [[CONFIG, MODULES, SENTENCE, PROMPTS, TOKENIZER]]);
    let config = description.unwrap().config;
    assert_eq!((config.max_tokens, config.pooling), (48, Pooling::Mean));
    let modules = r#"[{"type": "Transformer"}, {"type": "Pooling", "path": "a"},
        {"type": "Dense", "path": "b.c/d"}, {"type": "Normalize", "path": "e"}]"#;
    let files = [
        ("config.json", BERT),
        ("modules.json", modules),
        ("sentence_bert_config.json", r#"{"max_seq_length": 20}"#),
        ("a/config.json", "{}"),
        (
            "b.c/d/config.json",
            r#"{"in_features": 64, "out_features": 8, "bias": false}"#,
        ),
    ];
    let (asked, description) = read(EMBED, &files);
    assert_eq!(
        asked,
        [
            vec![CONFIG, MODULES, SENTENCE, PROMPTS, TOKENIZER],
            vec!["a/config.json", "b.c/d/config.json"]
        ]
    );
    let config = description.unwrap().config;
    assert_eq!((config.max_tokens, config.dimensions()), (20, 8));
    assert!(config.normalize && config.dense[0].bias == Bias::Absent);
    assert_eq!(config.dense[0].source.file(), "b.c/d/model.safetensors");
    assert_eq!(config.dense[0].activation, Activation::Tanh);
}

#[test]
fn fields_have_the_names_of_their_architecture() {
    let distilbert = r#"{"model_type": "distilbert", "dim": 48, "n_heads": 4, "n_layers": 3,
        "hidden_dim": 80, "activation": "relu", "vocab_size": 100,
        "max_position_embeddings": 64, "layer_norm_eps": 1}"#;
    let config = read(EMBED, &[("config.json", distilbert)])
        .1
        .unwrap()
        .config;
    assert_eq!(config.family, Family::DistilBert);
    assert_eq!(
        (config.hidden, config.heads.count, config.layers),
        (48, 4, 3)
    );
    assert_eq!((config.intermediate, config.types), (80, 0));
    assert_eq!(config.activation, Activation::Relu);
    assert_eq!(config.epsilon, 1e-12); // Whatever the file says.
    let mpnet = BERT.replace("\"bert\"", "\"mpnet\"");
    let config = read(EMBED, &[("config.json", &mpnet)]).1.unwrap().config;
    assert_eq!(config.distance_bias, Some(DistanceBias::Learned));
    assert_eq!((config.first_position, config.max_tokens), (2, 46));
    let other = mpnet.replace(
        "\"id2label\"",
        "\"relative_attention_num_buckets\": 16, \"id2label\"",
    );
    let error = read(EMBED, &[("config.json", &other)]).1.unwrap_err();
    let expected = "config.json: relative_attention_num_buckets is 16, and only 32 is known";
    assert_eq!(error.to_string(), expected);
}

const MODERN: &str = r#"{"model_type": "modernbert", "hidden_size": 64, "num_attention_heads": 2,
    "num_hidden_layers": 4, "intermediate_size": 96, "vocab_size": 128,
    "max_position_embeddings": 48, "x": 0}"#;

const NOMIC: &str = r#"{"model_type": "nomic_bert", "n_embd": 64, "n_head": 2, "n_layer": 3,
    "n_inner": 96, "vocab_size": 128, "n_positions": 48, "activation_function": "swiglu",
    "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
    "prenorm": false, "qkv_proj_bias": false, "x": 0}"#;

const GTE: &str = r#"{"model_type": "new", "hidden_size": 64, "num_attention_heads": 2,
    "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 128, "type_vocab_size": 1,
    "max_position_embeddings": 48, "position_embedding_type": "rope", "rope_theta": 20000, "x": 0}"#;

const JINA: &str = r#"{"model_type": "bert", "hidden_size": 64, "num_attention_heads": 2,
    "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 128, "type_vocab_size": 2,
    "max_position_embeddings": 48, "position_embedding_type": "alibi",
    "feed_forward_type": "geglu", "x": 0}"#;

const QWEN: &str = r#"{"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 4,
    "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 128, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 48, "use_sliding_window": false, "sliding_window": null,
    "max_window_layers": 28, "rope_scaling": null, "rope_theta": 1000000, "x": 0}"#;

const GEMMA: &str = r#"{"model_type": "gemma3_text", "hidden_size": 64, "num_attention_heads": 4,
    "num_hidden_layers": 4, "intermediate_size": 96, "vocab_size": 128, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 48, "attn_logit_softcapping": null, "x": 0}"#;

/// What a configuration says of turns; its field `x` is replaced.
fn turned(config: &str, x: &str) -> Result<Config, Error> {
    let config = config.replace("\"x\": 0", x);
    let (_, description) = read(EMBED, &[("config.json", &config)]);
    description.map(|description| description.config)
}

#[test]
fn decoders_share_heads_of_keys() {
    for (json, x, expected) in [
        (QWEN, "\"x\": 0", (4, 128, 1.0 / 128_f64.sqrt(), true)),
        (
            QWEN,
            "\"num_key_value_heads\": 2, \"head_dim\": 16",
            (2, 16, 0.25, true),
        ),
        (GEMMA, "\"x\": 0", (4, 256, 1.0 / 16.0, true)),
        (
            GEMMA,
            r#""num_key_value_heads": 1, "query_pre_attn_scalar": 64,
                "use_bidirectional_attention": true"#,
            (1, 256, 1.0 / 8.0, false),
        ),
    ] {
        let Config {
            heads,
            score_scale,
            activation,
            ..
        } = turned(json, x).unwrap();
        // What transformers takes where nothing is said.
        let usual = match json == QWEN {
            true => Activation::Silu,
            false => Activation::GeluTanh,
        };
        assert_eq!(activation, usual);
        let (of_keys, size, scale, is_causal) = expected;
        assert_eq!((heads.count, heads.of_keys), (4, of_keys), "{x}");
        assert_eq!((heads.size, heads.is_causal), (size, is_causal), "{x}");
        let found = f64::from(score_scale.unwrap());
        assert!((found - scale).abs() < 1e-8, "{x}: {found}");
        assert_eq!(heads.norms, HeadNorms::QueriesAndKeys);
    }
}

#[test]
fn biases_may_fall_with_the_distance() {
    let config = turned(JINA, "\"auto_map\": {\"AutoModel\": \"jinaai/x--y.Z\"}").unwrap();
    assert_eq!(config.family, Family::JinaV2);
    assert_eq!(config.distance_bias, Some(DistanceBias::Linear));
    assert!(!config.has_position_table && config.rotation.is_none());
}

#[test]
fn windows_of_decoders_end_at_a_token() {
    let two_ways = r#""use_bidirectional_attention": true, "sliding_window_pattern": 2,
        "sliding_window": 9, "rope_theta": 7000"#;
    let scaled = r#""_sliding_window_pattern": 3, "sliding_window": 9,
        "rope_scaling": {"rope_type": "linear", "factor": 8}"#;
    for (x, expected, reach, theta, scale) in [
        ("\"x\": 0", [true, true, true, true], 4095, 1e6, 1.0),
        (two_ways, [true, false, true, false], 4, 7000.0, 1.0),
        (scaled, [true, true, false, true], 8, 1e6, 0.125),
    ] {
        let config = turned(GEMMA, x).unwrap();
        let near = config.near.as_ref().unwrap();
        assert_eq!(near.layers, expected, "{x}");
        assert_eq!((near.reach, near.rotation.theta), (reach, 1e4), "{x}");
        let all = config.rotation.unwrap();
        assert_eq!((all.theta, all.scale), (theta, scale), "{x}");
        assert_eq!(config.word_scale, Some(8.0));
    }
}

#[test]
fn nomics_own_names_are_read_as_the_usual_ones() {
    let config = turned(NOMIC, "\"x\": 0").unwrap();
    assert_eq!(
        (config.hidden, config.heads.count, config.layers),
        (64, 2, 3)
    );
    assert_eq!((config.intermediate, config.positions), (96, 48));
    assert_eq!(config.activation, Activation::Silu);
    assert_eq!(config.rotation.unwrap().theta, 1000.0);
    assert_eq!(config.types, 2);
    // Longer texts would be turned at another pace.
    let trained = turned(NOMIC, "\"max_trained_positions\": 20").unwrap();
    assert_eq!(trained.max_tokens, 20);
}

#[test]
fn longer_texts_turn_at_another_pace() {
    let config = turned(GTE, r#""rope_scaling": {"type": "ntk", "factor": 8.0}"#).unwrap();
    let rotation = config.rotation.unwrap();
    assert_eq!(rotation.theta, 160_000.0);
    assert!((rotation.scale - 8.0_f64.powf(-2.0 / 32.0)).abs() < 1e-15);
    let plain = turned(GTE, "\"rope_scaling\": null").unwrap();
    let rotation = plain.rotation.unwrap();
    assert_eq!((rotation.theta, rotation.scale), (20_000.0, 1.0));
}

/// A configuration, what replaces its field `x`, and what is said.
const OTHERS: [(&str, &str, &str); 27] = [
    (
        MODERN,
        "\"norm_bias\": true",
        "norm_bias is true, and only false is known",
    ),
    (
        MODERN,
        "\"mlp_bias\": true",
        "mlp_bias is true, and only false is known",
    ),
    (
        MODERN,
        "\"layer_types\": [\"full_attention\"]",
        "layer_types must have an entry for each layer",
    ),
    (
        MODERN,
        r#""layer_types": ["full_attention", "chunked", "chunked", "chunked"]"#,
        "only \"full_attention\" and \"sliding_attention\" are known",
    ),
    (
        MODERN,
        r#""rope_parameters": {"full_attention": {"rope_type": "yarn"}}"#,
        "full_attention: rope_type is \"yarn\", and only \"default\", \"linear\" and \"ntk\" are known",
    ),
    (
        MODERN,
        r#""rope_parameters": {"rope_type": "linear", "factor": 8}"#,
        "and only parameters by \"full_attention\" and",
    ),
    (
        QWEN,
        r#""rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}"#,
        "rope_parameters: partial_rotary_factor is a number that is not whole",
    ),
    (
        QWEN,
        r#""rope_parameters": {"type": "yarn", "factor": 8}"#,
        "rope_parameters: type is \"yarn\"",
    ),
    (
        MODERN,
        "\"global_rope_theta\": 0.5",
        "global_rope_theta must be 1 to 10^12",
    ),
    (
        NOMIC,
        "\"rotary_emb_interleaved\": true",
        "rotary_emb_interleaved is true",
    ),
    (NOMIC, "\"mlp_fc1_bias\": true", "mlp_fc1_bias is true"),
    (
        NOMIC,
        "\"partial_rotary_factor\": 0.5",
        "partial_rotary_factor is a number that is not whole",
    ),
    (
        GTE,
        r#""rope_scaling": {"type": "ntk", "factor": 8, "mixed_b": 1}"#,
        "rope_scaling: type is \"ntk\", and only",
    ),
    (
        GTE,
        r#""rope_scaling": {"type": "ntk", "factor": 0.5}"#,
        "factor must be 1 to 10^6",
    ),
    (
        GTE,
        "\"logn_attention_scale\": true",
        "logn_attention_scale is true",
    ),
    (
        GTE,
        "\"num_attention_heads\": 64",
        "num_attention_heads must leave heads an even number of floats",
    ),
    (
        JINA,
        "\"feed_forward_type\": \"reglu\"",
        "feed_forward_type is \"reglu\", and only \"geglu\" is known",
    ),
    (
        JINA,
        "\"auto_map\": {\"AutoModel\": \"jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel\"}",
        "and encoders that norm queries and keys are not known",
    ),
    (
        QWEN,
        "\"use_sliding_window\": true",
        "use_sliding_window is true",
    ),
    (QWEN, "\"attention_bias\": true", "attention_bias is true"),
    (
        QWEN,
        "\"head_dim\": 513",
        "head_dim must be a whole number from 1 to 512",
    ),
    (QWEN, "\"head_dim\": 7", "an even number of floats"),
    (
        QWEN,
        "\"num_key_value_heads\": 3",
        "num_key_value_heads must divide num_attention_heads 4, got 3",
    ),
    (
        GEMMA,
        "\"attn_logit_softcapping\": 50.0",
        "attn_logit_softcapping is 50, and only null is known",
    ),
    (
        GEMMA,
        "\"sliding_window\": 0",
        "sliding_window must be a whole number from 1",
    ),
    (
        GEMMA,
        "\"query_pre_attn_scalar\": 0",
        "the scale of an attention must be a number",
    ),
    (
        GEMMA,
        r#""rope_scaling": {"rope_type": "llama3", "factor": 8}"#,
        "rope_scaling: rope_type is \"llama3\", and only",
    ),
];

#[test]
fn encoders_that_compute_in_another_way_are_refused() {
    for (config, x, expected) in OTHERS {
        // Of fields that are there twice the last one counts.
        let error = turned(config, x).unwrap_err().to_string();
        assert!(error.contains(expected), "{x}: {error}");
    }
}

#[test]
fn scores_are_sigmoids_unless_the_configuration_names_another_function() {
    const IDENTITY: &str = "\"torch.nn.modules.linear.Identity\"";
    let old = format!("\"sbert_ce_default_activation_function\": {IDENTITY}");
    let new = format!("\"sentence_transformers\": {{\"activation_fn\": {IDENTITY}}}");
    for (more, expected) in [
        ("\"x\": 1", Activation::Sigmoid),
        ("\"sentence_transformers\": {}", Activation::Sigmoid),
        (&old, Activation::Identity),
        (&new, Activation::Identity),
    ] {
        let config = BERT.replace("\"id2label\"", &format!("{more}, \"id2label\""));
        let limit = (TOKENIZER, r#"{"model_max_length": 30}"#);
        let (asked, description) = read(Task::Rerank, &[("config.json", &config), limit]);
        assert_eq!(asked, [vec![CONFIG, TOKENIZER, PROMPTS]]);
        let config = description.unwrap().config;
        assert_eq!((config.max_tokens, config.dimensions()), (30, 1));
        assert_eq!(config.dense[1].activation, expected, "{more}");
    }
}

#[test]
fn a_pair_needs_room_for_three_tokens() {
    let limit = (TOKENIZER, r#"{"model_max_length": 2}"#);
    let (_, description) = read(Task::Rerank, &[("config.json", BERT), limit]);
    let error = description.unwrap_err().to_string();
    assert!(
        error.starts_with("tokenizer_config.json: model_max_length must be 3"),
        "{error}"
    );
}

#[test]
fn values_in_messages_are_short_and_as_json_has_them() {
    for (value, expected) in [
        ("-4", "-4"),
        ("0.5", "a number that is not whole"),
        (
            r#"[null, true, {"a": ["b"]}]"#,
            r#"[null,true,{"a":["b"]}]"#,
        ),
        (
            r#""éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé""#,
            "\"ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…",
        ),
    ] {
        let value = super::super::json::parse(value.as_bytes()).unwrap();
        assert_eq!(fields::shown(&value), expected);
    }
}

/// A decoder that is asked for one of two words: those of its module, or those of Qwen3.
#[test]
fn a_decoder_is_a_reranker_by_the_logits_of_two_words() {
    let config = |vocab: u32, tied: &str| {
        format!(
            r#"{{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
            "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": {vocab},
            "max_position_embeddings": 48, "hidden_act": "silu", "rms_norm_eps": 1e-6{tied}}}"#
        )
    };
    let tied = r#", "tie_word_embeddings": true"#;
    let modules =
        r#"[{"type": "a.Transformer", "path": ""}, {"type": "a.LogitScore", "path": "b"}]"#;
    let words = r#"{"true_token_id": 7, "false_token_id": 5}"#;
    let [small, large] = [config(128, tied), config(10_000, tied)];
    let whole = [
        ("config.json", &small[..]),
        ("modules.json", modules),
        ("b/config.json", words),
    ];
    for (files, expected) in [
        (&whole[..], [7, 5]),
        (&[("config.json", &large)], [9693, 2152]),
    ] {
        let config = read(Task::Rerank, files).1.unwrap().config;
        let answers = config.answers.unwrap();
        assert_eq!([answers.yes, answers.no], expected);
        assert_eq!(answers.activation, Activation::Sigmoid);
        assert_eq!(
            (config.pooling, config.dimensions()),
            (Pooling::LastToken, 1)
        );
    }
    let lead = modules.replace(r#""b""#, r#""../b""#);
    for (files, says) in [
        (
            &[("config.json", &config(10_000, "")[..])][..],
            "tie_word_embeddings",
        ),
        (
            &[("config.json", &small)],
            "must be tokens of the vocabulary",
        ),
        (&whole[..2], "b/config.json is missing"),
        (
            &[whole[0], ("modules.json", &lead)],
            "must name a folder below",
        ),
        (
            &[whole[0], whole[1], ("b/config.json", "{}")],
            "true_token_id",
        ),
    ] {
        let error = read(Task::Rerank, files).1.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
