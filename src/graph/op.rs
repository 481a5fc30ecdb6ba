//! Variants of ops: of row ops, and of products.
//!
//! The row ops themselves are in `ops`, the ops of chains in `chain`.

/// How the phase of a state moves between two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Straight from θa to θb.
    Lerp,
    /// Along the shorter arc.
    Slerp,
}

/// What is summed over the layers of two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// |z_a − z_b|, the layers taken as complex numbers.
    Straight,
    /// √(Δρ² + Δθ²), Δθ along the shorter arc.
    Geodesic,
}

/// Whether every row has a t of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Timing {
    /// One t for the call.
    #[default]
    Call,
    /// One t for each row.
    Row,
}

/// What products of matrices are computed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    F32,
    /// 16-bit floats, where a device has them, and 32-bit floats elsewhere. Factors are rounded to
    /// 16 bits; 32 products in a row are summed in 16 bits, and these sums in 32.
    F16,
}

impl Precision {
    /// Both, in the order of their numbers on the wire.
    pub const ALL: [Precision; 2] = [Precision::F32, Precision::F16];

    /// This precision where it is offered, and 32-bit floats elsewhere.
    #[must_use]
    pub fn within(self, offered: Precision) -> Precision {
        match offered {
            Precision::F32 => Precision::F32,
            Precision::F16 => self,
        }
    }
}
