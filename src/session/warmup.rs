//! Kernels that are compiled before a call needs them.
//!
//! Whoever asks has a ticket, as a call has; but it is in no batch, and counts
//! nowhere.

use super::Session;
use super::waiting::{State, state};
use crate::batch::Ticket;
use crate::device::Device;
use crate::error::Error;
use crate::kernel::Kernel;

/// Kernels of calls, each once.
#[derive(Debug, Default)]
pub struct Kernels(pub(super) Vec<Kernel>);

/// What somebody waits for.
pub(super) struct Warmup {
    pub(super) ticket: Ticket,
    kernels: Kernels,
}

impl<D: Device> Session<D> {
    /// Has kernels compiled, again if the device is lost meanwhile.
    /// [`Session::warmed`] answers the ticket.
    pub fn warm_up(&mut self, kernels: Kernels) -> Ticket {
        let ticket = self.queue.number();
        self.waiting.warmups.push(Warmup { ticket, kernels });
        self.waiting.is_warmup_due = true;
        ticket
    }

    /// A warm-up that is over: its kernels are compiled, or one of them does not
    /// compile. To be asked whenever [`Session::launch`] is.
    pub fn warmed(&mut self) -> Option<(Ticket, Result<(), Error>)> {
        if self.is_lost() || !self.waiting.is_warmup_due {
            return None;
        }
        let waiting = &mut self.waiting;
        for at in 0..waiting.warmups.len() {
            let kernels = waiting.warmups[at].kernels.0.iter();
            let outcome = match state(&mut self.device, &mut waiting.compiles, kernels) {
                State::Ready => Ok(()),
                State::Failed(error) => Err(error),
                State::Compiling => continue,
            };
            return Some((waiting.warmups.remove(at).ticket, outcome));
        }
        waiting.is_warmup_due = false;
        None
    }

    /// Whether somebody waits for kernels, and may have them by now.
    pub(super) fn is_kernel_due(&self) -> bool {
        let waiting = &self.waiting;
        !self.is_lost()
            && (waiting.is_due && self.queue.may_resume()
                || waiting.is_warmup_due && !waiting.warmups.is_empty())
    }
}
