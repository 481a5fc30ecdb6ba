//! WHAT was asked: chains of tensors, samplings of clips, searches of indexes, insertions and the
//! variants of ops, as plain data.
//!
//! Structures have no values, so that all calls of one structure share it. How, when and where
//! calls are computed is not known here.

mod caller_fn;
pub mod chain;
mod expr;
pub mod insertion;
mod op;
pub mod sampling;
pub mod searching;
pub mod shape;

#[cfg(not(target_arch = "wasm32"))]
#[path = "refuse_native.rs"]
mod refuse;
#[cfg(target_arch = "wasm32")]
#[path = "refuse_web.rs"]
mod refuse;

pub use caller_fn::{
    ADDED, BESIDE, CallerFn, Elements, FnContent, FnForm, FnInput, MARK, ScalarType, Twin,
    ValueType,
};
pub use expr::{BinaryFn, Expr, ExprBuilder, Term, TermId, UnaryFn};
pub use op::{Measure, Mode, Precision, Timing};

/// A node of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// The node's place in [`Chain::nodes`](chain::Chain::nodes).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
