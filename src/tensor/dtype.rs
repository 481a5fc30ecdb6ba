//! Element types and the format of a row.

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// A 32-bit float.
    F32,
    /// An interpolation parameter: a 32-bit float that must not be NaN.
    Parameter,
    /// An interpolation parameter of states: given as a float, clamped to
    /// [0, 1] and kept as 16.16 fixed point; NaN is refused.
    Fraction,
    /// A state: 16 layers, a byte each.
    State,
    /// A 32-bit place, as `argmax` gives and `gather` takes.
    U32,
}

impl DType {
    /// Words that one element takes.
    pub const fn words(self) -> u32 {
        match self {
            DType::F32 | DType::Parameter | DType::Fraction | DType::U32 => 1,
            DType::State => 4,
        }
    }

    /// The word that the core keeps for a value a caller gave, or `None` where
    /// the type refuses it.
    pub fn encode(self, word: u32) -> Option<u32> {
        match self {
            DType::F32 | DType::State | DType::U32 => Some(word),
            DType::Parameter => (!f32::from_bits(word).is_nan()).then_some(word),
            DType::Fraction => {
                let t = f32::from_bits(word);
                (!t.is_nan()).then(|| fixed_16_16(t))
            }
        }
    }

    /// Whether values must pass through [`DType::encode`] on their way in.
    pub const fn is_encoded(self) -> bool {
        matches!(self, DType::Parameter | DType::Fraction)
    }
}

/// Elements of one type that make up a row, e.g. four floats of a quaternion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// The type of each element.
    pub dtype: DType,
    /// Elements in a row.
    pub width: u32,
}

impl Format {
    /// Words that a row takes.
    pub const fn words(self) -> u32 {
        self.dtype.words() * self.width
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to [0, 65536], where both are exact"
)]
fn fixed_16_16(t: f32) -> u32 {
    // The product with a power of two is exact, so this rounds once.
    (t.clamp(0.0, 1.0) * 65536.0).round_ties_even() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_clamped_and_rounded_once() {
        let cases = [
            (0.0, 0),
            (-0.0, 0),
            (-3.0, 0),
            (1.0, 65536),
            (2.0, 65536),
            (f32::INFINITY, 65536),
            (0.5, 32768),
            (0.5 / 65536.0, 0),
            (1.5 / 65536.0, 2),
            (2.5 / 65536.0, 2),
        ];
        for (t, expected) in cases {
            let word = f32::to_bits(t);
            assert_eq!(DType::Fraction.encode(word), Some(expected), "t = {t}");
        }
        assert_eq!(DType::Fraction.encode(f32::NAN.to_bits()), None);
        assert_eq!(DType::Parameter.encode(f32::NAN.to_bits()), None);
    }
}
