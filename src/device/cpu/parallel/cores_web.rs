//! A page's WebAssembly has one thread.

use super::Work;

/// Computes a dispatch.
pub(crate) fn share(work: &Work<'_>, output: &mut [u32]) {
    work.alone(output);
}
