//! In a page one thread computes everything: WebAssembly has no other.

use super::Work;

/// Computes a dispatch on this thread.
pub(crate) fn share(work: &Work<'_>, output: &mut [u32]) {
    work.alone(output);
}
