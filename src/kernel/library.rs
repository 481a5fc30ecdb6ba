//! What all kernels share: the bindings of the segment table and the params, the size of
//! workgroups, and the WGSL libraries in front.
//!
//! Bindings of operands and of the result are numbered in `program`.

use crate::program::RESULT;

/// The binding of the segment table.
pub const SEGMENTS: u32 = RESULT + 1;

/// The binding of the params.
pub const PARAMS: u32 = RESULT + 2;

/// Threads of a workgroup, as the WGSL constant of the same name.
pub const WORKGROUP: u32 = 64;

/// Threads that scan a band of an index together, merge the results of a query, or pack a vector.
pub const LANES: u32 = WORKGROUP;

/// The functions by which a thread finds its call; in front of every kernel.
pub(super) const SEGMENTS_LIBRARY: &str = shader!("segments");

/// The functions of expressions, which call functions of `builtin` or of `math`.
pub(super) const FUNCTIONS: &str = shader!("functions");
