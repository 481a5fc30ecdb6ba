//! Tuned values: where a session goes by what its tuner says, and what it tells of that.
//!
//! How values follow from what batches took is not decided here.

use super::Session;
use super::tuning::{Kept, Tuning};
use crate::device::Device;

impl<D: Device> Session<D> {
    /// What is tuned to the load, and by what.
    pub fn tuning(&self) -> Tuning {
        self.tuner.tuning()
    }

    /// What is tuned, for [`Session::restore_tuning`] of later sessions on the same adapter.
    pub fn kept_tuning(&self) -> Kept {
        self.tuner.kept()
    }

    /// Goes by what an earlier session on the same adapter kept. What cannot be right is
    /// ignored.
    pub fn restore_tuning(&mut self, kept: &[f64]) {
        if self.tuner.restore(kept) {
            self.retune();
        }
    }

    /// Whether a tuned value has changed since this was asked last.
    pub fn take_retuned(&mut self) -> bool {
        std::mem::take(&mut self.is_retuned)
    }

    /// Goes by the values that are tuned.
    pub(super) fn retune(&mut self) {
        if let Some(wait) = self.tuner.tuning().wait_ms {
            self.queue.limit_wait(wait);
        }
        self.fit_batches();
    }
}
