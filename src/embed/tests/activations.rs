//! The memory that texts are said to take, beside what the planner lays out.

use super::*;

/// The formula says what the planner lays out, for texts of any length, in any number, of
/// encoders of any shape.
#[test]
fn activations_are_the_slots_of_the_plan() {
    for (hidden, heads, intermediate) in [(64, 2, 256), (64, 4, 96), (384, 12, 1536), (60, 2, 512)]
    {
        for layers in [1, 2, 12] {
            for (tokens, texts) in [(1, 1), (5, 3), (32, 16), (127, 2)] {
                let sizes = Config {
                    hidden,
                    heads: Heads::even(heads, hidden),
                    intermediate,
                    layers,
                    positions: 128,
                    max_tokens: 128,
                    ..config()
                };
                let each = Activations {
                    tokens: tokens.into(),
                    hidden: hidden.into(),
                    intermediate: intermediate.into(),
                };
                let planned = planned_bytes(&sizes, tokens, texts);
                let foreseen = each.bytes() * u64::from(texts);
                match layers {
                    1 => assert!(planned <= foreseen, "{each:?}: {planned}"),
                    _ => assert_eq!(planned, foreseen, "{each:?}, {layers} layers"),
                }
            }
        }
    }
}

/// Of an encoder that turns and gates a text takes at most half as much again, where both halves are
/// counted.
#[test]
fn activations_hold_for_modernbert() {
    for intermediate in [40, 256] {
        for layers in [1, 2, 7] {
            let sizes = Config {
                intermediate,
                layers,
                ..modern()
            };
            let each = Activations {
                tokens: 32,
                hidden: 64,
                intermediate: 2 * u64::from(intermediate),
            };
            let planned = planned_bytes(&sizes, 32, 3);
            assert!(
                2 * planned <= 3 * 3 * each.bytes(),
                "{intermediate}, {layers}: {planned}"
            );
        }
    }
}

/// Bytes of all slots of a plan of so many texts.
fn planned_bytes(config: &Config, tokens: u32, texts: u32) -> u64 {
    let chain =
        forward(config, Tokens::Ids(tokens), &homes(config, Home::Resident)).expect("sound sizes");
    let recipe = Recipe::fuse(&chain, &[]);
    let rows = recipe.rows().expect("a chain knows its rows");
    let words = u32::try_from(recipe.input_words(rows)).expect("few words");
    let call = |number| Call {
        recipe: RecipeId(0),
        rows,
        inputs: Span {
            at: number * words,
            words,
        },
        scalar: 0,
        stored: Span::default(),
        set: SetId::default(),
        tensors: Span::default(),
        numbers: NumbersId::default(),
    };
    let calls: Vec<Call> = (0..texts).map(call).collect();
    let tensors = NamedTensors {
        sets: &[(0..weights(config).len() as u32).collect()],
        ..NamedTensors::default()
    };
    plan::assemble(&[recipe], &calls, tensors, &Chunk::all(&calls)).bytes()
}

#[test]
fn activations_of_absurd_sizes_are_many() {
    let absurd = Activations {
        tokens: u64::MAX,
        hidden: u64::MAX,
        intermediate: u64::MAX,
    };
    assert_eq!(absurd.bytes(), u64::MAX);
}
