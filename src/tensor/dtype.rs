//! Element types, how the values of each are encoded, and the formats of rows.
//!
//! How tensors on the device are packed is said in `packing`.

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// A 32-bit float.
    F32,
    /// An interpolation parameter: a 32-bit float that must not be NaN.
    Parameter,
    /// An interpolation parameter of states: given as a float, clamped to [0, 1] and encoded in
    /// 16.16 fixed point; NaN is refused.
    Fraction,
    /// How far to descend: given as a float and encoded in units of 2⁻²², up to 512 either way,
    /// which is farther than any state can go; NaN is refused.
    Rate,
    /// A state: 16 layers, a byte each.
    State,
    /// A 32-bit index, as `argmax` gives and `gather` takes.
    U32,
    /// A 32-bit whole number with a sign.
    I32,
}

impl DType {
    /// Words that one element takes.
    pub const fn words(self) -> u32 {
        match self {
            DType::F32
            | DType::Parameter
            | DType::Fraction
            | DType::Rate
            | DType::U32
            | DType::I32 => 1,
            DType::State => 4,
        }
    }

    /// The encoded word of a value that a caller gave, or `None` where the type refuses the
    /// value.
    pub fn encode(self, word: u32) -> Option<u32> {
        match self {
            DType::F32 | DType::State | DType::U32 | DType::I32 => Some(word),
            DType::Parameter => (!f32::from_bits(word).is_nan()).then_some(word),
            DType::Fraction => {
                let t = f32::from_bits(word);
                (!t.is_nan()).then(|| fixed_16_16(t))
            }
            DType::Rate => {
                let rate = f32::from_bits(word);
                (!rate.is_nan()).then(|| fixed_10_22(rate))
            }
        }
    }

    /// Encodes many values in place, in about the time that copying takes.
    ///
    /// # Errors
    ///
    /// The place of the first value that is refused. No value is changed then.
    pub fn encode_all(self, words: &mut [u32]) -> Result<(), usize> {
        if !self.is_encoded() {
            return Ok(());
        }
        // Types refuse nothing but NaN, whose bits without the sign are the largest.
        let magnitude = |word: &u32| word & !SIGN;
        let largest = words.iter().map(magnitude).fold(0, u32::max);
        if largest > INFINITY {
            let is_nan = |word: &u32| magnitude(word) > INFINITY;
            return Err(words.iter().position(is_nan).unwrap_or_default());
        }
        match self {
            DType::Fraction => replace(words, fixed_16_16),
            DType::Rate => replace(words, fixed_10_22),
            DType::F32 | DType::Parameter | DType::State | DType::U32 | DType::I32 => {}
        }
        Ok(())
    }

    /// Whether values must pass through [`DType::encode`] on their way in.
    pub const fn is_encoded(self) -> bool {
        matches!(self, DType::Parameter | DType::Fraction | DType::Rate)
    }

    /// What messages call a value of this type.
    pub const fn operand_name(self) -> &'static str {
        match self {
            DType::Rate => "rate",
            DType::F32
            | DType::Parameter
            | DType::Fraction
            | DType::State
            | DType::U32
            | DType::I32 => "t",
        }
    }
}

/// The sign among the bits of a float.
const SIGN: u32 = 1 << 31;

/// The bits of infinity.
const INFINITY: u32 = f32::INFINITY.to_bits();

/// The format of a row: elements of one type, such as the four floats of a quaternion.
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

fn replace(words: &mut [u32], encode: impl Fn(f32) -> u32) {
    for word in words {
        *word = encode(f32::from_bits(*word));
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to [0, 65536], where both are exact"
)]
fn fixed_16_16(t: f32) -> u32 {
    // The product with a power of two is exact, so that only the conversion rounds.
    (t.clamp(0.0, 1.0) * 65536.0).round_ties_even() as u32
}

/// A rate in units of 2⁻²², as a signed number. Invariant: the magnitude has at most 31 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast to an integer saturates"
)]
fn fixed_10_22(rate: f32) -> u32 {
    // The product with a power of two is exact, so that only the conversion rounds.
    let units = (rate * 4_194_304.0).round_ties_even() as i32;
    units.max(-i32::MAX).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_and_rates_are_clamped_and_rounded_once() {
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
        let rates = [
            (0.0, 0),
            (-0.0, 0),
            (1.0, 1 << 22),
            (-1.5, -3 << 21),
            (0.5_f32.powi(23), 0),
            (1.5 * 0.5_f32.powi(22), 2),
            (512.0, i32::MAX),
            (-512.0, -i32::MAX),
            (f32::MAX, i32::MAX),
            (f32::NEG_INFINITY, -i32::MAX),
        ];
        for (rate, expected) in rates {
            let word = f32::to_bits(rate);
            let encoded = DType::Rate.encode(word).map(u32::cast_signed);
            assert_eq!(encoded, Some(expected), "rate = {rate}");
        }
        assert_eq!(DType::Rate.encode(f32::NAN.to_bits()), None);
        assert_eq!(DType::Fraction.encode(f32::NAN.to_bits()), None);
        assert_eq!(DType::Parameter.encode(f32::NAN.to_bits()), None);
    }
    #[test]
    fn many_are_encoded_as_each_alone() {
        let numbers = [0.0, -0.0, 0.3, 1.0, -7.5, 1e30, f32::MAX, f32::INFINITY];
        let nans = [f32::NAN, -f32::NAN, f32::from_bits(0xff80_0001)];
        for dtype in [
            DType::F32,
            DType::Parameter,
            DType::Fraction,
            DType::Rate,
            DType::State,
            DType::U32,
            DType::I32,
        ] {
            let given = numbers.map(f32::to_bits);
            let mut words = given;
            assert_eq!(dtype.encode_all(&mut words), Ok(()));
            assert_eq!(words.map(Some), given.map(|word| dtype.encode(word)));
            for (at, nan) in nans.into_iter().enumerate() {
                let mut with = [given.as_slice(), &[nan.to_bits()], &given].concat();
                with.swap(at, given.len());
                let before = with.clone();
                let refused = dtype.is_encoded().then_some(at);
                assert_eq!(dtype.encode_all(&mut with).err(), refused);
                assert_eq!(with, before);
            }
        }
    }
}
