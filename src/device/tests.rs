//! Chunks on the CPU: cutting a batch changes no bit.

use proptest::prelude::*;

use super::*;
use crate::error::Code;
use crate::graph::{Mode, Timing};
use crate::ops;
use crate::plan::{
    Call, Chunk, ChunkSize, ChunkSizes, NamedTensors, NumbersId, Recipe, RecipeId, SetId, assemble,
    chunks,
};
use crate::program::RowOp;
use crate::tensor::Span;

fn ops() -> Vec<RowOp> {
    vec![
        ops::lerp(1, Timing::Call).expect("valid"),
        ops::lerp(3, Timing::Row).expect("valid"),
        ops::slerp(Timing::Row),
        ops::nlerp(Timing::Row),
        ops::gradients(),
        ops::interpolate(Mode::Slerp, Timing::Row),
    ]
}

/// The result of each call, computed in these chunks.
fn run(recipes: &[Recipe], calls: &[Call], arena: &mut Arena, sent: &[Chunk]) -> Vec<Vec<u32>> {
    let mut results: Vec<Vec<u32>> = vec![Vec::new(); calls.len()];
    for chunk in sent {
        let plan = assemble(recipes, calls, NamedTensors::default(), chunk);
        let flight = Cpu::default()
            .launch(&plan, arena)
            .expect("the CPU has all");
        let Ok(Readback::Host(words)) = pollster::block_on(flight) else {
            panic!("the CPU does not fail");
        };
        for (index, span) in (chunk.first..chunk.end).zip(&plan.results) {
            results[index].extend(&words[span.at as usize..][..span.words as usize]);
        }
    }
    results
}

proptest! {
    #[test]
    fn cutting_changes_no_bit(
        asked in prop::collection::vec((0_u32..6, 1_u32..700), 1..12),
        target in 64_u64..20_000,
        seed in any::<u32>(),
    ) {
        let recipes: Vec<Recipe> = ops().iter().map(Recipe::new).collect();
        let mut arena = Arena::default();
        let mut word = seed;
        let mut calls = Vec::new();
        for (recipe, rows) in asked {
            let mut operands = Vec::new();
            for format in recipes[recipe as usize].formats() {
                operands.extend((0..rows * format.words()).map(|_| {
                    word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let bits = ((word >> 16) as f32 / 65_536.0).to_bits();
                    format.dtype.encode(bits).expect("a number")
                }));
                operands.resize(operands.len().next_multiple_of(4), 0);
            }
            let inputs = arena.push(&operands);
            calls.push(Call { recipe: RecipeId(recipe), rows, inputs, scalar: 0.3_f32.to_bits(), set: SetId::default(), tensors: Span::default(), stored: Span::default(), numbers: NumbersId::default() });
        }
        let cut = chunks(&recipes, &calls, ChunkSizes::equal(ChunkSize { whole: 0, target }));
        let whole = run(&recipes, &calls, &mut arena, &[Chunk::all(&calls)]);
        let parts = run(&recipes, &calls, &mut arena, &cut);
        prop_assert_eq!(parts, whole, "{} chunks", cut.len());
    }
}

#[test]
fn a_tensor_that_the_cpu_has_no_memory_for_is_an_error() {
    let error = Cpu::room(usize::MAX >> 3).expect_err("more than is addressed");
    assert_eq!(error.code(), Code::OutOfMemory);
    let text = error.to_string();
    assert!(text.contains(" bytes; "), "{text}");
}
