//! Kernels as WGSL, and the few facts that a planner needs about their grids.
//!
//! A kernel is that of a stage which fusion made, or a named one. Nothing is compiled
//! or run here, and the CPU twin of each kernel lives in `device/cpu`.

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
mod library;
mod named;
mod tables;
mod top_k_scan;

pub use crate::program::{MAX_OPERANDS, Named, RESULT, Settings};
pub use library::{LANES, PARAMS, SEGMENTS, WORKGROUP};
pub use tables::{COSINES, FINE_SLOPES, MAGNITUDES, SLOPES};

/// Expressions that kernels are made for.
pub use crate::graph::{BinaryFn, Expr, Term, TermId, UnaryFn, sampling, searching};

use std::sync::Arc;

use crate::program::{Products, Stage, Tiles};

/// A kernel: one pipeline on a GPU, one function on the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// One that is written by hand.
    Named(Named),
    /// A stage that fusion made, but for products.
    Fused(Arc<Stage>),
    /// A stage of products in tiles of a size.
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

    /// Complete WGSL source, libraries included.
    pub fn source(&self) -> String {
        match self {
            Kernel::Named(kernel) => named::source(kernel),
            Kernel::Fused(stage) => generated::source(stage, Tiles::Large),
            Kernel::Product(stage, _, tiles) => generated::source(stage, *tiles),
        }
    }

    /// Operands it takes, the scalar included.
    pub fn operands(&self) -> usize {
        match self {
            Kernel::Named(kernel) => kernel.operands(),
            Kernel::Fused(stage) | Kernel::Product(stage, ..) => stage.bindings(),
        }
    }

    /// Whether calls count rows, each of which is computed by itself, and no threads.
    pub fn is_by_row(&self) -> bool {
        matches!(self, Kernel::Named(kernel) if kernel.is_by_row())
    }

    /// Threads that must stay in one workgroup.
    pub fn group(&self) -> u32 {
        match self {
            Kernel::Named(Named::TopKScan(_) | Named::TopKMerge) => LANES,
            Kernel::Named(_) => 1,
            Kernel::Fused(stage) | Kernel::Product(stage, ..) => stage.group(),
        }
    }

    /// Threads that a call of `rows` rows takes. What fusion made counts its
    /// rows in threads, but for flat maps: in vectors of four elements. Samplings
    /// of clips and searches count them in threads too. More than have numbers are as
    /// many as have, which no device starts.
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
