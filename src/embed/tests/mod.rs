use std::sync::Arc;

use super::*;
use crate::graph::Precision;
use crate::graph::chain::{Chain, Home};
use crate::kernel::Kernel;
use crate::plan::fuse::fuse;
use crate::plan::{self, Call, Chunk, NamedTensors, NumbersId, Recipe, RecipeId, SetId};
use crate::program::Stage;
use crate::tensor::Span;

mod activations;

fn config() -> Config {
    Config {
        family: Family::Bert,
        hidden: 64,
        layers: 2,
        heads: Heads::even(2, 64),
        score_scale: None,
        intermediate: 256,
        activation: Activation::Gelu,
        gate: None,
        norms: Norms::BERT,
        biases: Biases::ALL,
        vocab: 200,
        positions: 40,
        has_position_table: true,
        first_position: 0,
        types: 2,
        word_scale: None,
        per_layer_embedding: None,
        are_layers_scaled: false,
        distance_bias: None,
        rotation: None,
        near: None,
        epsilon: 1e-12,
        pooling: Pooling::Mean,
        dense: Vec::new(),
        answers: None,
        cut: None,
        normalize: true,
        max_tokens: 32,
        precision: Precision::F32,
    }
}

/// An encoder as ModernBERT: norms in front, gated, turned, every third layer attending to all.
fn modern() -> Config {
    let rotation = |theta| Rotation { theta, scale: 1.0 };
    Config {
        family: Family::ModernBert,
        gate: Some(Gate::First),
        norms: Norms {
            place: NormPlace::Before,
            ..Norms::BERT
        },
        biases: Biases::NONE,
        has_position_table: false,
        types: 0,
        rotation: Some(rotation(160_000.0)),
        near: Some(Near {
            reach: 4,
            layers: (0..1024).map(|layer| layer % 3 != 0).collect(),
            rotation: rotation(10_000.0),
            heads: Heads::even(2, 64),
        }),
        ..config()
    }
}

/// An encoder as EmbeddingGemma 2: heads of two sizes, norms around, per-layer embeddings.
fn second_gemma() -> Config {
    let own = Heads {
        of_keys: 1,
        norms: HeadNorms::All,
        ..Heads::even(2, 64)
    };
    let modern = modern();
    Config {
        family: Family::EmbeddingGemma2,
        heads: Heads { size: 48, ..own },
        score_scale: Some(1.0),
        norms: Norms {
            kind: NormKind::Rms,
            place: NormPlace::Around,
            is_embedding_normed: false,
            are_less_one: false,
        },
        word_scale: Some(8.0),
        per_layer_embedding: Some(24),
        are_layers_scaled: true,
        near: modern.near.map(|near| Near { heads: own, ..near }),
        ..modern
    }
}

fn dense(number: u32, outputs: u32) -> Dense {
    Dense {
        source: Source::Module(format!("{number}_Dense/model.safetensors")),
        name: "linear".into(),
        inputs: 64,
        outputs,
        bias: Bias::Added,
        activation: Activation::Tanh,
        norm: None,
    }
}

fn homes(config: &Config, matrix: Home) -> Vec<Home> {
    let home = |weight: &Weight| match weight.role {
        Role::Matrix => matrix,
        _ => Home::Resident,
    };
    weights(config).iter().map(home).collect()
}

#[test]
fn tensors_have_the_names_of_files() {
    let list = weights(&config());
    let text = |weight: &Weight| {
        let names: Vec<_> = weight.parts.iter().map(|part| &part.name).collect();
        format!("{names:?} {:?}", weight.dims)
    };
    assert_eq!(list.len(), 5 + 2 * 12);
    assert_eq!(
        text(&list[0]),
        r#"["embeddings.word_embeddings.weight"] [200, 64]"#
    );
    assert_eq!(text(&list[4]), r#"["embeddings.LayerNorm.bias"] [64]"#);
    assert_eq!(
        text(&list[5]),
        "[\"encoder.layer.0.attention.self.query.weight\", \
         \"encoder.layer.0.attention.self.key.weight\", \
         \"encoder.layer.0.attention.self.value.weight\"] [192, 64]"
    );
    assert_eq!(list[5].parts[1].dims, [64, 64]);
    assert_eq!(list[6].dims, [192]);
    assert_eq!(
        text(&list[28]),
        r#"["encoder.layer.1.output.LayerNorm.bias"] [64]"#
    );
}

/// The distances of transformers' `MPNetEncoder.relative_position_bucket`.
#[test]
fn distances_are_those_of_transformers() {
    let config = Config {
        heads: Heads::even(2, 64),
        max_tokens: 200,
        distance_bias: Some(DistanceBias::Learned),
        ..config()
    };
    // A table whose floats are their own places.
    let table: Vec<f32> = (0..64_u8).map(f32::from).collect();
    let laid_out = Role::Distances.lay_out(&config, table);
    assert_eq!(laid_out.len(), 2 * 399);
    // The distance from a query to a key, and its bucket.
    for (distance, bucket) in [
        (0, 0),
        (-1, 1),
        (-7, 7),
        (-8, 8),
        (-11, 8),
        (-12, 9),
        (-16, 10),
        (-22, 10),
        (-23, 11),
        (-45, 12),
        (-46, 13),
        (-90, 14),
        (-91, 15),
        (-128, 15),
        (-199, 15),
        (1, 17),
        (8, 24),
        (90, 30),
        (91, 31),
        (199, 31),
    ] {
        for head in 0..2_u8 {
            let place = usize::from(head) * 399 + usize::try_from(distance + 199).unwrap();
            let expected = f32::from(2 * bucket + head);
            assert_eq!(laid_out[place], expected, "{distance}, head {head}");
        }
    }
}

/// Cosines and sines are those of the standard library, at places far into a text too.
#[test]
fn angles_grow_with_the_place() {
    let config = Config {
        max_tokens: 4000,
        ..modern()
    };
    for (sight, theta) in [(Sight::All, 160_000.0_f64), (Sight::Near, 10_000.0)] {
        let angles = Role::Angles(sight).computed(&config).unwrap();
        assert_eq!(angles.len(), 4000 * 32);
        for place in [0, 1, 2, 31, 700, 3999] {
            for at in 0..16 {
                let pace = theta.powf(-2.0 * at as f64 / 32.0);
                let angle = pace * place as f64;
                let found = |half: usize| f64::from(angles[place * 32 + half * 16 + at]);
                let apart = (found(0) - angle.cos())
                    .abs()
                    .max((found(1) - angle.sin()).abs());
                assert!(apart < 1e-7, "{sight:?}, {place}, {at}: {apart}");
            }
        }
    }
}

/// The largest encoders of each kind fit a chain.
#[test]
fn layers_end_where_a_chain_is_full() {
    for (config, least) in [(config(), 26), (modern(), 24), (second_gemma(), 24)] {
        let full = Config {
            layers: 1024,
            ..config
        };
        let error = full.validate().unwrap_err().to_string();
        let most = error.strip_prefix("config.json: num_hidden_layers must be at most ");
        let most = most.and_then(|rest| rest.split(',').next()).unwrap();
        let layers: u32 = most.parse().unwrap();
        assert!(layers >= least, "{layers}");
        let fits = Config { layers, ..full };
        fits.validate().unwrap();
        let homes = homes(&fits, Home::Resident);
        forward_into(&fits, Tokens::Ids(3), &homes).unwrap();
    }
}

#[test]
fn a_layer_takes_seven_dispatches() {
    for pooling in [
        Pooling::Mean,
        Pooling::Cls,
        Pooling::Max,
        Pooling::LastToken,
    ] {
        for matrix in Home::ALL.into_iter().filter(|home| *home != Home::Call) {
            let config = Config {
                pooling,
                ..config()
            };
            let chain = forward(&config, Tokens::Ids(9), &homes(&config, matrix)).unwrap();
            let stages = fuse(&chain).0.stages.len();
            assert!(stages <= 7 * 2 + 3, "{pooling:?}, {matrix:?}: {stages}");
        }
    }
}

/// Beside BERT's seven there are two that turn, one for each half of a head, and one that gates.
#[test]
fn a_layer_of_modernbert_takes_ten_dispatches() {
    let stages = |layers| {
        let config = Config { layers, ..modern() };
        let chain = forward(&config, Tokens::Ids(9), &homes(&config, Home::Resident)).unwrap();
        fuse(&chain).0.stages.len()
    };
    assert_eq!(stages(6) - stages(5), 10);
}

/// Stages share a pipeline where their kernels are the same text, and nowhere else.
#[test]
fn layers_share_their_kernels() {
    let stages = |layers| {
        let config = Config { layers, ..config() };
        let chain = forward(&config, Tokens::Ids(9), &homes(&config, Home::Resident)).unwrap();
        fuse(&chain).0.stages
    };
    let of_many = stages(6);
    for a in &of_many {
        for b in &of_many {
            let text =
                |stage: &Stage| Kernel::Fused(Arc::new(stage.clone())).source(Precision::F32);
            assert_eq!(a.shares_kernel(b), text(a) == text(b), "{a}\n{b}");
        }
    }
    let kernels = |stages: &[Stage]| {
        let is_first = |at: &usize| !stages[..*at].iter().any(|a| a.shares_kernel(&stages[*at]));
        (0..stages.len()).filter(is_first).count()
    };
    assert_eq!(kernels(&of_many), kernels(&stages(1)));
    assert!(kernels(&of_many) <= 7 + 3);
}

#[test]
fn texts_of_all_lengths_are_one_program() {
    let config = config();
    let homes = homes(&config, Home::Resident);
    let program = |tokens| fuse(&forward(&config, Tokens::Ids(tokens), &homes).unwrap()).0;
    let first = program(2);
    for tokens in 3..=config.max_tokens {
        assert!(program(tokens) == first, "{tokens} tokens");
    }
}

#[test]
fn a_chain_survives_the_wire() {
    for config in [config(), modern(), second_gemma()] {
        let chain = forward(&config, Tokens::Ids(7), &homes(&config, Home::Resident)).unwrap();
        assert_eq!(Chain::decode(&chain.encode()).unwrap(), chain);
        assert_eq!(chain.constants() as usize, numbers(&config).len());
        assert_eq!(chain.inputs().count(), 1 + weights(&config).len());
        let result = chain.node(chain.outputs()[0]);
        assert_eq!(result.shape.dims(), [config.hidden]);
    }
}

#[test]
fn per_layer_embeddings_have_floats() {
    second_gemma().validate().unwrap();
    let without = Config {
        per_layer_embedding: Some(0),
        ..second_gemma()
    };
    let expected = "config.json: hidden_size_per_layer_input must be at least 1, got 0";
    assert_eq!(without.validate().unwrap_err().to_string(), expected);
}

#[test]
fn sizes_that_cannot_work_are_refused() {
    let good = config();
    good.validate().unwrap();
    let most = |layers| Config {
        layers,
        ..good.clone()
    };
    let largest = Config {
        distance_bias: Some(DistanceBias::Learned),
        dense: (0..4).map(|number| dense(number, 64)).collect(),
        cut: Some(32),
        ..most(109)
    };
    largest.validate().unwrap();
    forward_into(&largest, Tokens::Typed(4), &homes(&largest, Home::Resident)).unwrap();
    let cases = [
        (
            Config {
                hidden: 0,
                ..good.clone()
            },
            "hidden_size must be at least 1, got 0",
        ),
        (
            Config {
                heads: Heads::even(65, 64),
                ..good.clone()
            },
            "num_attention_heads must give heads of 1 to 512 floats, got 65",
        ),
        (
            Config {
                heads: Heads {
                    of_keys: 3,
                    ..Heads::even(4, 64)
                },
                ..good.clone()
            },
            "num_key_value_heads must divide num_attention_heads, got 3",
        ),
        (
            Config {
                layers: 110,
                ..largest
            },
            "num_hidden_layers must be at most 109, got 110",
        ),
        (
            Config {
                vocab: u32::MAX,
                ..good.clone()
            },
            "vocab_size times hidden_size",
        ),
        (
            Config {
                epsilon: f32::NAN,
                ..good.clone()
            },
            "layer_norm_eps",
        ),
        (
            Config {
                max_tokens: 41,
                ..good.clone()
            },
            "max_seq_length 41 must be 1 to 40",
        ),
        (
            Config {
                first_position: 9,
                ..good.clone()
            },
            "max_seq_length 32 must be 1 to 31",
        ),
    ];
    for (config, expected) in cases {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn texts_that_do_not_fit_are_refused() {
    let good = config();
    for (tokens, homes) in [
        (Tokens::Ids(0), homes(&good, Home::Resident)),
        (Tokens::Typed(33), homes(&good, Home::Resident)),
        (Tokens::Ids(3), vec![Home::Resident; 3]),
    ] {
        forward(&good, tokens, &homes).unwrap_err();
    }
}

#[test]
fn layers_behind_the_pooling_must_fit() {
    let good = config();
    let cases = [
        (
            Config {
                cut: Some(64),
                ..good.clone()
            },
            "dimensions must be a whole number from 1 and below the model's 64, got 64",
        ),
        (
            Config {
                dense: vec![dense(0, 32), dense(1, 64)],
                ..good.clone()
            },
            "takes 64 floats, but gets 32",
        ),
        (
            Config {
                dense: vec![dense(0, 64); 5],
                ..good.clone()
            },
            "at most 4 Dense modules",
        ),
    ];
    for (config, expected) in cases {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
