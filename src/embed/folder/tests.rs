use super::*;
use crate::embed::{Activation, Family, Pooling};

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
    assert_eq!(
        asked,
        [
            vec![CONFIG, MODULES, SENTENCE, PROMPTS],
            vec![TOKENIZER] // Nothing else said how long texts are.
        ]
    );
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
            vec![CONFIG, MODULES, SENTENCE, PROMPTS],
            vec!["a/config.json", "b.c/d/config.json"]
        ]
    );
    let config = description.unwrap().config;
    assert_eq!((config.max_tokens, config.dimensions()), (20, 8));
    assert!(config.normalize && !config.dense[0].has_bias);
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
    assert_eq!((config.hidden, config.heads, config.layers), (48, 4, 3));
    assert_eq!((config.intermediate, config.types), (80, 0));
    assert_eq!(config.activation, Activation::Relu);
    assert_eq!(config.epsilon, 1e-12); // Whatever the file says.
    let mpnet = BERT.replace("\"bert\"", "\"mpnet\"");
    let config = read(EMBED, &[("config.json", &mpnet)]).1.unwrap().config;
    assert!(config.has_distance_bias);
    assert_eq!((config.first_position, config.max_tokens), (2, 46));
    let other = mpnet.replace(
        "\"id2label\"",
        "\"relative_attention_num_buckets\": 16, \"id2label\"",
    );
    let error = read(EMBED, &[("config.json", &other)]).1.unwrap_err();
    let expected = "config.json: relative_attention_num_buckets is 16, and only 32 is known";
    assert_eq!(error.to_string(), expected);
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
        assert_eq!(asked, [vec![CONFIG, TOKENIZER]]);
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
