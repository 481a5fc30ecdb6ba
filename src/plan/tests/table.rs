//! Properties of segment tables and of grids.

use super::*;

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
}
