//! Plans as text, and what holds of every plan.

mod chunks;
mod table;

use proptest::prelude::*;

use super::*;
use crate::graph::chain::{Axes, Chain, Home, Norm, Reduction};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, Mode, Timing};
use crate::ops;
use crate::program::RowOp;
use crate::tensor::DType;

/// Calls of a batch, whose operands lie end to end in an arena.
struct Case {
    recipes: Vec<Recipe>,
    calls: Vec<Call>,
    at: u32,
}

impl Case {
    fn new(ops: &[RowOp]) -> Self {
        Case {
            recipes: ops.iter().map(Recipe::new).collect(),
            calls: Vec::new(),
            at: 0,
        }
    }

    fn call(&mut self, recipe: u32, rows: u32) {
        let words = self.recipes[recipe as usize].input_words(rows) as u32;
        let inputs = Span { at: self.at, words };
        self.at += words.next_multiple_of(4);
        self.calls.push(Call {
            recipe: RecipeId(recipe),
            rows,
            inputs,
            scalar: 0,
            set: SetId::default(),
            tensors: Span::default(),
            stored: Span::default(),
            numbers: NumbersId::default(),
        });
    }

    fn chunks(&self, whole: u64, target: u64) -> Vec<Chunk> {
        let size = ChunkSize { whole, target };
        chunks(&self.recipes, &self.calls, ChunkSizes::equal(size))
    }

    fn plan(&self) -> Plan {
        assemble(
            &self.recipes,
            &self.calls,
            NamedTensors::default(),
            &Chunk::all(&self.calls),
        )
    }
}

/// Compares the plan of calls, each a number among the ops and its rows, with its text.
fn check(ops: &[RowOp], calls: &[(u32, u32)], expected: &str) {
    let mut case = Case::new(ops);
    for (recipe, rows) in calls {
        case.call(*recipe, *rows);
    }
    let lines: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(case.plan().to_string(), lines.join("\n"));
}

#[test]
fn shards_of_tensors_are_about_equal_and_fit() {
    // Words of the tensor, of a row and of a buffer, and the words of each shard.
    for (words, row, most, expected) in [
        (5000 * 64, 64, 4095 * 64, Some(2560 * 64)),
        (100, 1, 40, Some(36)),
        (9, 1, 8, Some(4)),
        (1025, 1, 1024, Some(768)),
        (300, 100, 299, None),
        (1 << 30, 1 << 20, 1 << 28, Some(1 << 28)),
        (10, 0, 5, None),
    ] {
        let each = ShardedTensor::words_each(words, row, most);
        assert_eq!(each, expected, "{words} words in rows of {row}");
        assert!(each.is_none_or(|each| u64::from(each) <= most && each % (4 * row) == 0));
    }
}

#[test]
fn equal_structures_become_one_dispatch() {
    check(
        &[ops::slerp(Timing::Call)],
        &[(0, 1), (0, 5), (0, 2)],
        "upload   s0 (256 bytes)
         dispatch slerp(s0, s0, t) -> s1, 3 calls, 8 rows
         download s1 (128 bytes)",
    );
}

#[test]
fn other_structures_are_dispatches_of_their_own_in_one_batch() {
    check(
        &[
            ops::slerp(Timing::Call),
            ops::gradients(),
            ops::interpolate(Mode::Slerp, Timing::Row),
        ],
        &[(0, 1), (1, 2), (0, 1), (2, 1)],
        "upload   s0 (144 bytes)
         dispatch slerp(s0, s0, t) -> s1, 2 calls, 2 rows
         dispatch state_gradients(s0) -> s1, 1 calls, 2 rows
         dispatch state_interpolate#1(s0, s0, s0) -> s1, 1 calls, 1 rows, a t for each row
         download s1 (304 bytes)",
    );
}

/// softmax((x · w)² · w) of `rows` rows of 32 floats, in three stages, or the first of these
/// stages only.
fn network(rows: u32, stages: usize) -> Chain {
    let mut chain = Chain::default();
    let mut input = |dims: &[u32], home| {
        let shape = Shape::new(dims).expect("small");
        chain.input(shape, DType::F32, home).expect("few")
    };
    let x = input(&[rows, 32], Home::Call);
    let w = input(&[32, 32], Home::Resident);
    let mut y = chain.matmul(x, w).expect("they fit");
    if stages == 3 {
        let square = chain.binary(BinaryFn::Mul, y, y).expect("they fit");
        y = chain.matmul(square, w).expect("they fit");
        y = chain.norm(Norm::Softmax, y, -1, None).expect("they fit");
    }
    chain.output(y).expect("its own");
    chain
}

#[test]
fn an_intermediate_keeps_its_slot_until_its_last_use() {
    let mut case = Case::new(&[ops::gradients()]);
    case.recipes.push(Recipe::fuse(&network(8, 3), &[]));
    for (recipe, rows) in [(1, 8), (0, 1), (1, 8)] {
        case.call(recipe, rows);
    }
    let weights = [vec![0].into()];
    let plan = assemble(
        &case.recipes,
        &case.calls,
        NamedTensors {
            sets: &weights,
            ..NamedTensors::default()
        },
        &Chunk::all(&case.calls),
    );
    let expected = "upload   s0 (2064 bytes)
         dispatch small tiles(r0 = sum(in0 * tensor1); r0 * r0) (s0, tensor 0) -> s2, 2 calls, 128 threads
         dispatch small tiles(r0 = sum(b0 * tensor1); r0) (s2, tensor 0) -> s3, 2 calls as 1, 64 threads
         free     s2
         dispatch rows(r0 = max(b1); r1 = sum(exp(b1 - r0)); each exp(b1 - r0) / r1) (s3) -> s1, 2 calls, 16 threads
         free     s3
         dispatch state_gradients(s0) -> s1, 1 calls, 1 rows
         download s1 (2176 bytes)";
    let lines: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(plan.to_string(), lines.join("\n"));
}

#[test]
fn nothing_asked_is_nothing_to_do() {
    check(&[ops::gradients()], &[], "nothing to do");
}

proptest! {
    /// Results never overlap and hold exactly what was asked.
    #[test]
    fn results_lie_apart(calls in prop::collection::vec((0_u32..3, 1_u32..200), 1..60)) {
        let graphs = [ops::lerp(3, Timing::Row).expect("valid"), ops::gradients(), ops::sequence(3, Mode::Lerp).expect("valid")];
        let mut case = Case::new(&graphs);
        for (recipe, rows) in &calls {
            case.call(*recipe, *rows);
        }
        let plan = case.plan();
        let mut spans = plan.results.clone();
        for (span, call) in spans.iter().zip(&case.calls) {
            prop_assert_eq!(u64::from(span.words), case.recipes[call.recipe.0 as usize].result_words(call.rows));
        }
        spans.sort_by_key(|span| span.at);
        for pair in spans.windows(2) {
            prop_assert!(pair[0].at + pair[0].words <= pair[1].at);
        }
        let end = spans.last().map_or(0, |span| span.at + span.words);
        prop_assert!(end <= plan.words(Slot::RESULTS));
    }

    /// No dispatch reads the slot that it writes.
    #[test]
    fn slots_are_read_or_written(calls in prop::collection::vec((0_u32..2, 1_u32..20), 1..20)) {
        let mut case = Case::new(&[ops::slerp(Timing::Row)]);
        case.recipes.push(Recipe::fuse(&network(8, 3), &[]));
        for (recipe, rows) in &calls {
            let rows = case.recipes[*recipe as usize].rows().unwrap_or(*rows);
            case.call(*recipe, rows);
        }
        let tensors = NamedTensors {
            sets: &[[0].into()],
            ..NamedTensors::default()
        };
        let plan = assemble(&case.recipes, &case.calls, tensors, &Chunk::all(&case.calls));
        for dispatch in plan.dispatches() {
            for operand in &dispatch.operands {
                if let Operand::Rows { slot, .. } = operand {
                    prop_assert_ne!(*slot, dispatch.output);
                }
            }
        }
    }
}
