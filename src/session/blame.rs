//! Blame: which functions of callers devices were at work on when they were lost.
//!
//! A function that never comes to an end can take a device down. After a loss its calls go in
//! batches of their own, so that the next loss is laid at one door; and calls of one over which
//! too many devices were lost are refused. Who goes with whom is decided in `suspicion`.

use super::recovery::ATTEMPTS;

/// The functions under suspicion, by their numbers, and the losses that each was there for with no
/// answer in between.
#[derive(Debug, Default)]
pub(super) struct Blame(Vec<Suspect>);

#[derive(Debug)]
struct Suspect {
    function: u32,
    losses: u32,
}

impl Blame {
    /// Whether nobody is under suspicion.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that a device was lost over a batch with these functions.
    pub(super) fn lost(&mut self, functions: &[u32]) {
        for function in functions {
            match self.0.iter_mut().find(|known| known.function == *function) {
                Some(known) => known.losses += 1,
                None => self.0.push(Suspect {
                    function: *function,
                    losses: 1,
                }),
            }
        }
    }

    /// Notes that a device has answered a batch with these functions.
    pub(super) fn answered(&mut self, functions: &[u32]) {
        self.0
            .retain(|known| known.losses >= ATTEMPTS || !functions.contains(&known.function));
    }

    /// Which of these functions is under suspicion: of several the one of most losses.
    pub(super) fn suspect(&self, functions: &[u32]) -> Option<u32> {
        let known = self
            .0
            .iter()
            .filter(|known| functions.contains(&known.function));
        let worst = known.max_by_key(|known| known.losses);
        worst.map(|worst| worst.function)
    }

    /// Whether too many devices were lost over a function.
    pub(super) fn is_refused(&self, function: u32) -> bool {
        let mut known = self.0.iter();
        known.any(|known| known.function == function && known.losses >= ATTEMPTS)
    }
}
