//! Numbers of the types that kernels know.

use crate::graph::ScalarType;

/// A number of a type of WGSL, such as one that comes with a call of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A float.
    F32(f32),
    /// A whole number with a sign.
    I32(i32),
    /// A whole number without a sign.
    U32(u32),
}

impl Number {
    /// The number of a type that these bits are.
    pub(in crate::native) fn of(kind: ScalarType, bits: u32) -> Number {
        match kind {
            ScalarType::F32 => Number::F32(f32::from_bits(bits)),
            ScalarType::I32 => Number::I32(bits.cast_signed()),
            ScalarType::U32 => Number::U32(bits),
        }
    }

    /// The number's type in WGSL.
    pub(super) fn kind(self) -> ScalarType {
        match self {
            Number::F32(_) => ScalarType::F32,
            Number::I32(_) => ScalarType::I32,
            Number::U32(_) => ScalarType::U32,
        }
    }

    pub(in crate::native) fn as_f64(self) -> f64 {
        match self {
            Number::F32(number) => number.into(),
            Number::I32(number) => number.into(),
            Number::U32(number) => number.into(),
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Number::F32(number) => number.to_bits(),
            Number::I32(number) => number.cast_unsigned(),
            Number::U32(number) => number,
        }
    }
}

impl From<f32> for Number {
    fn from(number: f32) -> Number {
        Number::F32(number)
    }
}

impl From<i32> for Number {
    fn from(number: i32) -> Number {
        Number::I32(number)
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Number {
        Number::U32(number)
    }
}
