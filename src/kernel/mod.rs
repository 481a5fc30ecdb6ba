//! Kernels as WGSL, and the few facts that the planner needs of their grids.
//!
//! A kernel is written by hand, or printed for a stage that fusion made. Nothing is compiled or
//! run here; the CPU twin of each kernel is in `device/cpu`.

/// Appends formatted text to a string, which never fails.
macro_rules! put {
    ($text:expr, $($part:tt)*) => {{
        let _ = std::fmt::Write::write_fmt($text, format_args!($($part)*));
    }};
}

/// The text of a shader, without comments and with short names, as `build.rs` wrote it.
macro_rules! shader {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name, ".wgsl"))
    };
}

mod caller_fn;
#[cfg(not(target_arch = "wasm32"))]
mod complaint;
mod expr;
pub mod generated;
mod library;
mod named;
mod tables;
mod top_k_scan;

pub use crate::program::{GEODESIC, MAX_OPERANDS, Named, RESULT, Settings};
pub use library::{LANES, PARAMS, SEGMENTS, WORKGROUP};
pub use tables::{COSINES, FINE_SLOPES, MAGNITUDES, SLOPES};

/// What the devices need of `graph` to run kernels, which they may not import.
pub use crate::graph::{
    BinaryFn, CallerFn, Elements, Expr, Precision, Term, TermId, UnaryFn, insertion, sampling,
    searching,
};

use std::sync::Arc;

use crate::program::{Products, Stage, Tiles};

/// A kernel: one pipeline on a GPU, one function on the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// A kernel that is written by hand.
    Named(Named),
    /// The kernel of a stage that fusion made and that computes no product.
    Fused(Arc<Stage>),
    /// The kernel of a stage of products, in tiles of one size.
    Product(Arc<Stage>, Products, Tiles),
}

impl Kernel {
    /// The name in plans and in profilers.
    pub const fn name(&self) -> &'static str {
        match self {
            Kernel::Named(kernel) => kernel.name(),
            Kernel::Fused(_) | Kernel::Product(..) => "fused",
        }
    }

    /// Complete WGSL source, libraries included, for a device that has this precision.
    pub fn source(&self, offered: Precision) -> String {
        match self {
            Kernel::Named(kernel) => named::source(kernel),
            Kernel::Fused(stage) => generated::source(stage, Tiles::Large, offered),
            Kernel::Product(stage, _, tiles) => generated::source(stage, *tiles, offered),
        }
    }

    /// The functions of callers that are part of the kernel, each once.
    pub fn caller_fns(&self) -> Vec<&Arc<CallerFn>> {
        match self {
            Kernel::Named(_) => Vec::new(),
            Kernel::Fused(stage) | Kernel::Product(stage, ..) => stage.caller_fns(),
        }
    }

    /// Bound operands, the scalar included.
    pub fn operands(&self) -> usize {
        match self {
            Kernel::Named(kernel) => kernel.operands(),
            Kernel::Fused(stage) | Kernel::Product(stage, ..) => stage.bindings(),
        }
    }

    /// Whether segments count rows, each of which is computed by itself, and not threads.
    pub fn is_by_row(&self) -> bool {
        matches!(self, Kernel::Named(kernel) if kernel.is_by_row())
    }

    /// How many neighboring threads must be in one workgroup.
    pub fn cooperating_threads(&self) -> u32 {
        match self {
            Kernel::Named(Named::TopKScan(_) | Named::TopKMerge | Named::PackVectors) => LANES,
            Kernel::Named(_) => 1,
            Kernel::Fused(stage) | Kernel::Product(stage, ..) => stage.cooperating_threads(),
        }
    }

    /// Threads of a segment of `rows` rows. Kernels that do not compute by rows count threads as
    /// rows; flat maps count vectors of four elements. A count that 32 bits do not hold is
    /// `u32::MAX`, which no device starts.
    pub fn threads(&self, rows: u32, settings: &Settings) -> u32 {
        match self {
            Kernel::Named(kernel) => kernel.threads(rows, settings),
            Kernel::Fused(stage) if stage.is_flat_map() => rows.div_ceil(generated::VECTORS),
            Kernel::Fused(_) | Kernel::Product(..) => rows,
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
