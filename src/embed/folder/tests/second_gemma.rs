use super::*;

const SECOND_GEMMA: &str = r#"{"model_type": "embedding_gemma2", "vision_config": null,
    "text_config": {"model_type": "embedding_gemma2_text", "hidden_size": 64,
    "num_attention_heads": 4, "num_hidden_layers": 4, "intermediate_size": 96, "vocab_size": 128,
    "max_position_embeddings": 262144, "x": 0}}"#;

#[test]
fn heads_may_have_sizes_by_what_they_attend_to() {
    let usual = [(1, 512), (2, 256)];
    let named = r#""global_head_dim": 32, "num_global_key_value_heads": 4, "head_dim": 16,
        "num_key_value_heads": 1"#;
    let by_layer = r#""layer_types": ["full_attention", "sliding_attention", "full_attention",
        "full_attention"], "head_dim": 24, "per_layer_config": {"00": {"head_dim": 48},
        "02": {"head_dim": 48}, "03": {"head_dim": 48, "num_key_value_heads": 2}}"#;
    // The last layer attends to all, whatever is said of it.
    let only_near = r#""layer_types": ["sliding_attention", "sliding_attention",
        "sliding_attention", "sliding_attention"], "sliding_window": 7"#;
    for (x, [all, near], layers, reach) in [
        ("\"x\": 0", usual, [true, true, true, false], 512),
        (named, [(4, 32), (1, 16)], [true, true, true, false], 512),
        (
            by_layer,
            [(2, 48), (2, 24)],
            [false, true, false, false],
            512,
        ),
        (only_near, usual, [true, true, true, false], 7),
    ] {
        let config = turned(SECOND_GEMMA, x).unwrap();
        for (sight, (of_keys, size)) in [(Sight::All, all), (Sight::Near, near)] {
            let expected = Heads {
                of_keys,
                norms: HeadNorms::All,
                ..Heads::even(4, 4 * size)
            };
            assert_eq!(config.heads(sight), expected, "{x}");
        }
        let near = config.near.as_ref().unwrap();
        assert_eq!((&near.layers[..], near.reach), (&layers[..], reach), "{x}");
        assert_eq!(near.rotation.theta, 1e4);
        assert_eq!(config.rotation.unwrap().theta, 1e6);
        assert_eq!(config.score_scale, Some(1.0));
        assert_eq!(config.word_scale, Some(8.0));
        assert_eq!(config.per_layer_embedding, Some(512));
        assert!(config.are_layers_scaled && !config.norms.are_less_one);
        assert_eq!((config.dimensions(), config.positions), (768, 1 << 16));
    }
    let two_sizes = r#""layer_types": ["full_attention", "sliding_attention", "sliding_attention",
        "full_attention"], "per_layer_config": {"0": {"head_dim": 48}}"#;
    let error = turned(SECOND_GEMMA, two_sizes).unwrap_err();
    assert!(matches!(error, Error::UnknownModel(_)), "{error}");
    let expected = "config.json: text_config: per_layer_config is {\"0\":{\"head_dim\":48}}, and only one size for all layers that attend to the same tokens is known";
    assert_eq!(error.to_string(), expected);
    let error = turned(r#"{"model_type": "embedding_gemma2", "x": 0}"#, "\"y\": 1").unwrap_err();
    let expected = "config.json: text_config must be an object, got nothing";
    assert_eq!(error.to_string(), expected);
}

/// The product behind the encoder is part of the configuration, and stays behind the mean.
#[test]
fn products_of_tokens_are_computed_behind_their_mean() {
    let config = SECOND_GEMMA.replace("\"x\": 0", "\"embedding_dim\": 40");
    let pooling = |mode: &str, floats: u32| {
        let json = format!(r#"{{"pooling_mode": "{mode}", "word_embedding_dimension": {floats}}}"#);
        let files = [
            ("config.json", &config[..]),
            (
                "modules.json",
                r#"[{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1"}]"#,
            ),
            ("1/config.json", &json),
        ];
        read(EMBED, &files).1
    };
    let config = pooling("mean", 40).unwrap().config;
    assert_eq!((config.dense[0].inputs, config.dimensions()), (64, 40));
    let error = pooling("max", 40).unwrap_err();
    assert!(matches!(error, Error::UnknownModel(_)), "{error}");
    let error = pooling("mean", 64).unwrap_err().to_string();
    let expected = "must be embedding_dim of config.json, 40, got 64";
    assert!(error.ends_with(expected), "{error}");
}
