//! Suspicion: calls of functions over which devices were lost leave the batches of others, and at
//! last are refused.
//!
//! What was lost over whom is kept in `blame`.

use super::Session;
use super::payload::{Batch, Call};
use super::writes::Refused;
use crate::device::Device;
use crate::error::Error;
use crate::graph::CallerFn;
use crate::plan::Recipe;

impl<D: Device> Session<D> {
    /// Notes whether the device is lost over a batch in flight, by its place.
    pub(super) fn blame(&mut self, at: usize) {
        let functions = self.functions_of(self.queue.flying(at));
        self.blame.lost(&functions);
    }

    /// Notes that the device has answered a batch in flight, by its place.
    pub(super) fn acquit(&mut self, at: usize) {
        if !self.blame.is_empty() {
            let functions = self.functions_of(self.queue.flying(at));
            self.blame.answered(&functions);
        }
    }

    /// Refuses the calls of a batch that is about to be sent, by its place in flight, which apply
    /// a function over which too many devices were lost.
    pub(super) fn refuse_blamed(&mut self, at: usize) {
        if self.blame.is_empty() {
            return;
        }
        let suspects = self.suspects(self.queue.flying(at));
        let refused = suspects.into_iter().enumerate();
        let refused = refused.filter_map(|(place, function)| {
            let function = function.filter(|function| self.blame.is_refused(*function))?;
            let name = CallerFn::numbered(function).map(|of| of.content.name.clone());
            let name = name.unwrap_or_default();
            let why = [
                "every device that was sent the kernel '",
                &name,
                "' was lost",
            ];
            let error = Error::DeviceLost(why.concat());
            Some(Refused { place, error })
        });
        let refused: Vec<Refused> = refused.collect();
        if !refused.is_empty() {
            self.refuse_all(at, refused);
            self.queue.flying_mut(at).purge();
        }
    }

    /// The calls that leave a batch that is about to be sent, by its place in flight, so that
    /// calls under suspicion go by themselves: those calls, or all others where these have to
    /// stay behind them. `None` where nobody has to leave.
    pub(super) fn leaves_of_suspects(&self, at: usize) -> Option<Vec<bool>> {
        if self.blame.is_empty() {
            return None;
        }
        let batch = self.queue.flying(at);
        let suspects = self.suspects(batch);
        let first = *suspects.first()?;
        if suspects.iter().all(|suspect| *suspect == first) {
            return None;
        }
        let mut leaves: Vec<bool> = suspects.iter().map(Option::is_some).collect();
        self.keep_order_of_parked(batch, &mut leaves);
        if !leaves.contains(&false) {
            // The oldest call stays behind nobody, and so it is under suspicion itself.
            leaves = suspects.iter().map(|suspect| *suspect != first).collect();
            self.keep_order_of_parked(batch, &mut leaves);
        }
        Some(leaves)
    }

    /// For each call of a batch the function under suspicion that the device is to apply for it.
    fn suspects(&self, batch: &Batch) -> Vec<Option<u32>> {
        let suspect = |call: &Call| match call.work.is_cpu_share {
            true => None,
            false => self
                .blame
                .suspect(&functions(self.programs.recipes(), call)),
        };
        batch.calls().iter().map(suspect).collect()
    }

    /// The functions of callers that the device applies for a batch, each once.
    fn functions_of(&self, batch: &Batch) -> Vec<u32> {
        let mut found = Vec::new();
        for call in batch.calls().iter().filter(|call| !call.work.is_cpu_share) {
            for function in functions(self.programs.recipes(), call) {
                if !found.contains(&function) {
                    found.push(function);
                }
            }
        }
        found
    }
}

/// The functions of callers that a call applies, by their numbers.
pub(super) fn functions(recipes: &[Recipe], call: &Call) -> Vec<u32> {
    recipes[call.work.planned.recipe.0 as usize].caller_fns()
}
