//! The chunks that batches are cut into, and the plans of chunks as text.

use super::*;

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
        let plan = assemble(&case.recipes, &case.calls, NamedTensors::default(), chunk);
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
            NamedTensors {
                sets: &weights,
                ..NamedTensors::default()
            },
            &Chunk::all(&case.calls),
        );
        assert_eq!(plan.dispatches().count(), stages);
        // 1.3 MB of operands, and as much of results.
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

/// The recipe of so many products of two numbers each, summed along axes, if any are given.
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
            .reduce(Reduction::Sum, y, Axes::of(summed))
            .expect("three axes");
    }
    chain.output(y).expect("its own");
    Recipe::fuse(&chain, &[])
}

#[test]
fn threads_that_no_number_counts_are_cut_or_refused() {
    // Each product takes a workgroup.
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
            tensors: NamedTensors {
                sets: &[[0, 1].into()],
                ..NamedTensors::default()
            },
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

proptest! {
    /// Every row of every call is in one chunk, in order, and the chunks are about equal.
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
                let slice = chunk.rows_of(&case.calls, index);
                prop_assert_eq!(slice.first, *covered);
                prop_assert!(slice.rows > 0);
                *covered += slice.rows;
            }
            next = match chunk.left {
                0 => (chunk.end, 0),
                _ => (chunk.end - 1, covered[chunk.end - 1]),
            };
            // A chunk may have twice the target where no call could be cut, and some rows more,
            // because cuts are at multiples of four rows.
            let plan = assemble(&case.recipes, &case.calls, NamedTensors::default(), &chunk);
            let bytes = u64::from(plan.words(Slot::INPUTS).max(plan.words(Slot::RESULTS))) * 4;
            prop_assert!(bytes <= 2 * target + 8 * 128, "{bytes} of {target}: {plan}");
        }
        let rows: Vec<u32> = calls.iter().map(|(_, rows)| *rows).collect();
        prop_assert_eq!(covered, rows);
        prop_assert_eq!(case.chunks(u64::MAX, target), [Chunk::all(&case.calls)]);
    }
}
