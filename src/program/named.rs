//! Kernels that are written by hand, and the facts that a planner needs of them.
//!
//! Their text is `kernel`'s business, and their twins are the processor's.

use super::effort::terms;
use super::{Effort, Kind};
use crate::graph::searching::Scan;
use crate::graph::{Expr, Timing};

/// A kernel that is written by hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// `(1 − t)·a + t·b`.
    Lerp,
    /// Quaternions along the shorter arc.
    Slerp,
    /// Quaternions on the chord of the shorter arc, made unit again.
    Nlerp,
    /// Floats on cubic Bézier curves.
    Bezier,
    /// Gradients of states.
    StateGradients,
    /// Gradients of a caller's own field, with the field in its source.
    StateField(Expr),
    /// States between states.
    StateInterpolate,
    /// All steps between states.
    StateSequence,
    /// States on cubic Bézier curves.
    StateBezier,
    /// How far apart states are.
    StateDistance,
    /// States one step down their gradient.
    StateDescend,
    /// Clips at times of the calls' own.
    Clip,
    /// Queries against the vectors of an index.
    TopKScan(Scan),
    /// The nearest of what the workgroups of a scan kept, for each query.
    TopKMerge,
}

/// What a named kernel is told besides its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Elements in a row; of a sequence, in a row of the result.
    pub width: u32,
    /// Whether t comes as an operand with a value for each row, or as the
    /// call's scalar.
    pub timing: Timing,
    /// A variant of the kernel; see the WGSL file.
    pub mode: u32,
}

/// Threads that a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// One for four floats.
    Quads,
    /// One for each element of a row.
    Elements,
    /// So many for each row.
    Row(u32),
    /// As many as the call counts itself.
    Counted,
}

/// What is known of a named kernel besides its text.
struct Facts {
    name: &'static str,
    /// Operands that it binds, the scalar included.
    operands: usize,
    threads: Threads,
    /// What it computes of an element of a row, or of a row.
    effort: (Kind, f64, Unit),
}

/// What efforts are counted of.
#[derive(Clone, Copy)]
enum Unit {
    Element,
    Row,
}

/// Layers of a state.
const LAYERS: f64 = 16.0;

impl Named {
    /// Every kernel whose source no call has a part in.
    pub const ALL: [Named; 12] = [
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
            // Counted by the terms of the field: two differences along each of two axes.
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

    /// Operands that it binds, the scalar included.
    pub const fn operands(&self) -> usize {
        self.facts().operands
    }

    /// Whether calls count rows, each of which is computed by itself, and no threads.
    pub const fn is_by_row(&self) -> bool {
        !matches!(self.facts().threads, Threads::Counted)
    }

    /// Threads that a call of `rows` rows takes. More than have numbers are as many as
    /// have, which no device starts.
    pub fn threads(&self, rows: u32, settings: &Settings) -> u32 {
        match self.facts().threads {
            Threads::Quads => rows.saturating_mul(settings.width).div_ceil(4),
            Threads::Elements => rows.saturating_mul(settings.width),
            Threads::Row(each) => rows.saturating_mul(each),
            Threads::Counted => rows,
        }
    }

    /// What a row computes. What clips and searches compute depends on their calls'
    /// sizes, and is not known here.
    pub fn effort(&self, settings: &Settings) -> Effort {
        let (kind, count, unit) = self.facts().effort;
        let times = match (self, unit) {
            (Named::StateField(field), _) => terms(field),
            (_, Unit::Element) => f64::from(settings.width),
            (_, Unit::Row) => 1.0,
        };
        Effort::of(kind, count * times)
    }
}

/// So much for each layer of a state.
const fn of_layers(count: f64) -> (Kind, f64, Unit) {
    (Kind::Layer, LAYERS * count, Unit::Row)
}
