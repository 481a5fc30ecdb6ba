//! Plans as text, and properties of the segment table.

use proptest::prelude::*;

use super::*;
use crate::graph::chain::{Chain, Home, Norm, Reduction};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, Mode, Timing};
use crate::ops;
use crate::program::RowOp;
use crate::tensor::DType;

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
            numbers: NumbersId::default(),
        });
    }

    fn chunks(&self, whole: u64, target: u64) -> Vec<Chunk> {
        chunks(&self.recipes, &self.calls, ChunkSizes { whole, target })
    }

    fn plan(&self) -> Plan {
        assemble(&self.recipes, &self.calls, &[], &Chunk::all(&self.calls))
    }
}

fn check(ops: &[RowOp], calls: &[(u32, u32)], expected: &str) {
    let mut case = Case::new(ops);
    for (recipe, rows) in calls {
        case.call(*recipe, *rows);
    }
    let lines: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(case.plan().to_string(), lines.join("\n"));
}

#[test]
fn parts_of_tensors_are_about_equal_and_fit() {
    // Words, words of a row and words that fit; words of each part.
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
        &weights,
        &Chunk::all(&case.calls),
    );
    let expected = "upload   s0 (2064 bytes)
         dispatch small tiles(r0 = sum(in0 * tensor1); r0 * r0) (s0, s2147483648) -> s2, 2 calls, 128 threads
         dispatch small tiles(r0 = sum(b0 * tensor1); r0) (s2, s2147483648) -> s3, 2 calls as 1, 64 threads
         free     s2
         dispatch rows(r0 = max(b1); r1 = sum(exp(b1 - r0)); each exp(b1 - r0) / r1) (s3) -> s1, 2 calls, 16 threads
         free     s3
         dispatch state_gradients(s0) -> s1, 1 calls, 1 rows
         download s1 (2176 bytes)";
    let lines: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(plan.to_string(), lines.join("\n"));
}

fn check_chunks(ops: &[RowOp], calls: &[(u32, u32)], target: u64, expected: &str) {
    let mut case = Case::new(ops);
    for (recipe, rows) in calls {
        case.call(*recipe, *rows);
    }
    let chunks = case.chunks(target, target);
    let texts = chunks.iter().map(|chunk| {
        let Chunk { first, end, .. } = *chunk;
        let rows: Vec<u32> = (first..end)
            .map(|index| chunk.rows_of(&case.calls, index).rows)
            .collect();
        let plan = assemble(&case.recipes, &case.calls, &[], chunk);
        format!("rows {rows:?} of calls {first}..{end}\n{plan}")
    });
    let lines: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(texts.collect::<Vec<_>>().join("\n"), lines.join("\n"));
}

#[test]
fn a_large_call_is_cut_by_rows() {
    check_chunks(
        &[ops::slerp(Timing::Row)],
        &[(0, 1000)],
        16 << 10,
        "rows [500] of calls 0..1
         upload   s0 (18000 bytes of 3 places)
         dispatch slerp(s0, s0, s0) -> s1, 1 calls, 500 rows, a t for each row
         download s1 (8000 bytes)
         rows [500] of calls 0..1
         upload   s0 (18000 bytes of 3 places)
         dispatch slerp(s0, s0, s0) -> s1, 1 calls, 500 rows, a t for each row
         download s1 (8000 bytes)",
    );
}

#[test]
fn small_calls_stay_whole_and_travel_as_they_lie() {
    check_chunks(
        &[ops::lerp(1, Timing::Call).expect("valid")],
        &[(0, 8); 11],
        300,
        "rows [8, 8, 8] of calls 0..3
         upload   s0 (192 bytes)
         dispatch lerp(s0, s0, t) -> s1, 3 calls, 24 rows
         download s1 (96 bytes)
         rows [8, 8, 8, 8] of calls 3..7
         upload   s0 (256 bytes)
         dispatch lerp(s0, s0, t) -> s1, 4 calls, 32 rows
         download s1 (128 bytes)
         rows [8, 8, 8, 8] of calls 7..11
         upload   s0 (256 bytes)
         dispatch lerp(s0, s0, t) -> s1, 4 calls, 32 rows
         download s1 (128 bytes)",
    );
}

#[test]
fn calls_around_a_cut_one_share_its_chunks() {
    let field = "rho".parse().expect("a formula");
    check_chunks(
        &[ops::gradients(), ops::field_gradients(&field)],
        &[(0, 2), (1, 20), (0, 2)],
        1600,
        "rows [2, 8] of calls 0..2
         upload   s0 (160 bytes)
         dispatch state_gradients(s0) -> s1, 1 calls, 2 rows
         dispatch state_field[v0](s0) -> s1, 1 calls, 8 rows
         download s1 (1280 bytes)
         rows [12, 2] of calls 1..3
         upload   s0 (224 bytes)
         dispatch state_field[v0](s0) -> s1, 1 calls, 12 rows
         dispatch state_gradients(s0) -> s1, 1 calls, 2 rows
         download s1 (1792 bytes)",
    );
}

/// softmax((x · w)² · w) of `rows` rows of 32, which takes three stages, or only
/// the first of them.
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
        y = chain.norm(Norm::Softmax, (y, -1), None).expect("they fit");
    }
    chain.output(y).expect("its own");
    chain
}

#[test]
fn networks_are_cut_later_the_more_stages_they_have() {
    for stages in [1, 3] {
        let mut case = Case::new(&[]);
        for rows in 1..=40 {
            let recipe = Recipe::fuse(&network(rows, stages), &case.recipes);
            case.recipes.push(recipe);
        }
        for call in 0..500 {
            case.call(call % 40, 1);
        }
        let weights = [vec![0].into()];
        let plan = assemble(
            &case.recipes,
            &case.calls,
            &weights,
            &Chunk::all(&case.calls),
        );
        assert_eq!(plan.dispatches().count(), stages);
        // 1.3 MB each way.
        let bytes = 4 * case
            .calls
            .iter()
            .map(|call| u64::from(call.inputs.words))
            .sum::<u64>();
        let count = |target| case.chunks(target, target).len();
        let target = bytes.div_ceil(stages as u64);
        assert_eq!(count(target), 1, "{stages} stages");
        assert_eq!(
            count(target - 100),
            1,
            "a little more is better than one more chunk"
        );
        assert_eq!(count(target / 8 * 5), 2, "{stages} stages");
    }
}

/// So many products of one number by another, summed along axes, if any.
fn small_products(count: u32, summed: &[i32]) -> Recipe {
    let mut chain = Chain::default();
    let mut input = |dims: &[u32]| {
        let shape = Shape::new(dims).expect("few elements");
        chain.input(shape, DType::F32, Home::Resident).expect("few")
    };
    let (a, b) = (input(&[count, 1, 1]), input(&[1, 1]));
    let mut y = chain.matmul(a, b).expect("they fit");
    if !summed.is_empty() {
        y = chain
            .reduce(Reduction::Sum, y, (summed, false))
            .expect("three axes");
    }
    chain.output(y).expect("its own");
    Recipe::fuse(&chain, &[])
}

#[test]
fn threads_that_no_number_counts_are_cut_or_refused() {
    // A workgroup for each product.
    for (count, is_countable) in [(1 << 25, true), (1 << 26, false), (3 << 26, false)] {
        assert_eq!(
            small_products(count, &[0, 1, 2]).is_countable(),
            is_countable,
            "{count}"
        );
        let mut case = Case::new(&[]);
        case.recipes.push(small_products(count, &[]));
        assert!(case.recipes[0].is_countable(), "row by row");
        case.call(0, count);
        let source = PlanSource {
            recipes: &case.recipes,
            calls: &case.calls,
            sets: &[[0, 1].into()],
            sharded: &[],
        };
        let mut rest = vec![Chunk::all(&case.calls)];
        let limits = ChunkLimits {
            slot_bytes: u64::MAX,
            bytes: u64::MAX,
            copies: 1,
            threads: u64::MAX,
        };
        let mut covered = 0;
        while let Some((chunk, plan)) = assemble_next(source, &mut rest, &limits) {
            let rows = chunk.rows_of(&case.calls, 0).rows;
            let mut threads = plan.dispatches().map(|work| Table::of(work).threads);
            assert_eq!(threads.next(), Some(64 * u64::from(rows)));
            assert!(64 * u64::from(rows) <= MOST_THREADS && threads.next().is_none());
            covered += rows;
        }
        assert_eq!(covered, count);
    }
}

#[test]
fn holes_of_calls_that_were_given_up_are_left_out_where_they_are_large() {
    let mut case = Case::new(&[ops::gradients()]);
    for rows in [3, 5, 7, 2000, 9] {
        case.call(0, rows);
    }
    case.calls.remove(3);
    case.calls.remove(1);
    let plan = case.plan();
    let run = |from, to, words| CopyRun { from, to, words };
    assert_eq!(plan.uploads(), [run(0, 0, 60), run(8060, 60, 36)]);
}

#[test]
fn nothing_asked_is_nothing_to_do() {
    check(&[ops::gradients()], &[], "nothing to do");
}

#[test]
fn grids_cover_their_threads_within_the_limit() {
    let cases = [
        (0, 65535, Some((0, 0))),
        (1, 65535, Some((1, 1))),
        (64, 65535, Some((1, 1))),
        (65, 65535, Some((2, 1))),
        (64 * 65535, 65535, Some((65535, 1))),
        (64 * 65535 + 1, 65535, Some((65535, 2))),
        (64 * 4 + 1, 2, None),
        (1 << 31, 65535, Some((65535, 513))),
    ];
    for (threads, limit, expected) in cases {
        assert_eq!(
            grid(threads, limit),
            expected,
            "{threads} threads, {limit} a dimension"
        );
    }
}

#[test]
fn threads_of_the_largest_grid_are_counted_in_32_bits() {
    for limit in [1, 8, 4096, 5793, 65535, 1 << 20, u32::MAX] {
        let most = most_threads(limit);
        let (x, y) = grid(most, limit).expect("within its limit");
        let last = u64::from(x) * u64::from(y) * 64 - 1;
        assert!(u32::try_from(last).is_ok(), "{last} of {limit}");
    }
    assert_eq!(most_threads(8), 8 * 8 * 64);
}

proptest! {
    /// Every thread of every call is started exactly once, whatever the mix.
    #[test]
    fn tables_start_each_thread_once(rows in prop::collection::vec(1_u32..3000, 1..40), width in 1_u32..9) {
        let mut case = Case::new(&[ops::lerp(width, Timing::Call).expect("valid")]);
        for rows in &rows {
            case.call(0, *rows);
        }
        let plan = case.plan();
        let dispatch = plan.dispatches().next().expect("one dispatch");
        let table = Table::of(dispatch);
        let mut words = vec![0; table.words as usize];
        table.write(dispatch, &mut words);
        let block = 1_u32 << table.params.shift;
        let mut seen: Vec<Vec<u32>> = rows.iter().map(|rows| vec![0; (rows * width).div_ceil(4) as usize]).collect();
        for entry in words.chunks_exact(6) {
            let [first, threads, result, ..] = *entry else { unreachable!() };
            let call = plan.results.iter().position(|span| span.at == result).expect("a call's result");
            prop_assert_eq!(threads as usize, seen[call].len());
            for thread in first..(first + block).min(threads) {
                seen[call][thread as usize] += 1;
            }
        }
        prop_assert!(seen.iter().flatten().all(|count| *count == 1));
        prop_assert_eq!(table.threads, u64::from(table.params.blocks) << table.params.shift);
    }

    /// Every row of every call is in one chunk, in order, and chunks are even.
    #[test]
    fn chunks_cover_each_row_once(
        calls in prop::collection::vec((0_u32..3, 1_u32..3000), 1..60),
        target in 100_u64..200_000,
    ) {
        let graphs = [ops::lerp(3, Timing::Row).expect("valid"), ops::gradients(), ops::sequence(3, Mode::Lerp).expect("valid")];
        let mut case = Case::new(&graphs);
        for (recipe, rows) in &calls {
            case.call(*recipe, *rows);
        }
        let mut covered = vec![0; calls.len()];
        let mut next = (0, 0);
        for chunk in case.chunks(target, target) {
            prop_assert!(chunk.first < chunk.end);
            prop_assert_eq!(next, (chunk.first, chunk.skipped));
            for (index, covered) in covered.iter_mut().enumerate().take(chunk.end).skip(chunk.first) {
                let part = chunk.rows_of(&case.calls, index);
                prop_assert_eq!(part.first, *covered);
                prop_assert!(part.rows > 0);
                *covered += part.rows;
            }
            next = match chunk.left {
                0 => (chunk.end, 0),
                _ => (chunk.end - 1, covered[chunk.end - 1]),
            };
            // Twice the target where nothing could be cut, but for the grain of rows.
            let plan = assemble(&case.recipes, &case.calls, &[], &chunk);
            let bytes = u64::from(plan.words(Slot::INPUTS).max(plan.words(Slot::RESULTS))) * 4;
            prop_assert!(bytes <= 2 * target + 8 * 128, "{bytes} of {target}: {plan}");
        }
        let rows: Vec<u32> = calls.iter().map(|(_, rows)| *rows).collect();
        prop_assert_eq!(covered, rows);
        prop_assert_eq!(case.chunks(u64::MAX, target), [Chunk::all(&case.calls)]);
    }

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
        let sets = [vec![0].into()];
        let plan = assemble(&case.recipes, &case.calls, &sets, &Chunk::all(&case.calls));
        for dispatch in plan.dispatches() {
            for operand in &dispatch.operands {
                if let Operand::Rows { slot, .. } = operand {
                    prop_assert_ne!(*slot, dispatch.output);
                }
            }
        }
    }
}
