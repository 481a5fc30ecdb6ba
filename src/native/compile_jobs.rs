//! Kernels that wait to be compiled, and how many threads compile them.
//!
//! Pure: the threads are in `compiles`, and what is compiled is the session's matter.

use std::collections::VecDeque;

use crate::device::{Compile, Generation};

/// The most compilers at work at once: a GPU driver's compiler takes a core, and calls need cores
/// too.
const MOST: usize = 4;

/// The kernels that wait to be compiled for one generation of a device.
#[derive(Default)]
pub(super) struct CompileJobs {
    generation: Generation,
    waiting: VecDeque<Compile>,
    /// Threads that compile for this generation. Threads of an earlier generation may be caught in
    /// a GPU driver, and do not count.
    compilers: usize,
}

impl CompileJobs {
    /// Takes kernels to compile; how many more threads are to be started, each of which calls
    /// [`CompileJobs::next`] until there is no kernel.
    pub(super) fn add(&mut self, generation: Generation, works: Vec<Compile>) -> usize {
        if generation != self.generation {
            *self = CompileJobs {
                generation,
                ..CompileJobs::default()
            };
        }
        self.waiting.extend(works);
        let wanted = self.waiting.len().min(MOST);
        let more = wanted.saturating_sub(self.compilers);
        self.compilers += more;
        more
    }

    /// The next kernel for a thread that compiles for this generation. With `None` the thread
    /// ends.
    pub(super) fn next(&mut self, generation: Generation) -> Option<Compile> {
        if generation != self.generation {
            return None;
        }
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.compilers -= 1;
        }
        next
    }

    /// Notes that a thread of this generation ended without asking for the next kernel.
    pub(super) fn give_up(&mut self, generation: Generation) {
        if generation == self.generation {
            self.compilers -= 1;
        }
    }

    /// Compiles nothing more; the kernels that waited.
    pub(super) fn clear(&mut self) -> VecDeque<Compile> {
        std::mem::take(&mut self.waiting)
    }

    /// Whether a thread compiles for this generation.
    pub(super) fn is_at_work(&self) -> bool {
        self.compilers > 0
    }
}

impl std::fmt::Debug for CompileJobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} wait for {}", self.waiting.len(), self.compilers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Compiled;

    fn works(count: usize) -> Vec<Compile> {
        let pending = || -> Compile { Box::pin(std::future::pending::<Compiled>()) };
        (0..count).map(|_| pending()).collect()
    }

    #[test]
    fn threads_are_few_however_many_kernels_come() {
        let mut compiles = CompileJobs::default();
        let first = Generation(1);
        let threads: usize = (0..20).map(|_| compiles.add(first, works(3))).sum();
        assert_eq!(threads, MOST);
        let taken = std::iter::from_fn(|| compiles.next(first)).count();
        assert_eq!(taken, 60);
        // The thread that found no kernel has ended; new kernels need another thread.
        assert_eq!(compiles.add(first, works(9)), 1);
        compiles.give_up(first);
        assert_eq!(compiles.add(first, works(1)), 1);
        assert!(compiles.is_at_work());
        assert_eq!(compiles.clear().len(), 10);
        for _ in 0..MOST {
            assert!(compiles.next(first).is_none());
        }
        assert!(!compiles.is_at_work());
    }

    #[test]
    fn what_compiles_for_a_device_that_is_gone_counts_no_more() {
        let mut compiles = CompileJobs::default();
        let [first, second] = [1, 2].map(Generation);
        assert_eq!(compiles.add(first, works(8)), MOST);
        assert_eq!(compiles.add(second, works(2)), 2);
        assert!(compiles.next(first).is_none());
        compiles.give_up(first);
        assert!(compiles.next(second).is_some());
        assert!(compiles.next(second).is_some());
        assert!(compiles.next(second).is_none());
        compiles.give_up(second);
        assert!(!compiles.is_at_work());
    }
}
