//! HOW one op is computed: the catalog of kernels.
//!
//! A kernel is WGSL source plus the few facts a planner needs about its grid.
//! Nothing is compiled or run here, and the CPU twin of each kernel lives in
//! `device/cpu`.

/// Appends to a text; it takes all there is.
macro_rules! put {
    ($text:expr, $($part:tt)*) => {{
        let _ = std::fmt::Write::write_fmt($text, format_args!($($part)*));
    }};
}

/// A shader as `build.rs` left it.
macro_rules! shader {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name, ".wgsl"))
    };
}

mod expr;
pub mod generated;
mod scan;
mod tables;

pub use crate::program::{MAX_OPERANDS, RESULT};
pub use tables::{COSINES, FINE_SLOPES, MAGNITUDES, SLOPES};

/// Expressions that kernels are made for.
pub use crate::graph::{BinaryFn, Expr, Term, TermId, UnaryFn, sampling, searching};

use std::sync::Arc;

use self::searching::Scan;
use crate::graph::Timing;
use crate::program::{Products, Stage, Tiles};

/// The binding of the segment table.
pub const SEGMENTS: u32 = RESULT + 1;

/// The binding of the params.
pub const PARAMS: u32 = RESULT + 2;

/// Threads in a workgroup; the WGSL constant of the same name.
pub const WORKGROUP: u32 = 64;

/// Threads that share a chunk of an index, or the results of a query.
pub const LANES: u32 = WORKGROUP;

/// What finds a thread's call, in front of every kernel.
const SEGMENTS_LIBRARY: &str = shader!("segments");

/// The functions of expressions; a kernel of some has `builtin` or `math` beside it.
const FUNCTIONS: &str = shader!("functions");

/// A kernel: one pipeline on a GPU, one function on the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// `(1 − t)·a + t·b`.
    Lerp,
    /// Quaternions along the shorter arc.
    Slerp,
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
    Scan(Scan),
    /// The best of what they found.
    Best,
    /// A stage that fusion made, but for products.
    Fused(Arc<Stage>),
    /// A stage of products in tiles of a size.
    Product(Arc<Stage>, Products, Tiles),
}

/// What a kernel is told besides its operands.
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

impl Kernel {
    /// Every kernel that is written by hand.
    pub const ALL: [Kernel; 11] = [
        Kernel::Lerp,
        Kernel::Slerp,
        Kernel::Bezier,
        Kernel::StateGradients,
        Kernel::StateInterpolate,
        Kernel::StateSequence,
        Kernel::StateBezier,
        Kernel::StateDistance,
        Kernel::StateDescend,
        Kernel::Clip,
        Kernel::Best,
    ];

    /// The name in plans and in profilers.
    pub const fn name(&self) -> &'static str {
        match self {
            Kernel::Lerp => "lerp",
            Kernel::Slerp => "slerp",
            Kernel::Bezier => "bezier",
            Kernel::StateGradients => "state_gradients",
            Kernel::StateField(_) => "state_field",
            Kernel::StateInterpolate => "state_interpolate",
            Kernel::StateSequence => "state_sequence",
            Kernel::StateBezier => "state_bezier",
            Kernel::StateDistance => "state_distance",
            Kernel::StateDescend => "state_descend",
            Kernel::Clip => "clip",
            Kernel::Scan(_) => "scan",
            Kernel::Best => "best",
            Kernel::Fused(_) | Kernel::Product(..) => "fused",
        }
    }

    /// Complete WGSL source, libraries included.
    pub fn source(&self) -> String {
        let (field, scan);
        let (library, body) = match self {
            Kernel::Lerp => ("", shader!("lerp")),
            Kernel::Slerp => (shader!("arc"), shader!("slerp")),
            Kernel::Bezier => ("", shader!("bezier")),
            Kernel::StateGradients => ("", shader!("state_gradients")),
            Kernel::StateField(expr) => {
                let mut function = String::from("fn field(v0: F, v1: F, v2: F) -> F {\n");
                let value = expr::print(&mut function, expr, ("t", usize::MAX));
                put!(&mut function, "return {value};\n}}");
                field = [shader!("math"), FUNCTIONS, &function].join("\n");
                (field.as_str(), shader!("state_field"))
            }
            Kernel::StateInterpolate => (shader!("states"), shader!("state_interpolate")),
            Kernel::StateSequence => (shader!("states"), shader!("state_sequence")),
            Kernel::StateBezier => ("", shader!("state_bezier")),
            Kernel::StateDistance => ("", shader!("state_distance")),
            Kernel::StateDescend => ("", shader!("state_descend")),
            Kernel::Clip => (shader!("arc"), shader!("clip")),
            Kernel::Scan(of) => {
                scan = scan::source(of);
                (shader!("lists"), scan.as_str())
            }
            Kernel::Best => (shader!("lists"), shader!("best")),
            Kernel::Fused(stage) => return generated::source(stage, Tiles::Large),
            Kernel::Product(stage, _, tiles) => return generated::source(stage, *tiles),
        };
        [SEGMENTS_LIBRARY, library, body].join("\n")
    }

    /// Operands it takes, the scalar included.
    pub fn operands(&self) -> usize {
        match self {
            Kernel::Fused(stage) | Kernel::Product(stage, ..) => stage.bindings(),
            Kernel::StateGradients | Kernel::StateField(_) | Kernel::Best => 1,
            Kernel::StateSequence
            | Kernel::StateDistance
            | Kernel::StateDescend
            | Kernel::Clip
            | Kernel::Scan(_) => 2,
            Kernel::Lerp | Kernel::Slerp | Kernel::StateInterpolate => 3,
            Kernel::Bezier | Kernel::StateBezier => 5,
        }
    }

    /// Threads that must stay in one workgroup.
    pub fn group(&self) -> u32 {
        match self {
            Kernel::Fused(stage) | Kernel::Product(stage, ..) => stage.group(),
            Kernel::Scan(_) | Kernel::Best => LANES,
            _ => 1,
        }
    }

    /// Threads that a call of `rows` rows takes. What fusion made counts its
    /// rows in threads, but for flat maps: in vectors of four elements. Samplings
    /// of clips and searches count them in threads too. More than have numbers are as
    /// many as have, which no device starts.
    pub fn threads(&self, rows: u32, settings: &Settings) -> u32 {
        match self {
            Kernel::Fused(stage) if stage.is_flat_map() => rows.div_ceil(generated::VECTORS),
            Kernel::Fused(_)
            | Kernel::Product(..)
            | Kernel::Clip
            | Kernel::Scan(_)
            | Kernel::Best => rows,
            Kernel::Lerp | Kernel::Bezier => rows.saturating_mul(settings.width).div_ceil(4),
            Kernel::StateSequence => rows.saturating_mul(settings.width),
            Kernel::StateGradients => rows.saturating_mul(8),
            Kernel::StateField(_) => rows.saturating_mul(16),
            Kernel::Slerp
            | Kernel::StateInterpolate
            | Kernel::StateBezier
            | Kernel::StateDistance
            | Kernel::StateDescend => rows,
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
