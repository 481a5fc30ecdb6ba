//! Named kernels, which are written by hand, and the facts that the planner needs of each.
//!
//! The text of kernels is in `kernel`, and their twins are in `device/cpu`.

use super::effort::{operations, terms};
use super::{Effort, Kind};
use crate::graph::searching::Scan;
use crate::graph::{Expr, Timing};

/// A kernel that is written by hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// Interpolates floats: `(1 − t)·a + t·b`.
    Lerp,
    /// Interpolates quaternions along the shorter arc.
    Slerp,
    /// Interpolates quaternions along the chord of the shorter arc, and normalizes the result.
    Nlerp,
    /// Evaluates cubic Bézier curves of floats.
    Bezier,
    /// Differentiates states.
    StateGradients,
    /// Differentiates a caller's field, which is part of the kernel's text.
    StateField(Expr),
    /// Interpolates states.
    StateInterpolate,
    /// Interpolates states at all steps of a sequence.
    StateSequence,
    /// Evaluates cubic Bézier curves of states.
    StateBezier,
    /// Measures how far apart states are.
    StateDistance,
    /// Moves states one step down their gradient.
    StateDescend,
    /// Samples clips.
    Clip,
    /// Compares queries with the vectors of an index page, and keeps the nearest of each band.
    TopKScan(Scan),
    /// Merges, for each query, what the bands of all pages kept.
    TopKMerge,
    /// Packs vectors of a tensor in an index page.
    PackVectors,
}

/// What a named kernel is told besides its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Elements in a row; of a sequence, elements in a row of the result.
    pub width: u32,
    /// Whether t is an operand with a value for each row, or the call's scalar.
    pub timing: Timing,
    /// A variant of the kernel, as the kernel's WGSL file says.
    pub mode: u32,
}

/// How a kernel counts the threads of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// One for four floats.
    Quads,
    /// One for each element of a row.
    Elements,
    /// A number of threads for each row.
    Row(u32),
    /// The number of threads that the recipe gives.
    Counted,
}

/// What the planner knows of a named kernel.
struct Facts {
    name: &'static str,
    /// Bound operands, the scalar included.
    operands: usize,
    threads: Threads,
    /// The operations for each element of a row, or for each row.
    effort: (Kind, f64, Unit),
}

/// What an effort is for.
#[derive(Clone, Copy)]
enum Unit {
    Element,
    Row,
}

/// The mode of [`Named::StateDistance`] that measures in steps of rho and theta.
pub const GEODESIC: u32 = 1;

/// Layers of a state.
const LAYERS: f64 = 16.0;

impl Named {
    /// Every kernel whose text does not depend on a call.
    pub const ALL: [Named; 13] = [
        Named::Lerp,
        Named::Slerp,
        Named::Nlerp,
        Named::Bezier,
        Named::StateGradients,
        Named::StateInterpolate,
        Named::StateSequence,
        Named::StateBezier,
        Named::StateDistance,
        Named::StateDescend,
        Named::Clip,
        Named::TopKMerge,
        Named::PackVectors,
    ];

    const fn facts(&self) -> Facts {
        use Kind::{Blend, Layer, Term, Turn};
        use Threads::{Counted, Elements, Quads, Row};
        let (name, operands, threads, effort) = match self {
            Named::Lerp => ("lerp", 3, Quads, (Blend, 1.0, Unit::Element)),
            Named::Slerp => ("slerp", 3, Row(1), (Turn, 1.0, Unit::Row)),
            Named::Nlerp => ("nlerp", 3, Row(1), (Blend, 8.0, Unit::Row)),
            Named::Bezier => ("bezier", 5, Quads, (Blend, 2.0, Unit::Element)),
            Named::StateGradients => ("state_gradients", 1, Row(8), of_layers(1.0)),
            // Two differences of the field along each of two axes, counted in the field's terms.
            Named::StateField(_) => ("state_field", 1, Row(16), (Term, 4.0 * LAYERS, Unit::Row)),
            Named::StateInterpolate => ("state_interpolate", 3, Row(1), of_layers(8.0)),
            Named::StateSequence => {
                let effort = (Layer, 8.0 * LAYERS, Unit::Element);
                ("state_sequence", 2, Elements, effort)
            }
            Named::StateBezier => ("state_bezier", 5, Row(1), of_layers(128.0)),
            Named::StateDistance => ("state_distance", 2, Row(1), of_layers(6.0)),
            Named::StateDescend => ("state_descend", 2, Row(1), of_layers(4.0)),
            Named::Clip => ("clip", 2, Counted, (Term, 0.0, Unit::Row)),
            Named::TopKScan(_) => ("top_k_scan", 2, Counted, (Term, 0.0, Unit::Row)),
            Named::TopKMerge => ("top_k_merge", 1, Counted, (Term, 0.0, Unit::Row)),
            Named::PackVectors => ("pack_vectors", 2, Counted, (Term, 0.0, Unit::Row)),
        };
        Facts {
            name,
            operands,
            threads,
            effort,
        }
    }

    /// The name in plans and in profilers.
    pub const fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Bound operands, the scalar included.
    pub const fn operands(&self) -> usize {
        self.facts().operands
    }

    /// Whether segments count rows, each of which is computed by itself, and not threads.
    pub const fn is_by_row(&self) -> bool {
        !matches!(self.facts().threads, Threads::Counted)
    }

    /// Threads of a call of `rows` rows. A count that 32 bits do not hold is `u32::MAX`, which no
    /// device starts.
    pub fn threads(&self, rows: u32, settings: &Settings) -> u32 {
        match self.facts().threads {
            Threads::Quads => rows.saturating_mul(settings.width).div_ceil(4),
            Threads::Elements => rows.saturating_mul(settings.width),
            Threads::Row(each) => rows.saturating_mul(each),
            Threads::Counted => rows,
        }
    }

    /// What a row computes. What a row of clips, of a search or of an insertion
    /// computes is said by the recipe.
    pub fn effort(&self, settings: &Settings) -> Effort {
        let (kind, count, unit) = self.facts().effort;
        let times = match (self, unit) {
            (Named::StateField(field), _) => terms(field),
            (_, Unit::Element) => f64::from(settings.width),
            (_, Unit::Row) => 1.0,
        };
        Effort::of(kind, count * times)
    }

    /// Floating-point operations of a row: those of the formula, of which a root, a sine and an
    /// arc tangent are one each. NaN where they depend on what the kernel finds in a tensor.
    pub fn flops(&self, settings: &Settings) -> f64 {
        let width = f64::from(settings.width);
        let (each, times) = match self {
            // A difference, two products and a sum.
            Named::Lerp => (4.0, width),
            // 1 - t, and for the four points 3, 4, 4 and 3 products, and three sums.
            Named::Bezier => (18.0, width),
            // Seven for each of two products of vectors, 13 for the sum, 5 for its length.
            Named::Nlerp => (32.0, 1.0),
            // Seven for the product of vectors, 27 for the angle between both, 1 + 2 * 4 for the
            // weights, 12 for the sum.
            Named::Slerp => (55.0, 1.0),
            // Four values of the field, and their places, differences and scales.
            Named::StateField(field) => (4.0 * operations(field) + 8.0, LAYERS),
            // A root and a sum; for straight distances 9 in front of these.
            Named::StateDistance if settings.mode == GEODESIC => (2.0, LAYERS),
            Named::StateDistance => (11.0, LAYERS),
            // Computed in integers, or looked up in a table.
            Named::StateGradients
            | Named::StateInterpolate
            | Named::StateSequence
            | Named::StateBezier
            | Named::StateDescend => (0.0, 1.0),
            Named::Clip | Named::TopKScan(_) | Named::TopKMerge | Named::PackVectors => {
                (f64::NAN, 1.0)
            }
        };
        each * times
    }
}

/// A number of operations for each layer of a state.
const fn of_layers(count: f64) -> (Kind, f64, Unit) {
    (Kind::Layer, LAYERS * count, Unit::Row)
}
