//! What kernels have in common: their bindings, the size of their workgroups, and the WGSL
//! in front of them.

use crate::program::RESULT;

/// The binding of the segment table.
pub const SEGMENTS: u32 = RESULT + 1;

/// The binding of the params.
pub const PARAMS: u32 = RESULT + 2;

/// Threads in a workgroup; the WGSL constant of the same name.
pub const WORKGROUP: u32 = 64;

/// Threads that share a band of an index, or the results of a query.
pub const LANES: u32 = WORKGROUP;

/// What finds a thread's call, in front of every kernel.
pub(super) const SEGMENTS_LIBRARY: &str = shader!("segments");

/// The functions of expressions; a kernel of some has `builtin` or `math` beside it.
pub(super) const FUNCTIONS: &str = shader!("functions");
