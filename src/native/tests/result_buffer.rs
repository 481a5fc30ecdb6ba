//! Results in parts, and memory that is used again.

use super::{KIND, ask, check, eager, explore};
use crate::native::result_buffer::{MOST, MOST_FLOATS, SMALLEST, Spare, Words};

fn floats(words: &Words) -> &[f32] {
    match words {
        Words::Floats(floats) => floats,
        Words::States(_) => panic!("states"),
    }
}

#[test]
fn parts_come_together_in_memory_that_was_used_before() {
    let used = vec![7.0; 12];
    let place = used.as_ptr();
    let mut words = Words::Floats(used);
    // Two results of three rows each: one row of each result comes at a time.
    let part = |k: u32| [k, k + 1].map(|k| (k as f32).to_bits());
    for (k, at) in [(0, 0), (6, 6), (2, 2), (8, 8), (4, 4), (10, 10)] {
        words.put(&part(k), at, 12);
    }
    let expected: Vec<f32> = (0_u8..12).map(f32::from).collect();
    assert_eq!(floats(&words), expected);
    assert_eq!(floats(&words).as_ptr(), place);
}

#[test]
fn a_shorter_result_leaves_nothing_of_the_one_before() {
    let mut words = Words::Floats(vec![7.0; 12]);
    words.put(&[0; 8], 0, 8);
    assert_eq!(floats(&words), [0.0; 8]);
}

#[test]
fn memory_is_kept_within_bounds_and_fits() {
    let mut spare = Spare::default();
    assert!(spare.give(vec![0.0; SMALLEST - 1]).is_some());
    for floats in [4 * SMALLEST, 2 * SMALLEST, 3 * SMALLEST] {
        assert!(spare.give(vec![0.0; floats]).is_none());
    }
    assert_eq!(spare.take(SMALLEST).capacity(), 2 * SMALLEST);
    assert_eq!(spare.take(SMALLEST).capacity(), 0, "too large for it");
    assert_eq!(spare.take(5 * SMALLEST).capacity(), 0);
    let give = |_: &usize| spare.give(Vec::with_capacity(MOST_FLOATS / 8)).is_none();
    let kept = (0..2 * MOST).filter(give).count();
    assert_eq!(
        kept, 7,
        "less than eight eighths, with those of 3 and 4 left over"
    );
}

#[test]
fn memory_is_kept_only_where_it_will_be_freed() {
    explore(KIND, eager(), |gpu| {
        let kept = || gpu.shared().lock().spare.take(SMALLEST).capacity();
        let give = || gpu.recycle(vec![0.0; SMALLEST]);
        give();
        assert_eq!(kept(), 0, "no batch was sent");
        check(1, ask(&gpu, 1).wait(), &[]);
        give();
        assert_eq!(kept(), SMALLEST, "the worker frees it once it is idle");
        gpu.shared().lock().driver.session.trim();
        give();
        assert_eq!(kept(), 0, "it is idle");
        check(1, ask(&gpu, 1).wait(), &[]);
        give();
        gpu.dispose();
        assert_eq!(kept(), 0, "freed with the session");
        give();
        assert_eq!(kept(), 0, "nobody would free it");
    });
}
