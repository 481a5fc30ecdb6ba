//! Warm-up: kernels that are compiled before a call needs them.
//!
//! Whoever asks has a ticket, as a call has; but a warm-up is in no batch, and counts
//! nowhere.

use super::Session;
use super::compile_gate::Kernels;
use crate::batch::{Millis, Ticket};
use crate::device::Device;
use crate::error::Error;

impl<D: Device> Session<D> {
    /// Has kernels compiled, again if the device is lost meanwhile. [`Session::warmed`]
    /// answers the ticket.
    pub fn warm_up(&mut self, kernels: Kernels) -> Ticket {
        let ticket = self.queue.number();
        self.gate.warm_up(ticket, kernels);
        ticket
    }

    /// Takes a warm-up that is over: its kernels are compiled, or one of them does not
    /// compile. A driver asks whenever it asks for [`Session::launch`].
    pub fn warmed(&mut self, now: Millis) -> Option<(Ticket, Result<(), Error>)> {
        if self.is_lost() || !self.gate.has_warmup_due() {
            return None;
        }
        self.gate.warmed(self.devices.primary_mut(), now)
    }

    /// Whether calls or warm-ups that wait for kernels may have them by now.
    pub(super) fn is_kernel_due(&self) -> bool {
        let may_resume = self.gate.is_open() && self.queue.may_resume();
        !self.is_lost() && (may_resume || self.gate.has_warmup_due())
    }
}
