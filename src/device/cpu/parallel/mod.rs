//! Divides a dispatch: natively all cores compute some lines of the result each. What a line
//! is, and how it is computed, is not known here; a line's bits do not depend on which core
//! computes it.

#[cfg(not(target_arch = "wasm32"))]
#[path = "cores_native.rs"]
mod cores;
#[cfg(target_arch = "wasm32")]
#[path = "cores_web.rs"]
mod cores;

pub(super) use self::cores::share;

use std::ops::Range;

use super::program::Output;

/// The lines of a call's result, which lie one after the other.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "a page's one thread asks for no sizes")]
pub(super) struct Size {
    /// Word of the output where the lines begin.
    pub(super) start: usize,
    pub(super) lines: usize,
    /// Words of a line.
    pub(super) words: usize,
    /// Work of a line, in passes over one value.
    pub(super) work: usize,
}

/// Some calls, or some lines of one.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) calls: Range<usize>,
    /// Lines of its one call; `None` for all lines of all its calls.
    pub(super) lines: Option<Range<usize>>,
}

/// The calls of a dispatch.
pub(super) struct Work<'a> {
    pub(super) calls: usize,
    /// A call's size; `None` if its lines do not lie one after the other.
    #[allow(dead_code, reason = "a page's one thread asks for no sizes")]
    pub(super) size: &'a dyn Fn(usize) -> Option<Size>,
    /// Computes a task, into the part of the output that holds its lines.
    pub(super) run: &'a (dyn Fn(Task, Output<'_>) + Sync),
}

impl Work<'_> {
    /// Computes everything on this thread.
    fn alone(&self, output: &mut [u32]) {
        let task = Task {
            calls: 0..self.calls,
            lines: None,
        };
        let output = Output {
            words: output,
            start: 0,
        };
        (self.run)(task, output);
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
