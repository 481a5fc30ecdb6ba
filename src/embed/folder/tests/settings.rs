//! What other files than `config.json` settle, and what they say that is not followed.

use super::*;

const POOLED: &str = r#"[{"type": "Transformer"}, {"type": "Pooling", "path": "a"}]"#;
const NARROWED: &str = r#"[{"type": "Transformer"}, {"type": "Pooling", "path": "a"},
    {"type": "Dense", "path": "b"}]"#;

fn narrowed(more: &str) -> Vec<(&'static str, String)> {
    let dense = [r#"{"in_features": 64, "out_features": 8"#, more, "}"].concat();
    vec![
        ("modules.json", NARROWED.into()),
        ("a/config.json", "{}".into()),
        ("b/config.json", dense),
    ]
}

fn described(task: Task, files: &[(&'static str, String)]) -> Result<Config, Error> {
    let mut all = vec![("config.json", BERT)];
    all.extend(files.iter().map(|(name, content)| (*name, &content[..])));
    read(task, &all).1.map(|description| description.config)
}

#[test]
fn vectors_are_cut_as_the_caller_or_the_folder_says() {
    for (said, asked, expected) in [
        ("{}", None, None),
        (r#"{"truncate_dim": null}"#, None, None),
        (r#"{"truncate_dim": 16}"#, None, Some(16)),
        (r#"{"truncate_dim": 16}"#, Some(32), Some(32)),
        (r#"{"truncate_dim": 64}"#, None, None),
        (r#"{"truncate_dim": 100}"#, Some(8), Some(8)),
    ] {
        let files = [
            ("modules.json", POOLED.into()),
            ("a/config.json", "{}".into()),
            ("config_sentence_transformers.json", said.into()),
        ];
        let task = Task::Embed { dimensions: asked };
        assert_eq!(described(task, &files).unwrap().cut, expected, "{said}");
    }
}

#[test]
fn texts_are_as_long_as_the_least_of_all_limits() {
    for (sentence, tokenizer, expected) in [
        ("{}", "{}", 48),
        (
            r#"{"max_seq_length": 20}"#,
            r#"{"model_max_length": 10}"#,
            20,
        ),
        (
            r#"{"processing_kwargs": {"text": {"max_length": 12}}}"#,
            r#"{"model_max_length": 30, "truncation_side": "right"}"#,
            12,
        ),
        (
            r#"{"max_seq_length": 20, "processing_kwargs": {"text": {"max_length": 32}}}"#,
            "{}",
            20,
        ),
        (r#"{"processing_kwargs": {"text": {}}}"#, "{}", 48),
    ] {
        let files = [
            ("sentence_bert_config.json", sentence.into()),
            ("tokenizer_config.json", tokenizer.into()),
        ];
        let config = described(EMBED, &files).unwrap();
        assert_eq!(config.max_tokens, expected, "{sentence} {tokenizer}");
    }
}

#[test]
fn what_would_give_other_vectors_is_refused() {
    let left = r#"{"truncation_side": "left"}"#;
    let tokenizer = vec![("tokenizer_config.json", left.into())];
    let limit = r#"{"max_seq_length": 20}"#;
    let limited = vec![
        ("tokenizer_config.json", left.into()),
        ("sentence_bert_config.json", limit.into()),
    ];
    for (files, expected) in [
        (
            narrowed(r#", "use_residual": true"#),
            "use_residual is true",
        ),
        (
            narrowed(r#", "module_output_name": "tokens""#),
            "module_output_name is \"tokens\"",
        ),
        (tokenizer, "truncation_side is \"left\""),
        (limited, "truncation_side is \"left\""),
    ] {
        let error = described(EMBED, &files).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let plain = r#", "use_residual": false, "module_output_name": "sentence_embedding""#;
    assert_eq!(described(EMBED, &narrowed(plain)).unwrap().dense.len(), 1);
}

#[test]
fn decoders_may_attend_to_what_is_behind() {
    let heads = |json: &str, x: &str| turned(json, x).map(|config| config.heads(Sight::All));
    for (json, x, expected) in [
        (QWEN, r#""is_causal": true"#, true),
        (QWEN, r#""is_causal": false"#, false),
        (
            GEMMA,
            r#""use_bidirectional_attention": true, "is_causal": false"#,
            false,
        ),
        (GEMMA, r#""is_causal": true"#, true),
    ] {
        assert_eq!(heads(json, x).unwrap().is_causal, expected, "{x}");
    }
    let error = heads(GEMMA, r#""is_causal": false"#).unwrap_err();
    assert!(error.to_string().contains("is_causal is false"), "{error}");
}

#[test]
fn a_cross_encoder_says_what_becomes_of_its_score() {
    let score = |content: &str| {
        let files = [("config_sentence_transformers.json", content.into())];
        let config = described(Task::Rerank, &files)?;
        Ok::<_, Error>(config.dense.last().unwrap().activation)
    };
    let identity = r#"{"model_type": "CrossEncoder", "prompts": {"a": "b "},
        "activation_fn": "torch.nn.modules.linear.Identity"}"#;
    assert_eq!(score(identity).unwrap(), Activation::Identity);
    assert_eq!(score("{}").unwrap(), Activation::Sigmoid);
    for (content, expected) in [
        (r#"{"activation_fn": "torch.nn.Mish"}"#, "activation_fn is"),
        (
            r#"{"prompts": {"a": "b "}, "default_prompt_name": "a"}"#,
            "default_prompt_name is \"a\"",
        ),
    ] {
        let error = score(content).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
