//! Drift: the factor follows what is measured.
//!
//! `PROPTEST_CASES` is how many measurements are tried.

use proptest::prelude::*;

use super::*;

#[test]
fn short_times_add_up_before_the_factor_moves() {
    let mut drift = Drift::default();
    for _ in 0..3 {
        drift.note(0.25, 0.5);
        drift.note(0.0, 0.0);
    }
    assert_eq!(drift.factor, 1.25, "moved once, after a millisecond");
}

#[test]
fn a_factor_fades_towards_one() {
    let mut drift = Drift::default();
    drift.note(1.0, 100.0);
    let slow = drift.factor;
    (0..16).for_each(|_| drift.fade());
    assert!(1.0 < drift.factor && drift.factor < slow);
}

proptest! {
    /// A factor is never farther off than is allowed, and in the end as far as what is
    /// measured again and again.
    #[test]
    fn a_factor_follows_within_bounds(noise in prop::collection::vec(0.0..1e4_f64, 0..50), ratio in 0.01..100.0_f64) {
        let mut drift = Drift::default();
        for took in noise {
            let before = drift.factor;
            drift.note(2.0, took);
            prop_assert!((1.0 / FARTHEST..=FARTHEST).contains(&drift.factor));
            prop_assert!(drift.factor <= before * STEP && drift.factor >= before / STEP);
        }
        for _ in 0..200 {
            drift.note(2.0, 2.0 * ratio);
        }
        let expected = ratio.clamp(1.0 / FARTHEST, FARTHEST);
        prop_assert!((drift.factor / expected - 1.0).abs() < 0.01, "{} is not {expected}", drift.factor);
    }
}
