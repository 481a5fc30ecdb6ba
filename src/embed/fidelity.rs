//! What storage in fewer bits is held to: which texts pass a model in both, and how near the
//! vectors must be.

use super::config::Config;
use crate::error::Error;

/// Texts that the storage of any model is tested by: prose, a question in another language, one
/// without spaces, and code.
pub const TEXTS: [&str; 4] = [
    "The cat sat on the mat, and the dog slept.",
    "Wie spät ist es in Zürich? Um 14:30 Uhr!",
    "価格は1,200円です。",
    "def mean(xs): return sum(xs) / len(xs)",
];

/// The most tokens of each of the texts that are used.
pub const MOST_TOKENS: u32 = 32;

/// The least cosine of the vectors in both storages.
const LEAST: f32 = 0.99;

/// Ids that stand in for the tokens of each of the texts where nothing splits these, or into none.
pub fn drawn_ids(config: &Config) -> Vec<Vec<u32>> {
    let tokens = MOST_TOKENS.min(config.max_tokens);
    let draw = |word: u32| {
        let id = ((u64::from(word) * u64::from(config.vocab)) >> 32) as u32;
        match config.padding() {
            // The padding has no position; its neighbor has one.
            Some(padding) if id == padding => padding.checked_sub(1).unwrap_or(1),
            _ => id,
        }
    };
    // Weyl's sequence, with the golden ratio in 32 bits.
    let mut words = (1_u32..).map(|at| at.wrapping_mul(0x9E37_79B1));
    let mut text = || words.by_ref().take(tokens as usize).map(draw).collect();
    TEXTS.iter().map(|_| text()).collect()
}

/// The cosine of two vectors of equal length; 1 for two that are 0, NaN for what is no number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cosine is told in 32-bit floats"
)]
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths == 0.0 && a == b {
        return 1.0;
    }
    (dot(a, b) / lengths) as f32
}

/// Refuses storage, of this name, whose least cosine is too small.
///
/// # Errors
///
/// [`Error::Unsupported`] that names the storage, the cosine and what to do.
pub fn check_fidelity(storage: &str, cosine: f32) -> Result<(), Error> {
    // Written so that NaN is refused.
    if cosine >= LEAST {
        return Ok(());
    }
    Err(Error::Unsupported(
        [
            "as ",
            storage,
            " the model gives other vectors: their cosine with those of the file's own bits is ",
            &in_digits(cosine),
            ", and less than 0.99; load it with the dtype f32, or with verify: false to take it as it is",
        ]
        .concat(),
    ))
}

/// The least cosine of the vectors in both arithmetics.
const LEAST_OF_ARITHMETIC: f32 = 0.9999;

/// Refuses 16-bit arithmetic for a model whose layers leave its range, and where the least cosine of
/// vectors with those of 32-bit arithmetic is too small.
///
/// # Errors
///
/// [`Error::Unsupported`] that names what is wrong and what to do.
pub fn check_arithmetic(config: &Config, cosine: f32) -> Result<(), Error> {
    let refuse = |why: &[&str]| {
        let rest = "; load the model with the arithmetic f32, or auto";
        Err(Error::Unsupported([why, &[rest]].concat().concat()))
    };
    if !config.fits_f16() {
        return refuse(&["in the layers of Gemma are numbers beyond the range of 16-bit floats"]);
    }
    // Written so that NaN is refused.
    if cosine >= LEAST_OF_ARITHMETIC {
        return Ok(());
    }
    refuse(&[
        "in 16-bit arithmetic the model gives other vectors: their cosine with those of 32-bit arithmetic is ",
        &in_digits(cosine),
        ", and less than 0.9999",
    ])
}

/// A cosine with four digits: without the float formatting of the standard library, which is larger
/// than the rest of the test.
fn in_digits(cosine: f32) -> String {
    if cosine.is_nan() {
        return "NaN".into();
    }
    #[expect(clippy::cast_possible_truncation, reason = "a cosine is -1 to 1")]
    let digits = (cosine.abs() * 1e4) as u32;
    let sign = if cosine < 0.0 { "-" } else { "" };
    let rest = (10_000 + digits % 10_000).to_string();
    [sign, &(digits / 10_000).to_string(), ".", &rest[1..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_are_told_in_four_digits() {
        for (cosine, text) in [
            (0.98765, "0.9876"),
            (-0.05, "-0.0500"),
            (1.0, "1.0000"),
            (0.0, "0.0000"),
            (f32::NAN, "NaN"),
        ] {
            assert_eq!(in_digits(cosine), text);
        }
    }

    #[test]
    fn cosines_are_those_of_directions() {
        let cases: [(&[f32], &[f32], f32); 4] = [
            (&[3.0, 4.0], &[6.0, 8.0], 1.0),
            (&[1.0, 0.0], &[0.0, 2.0], 0.0),
            (&[1.0, 1.0], &[-1.0, -1.0], -1.0),
            (&[0.0, 0.0], &[0.0, 0.0], 1.0),
        ];
        for (a, b, expected) in cases {
            assert!((cosine(a, b) - expected).abs() < 1e-6, "{a:?} {b:?}");
        }
        assert!(cosine(&[f32::NAN], &[1.0]).is_nan());
        assert!(cosine(&[0.0], &[1.0]).is_nan());
        assert!(check_fidelity("f16", 0.99).is_ok());
        for wrong in [0.989, -1.0, f32::NAN] {
            assert!(check_fidelity("f16", wrong).is_err());
        }
    }
}
