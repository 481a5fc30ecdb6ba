//! How far a value may be from the float64 oracle's.

/// Half the distance of floats at 1.
pub(crate) const U: f64 = 1.0 / 16_777_216.0;

/// Compares values with those of the oracle, each within its bound.
pub(crate) fn near(name: &str, got: &[f32], expected: impl ExactSizeIterator<Item = (f64, f64)>) {
    assert_eq!(got.len(), expected.len(), "{name}");
    for (i, (got, (value, bound))) in got.iter().zip(expected).enumerate() {
        let off = (f64::from(*got) - value).abs();
        assert!(
            off <= bound + 1.2e-38,
            "{name}[{i}]: {got} instead of {value} ± {bound:e}"
        );
    }
}
