//! Variants that several row ops have.
//!
//! The row ops themselves are in `ops`.

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
