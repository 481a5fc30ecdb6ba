//! The compile gate: which kernels a device is ready for, which compilations a face is to
//! await, and whether it is time to look at the calls that wait.
//!
//! The queue has the calls that wait, and devices compile.

use crate::batch::{Millis, Ticket};
use crate::device::{Compile, Device, Readiness};
use crate::error::Error;
use crate::kernel::Kernel;

/// What a session knows of kernels that are being compiled.
#[derive(Default)]
pub(super) struct CompileGate {
    /// Whether parked calls may be able to go by now.
    is_due: bool,
    /// Whether warm-ups may be over by now.
    is_warmup_due: bool,
    /// The compilations that the face is to await.
    compiles: Vec<Compile>,
    warmups: Vec<Warmup>,
    /// When the first of the parked calls was parked, or the compiler was last done with a
    /// kernel.
    since: Millis,
    /// When kernels were last asked for on behalf of warm-ups, of which some are not over.
    warmups_since: Millis,
}

/// The state of several kernels together.
#[derive(Clone)]
pub(super) enum State {
    Ready,
    Failed(Error),
    Compiling,
}

/// The kernels that some calls need, each once.
#[derive(Debug, Default)]
pub struct Kernels(pub(super) Vec<Kernel>);

/// A warm-up: kernels that somebody waits for, with a ticket as a call has.
struct Warmup {
    ticket: Ticket,
    kernels: Kernels,
}

impl CompileGate {
    /// Asks a device for kernels: for all of them, so that they compile at the same time.
    pub(super) fn ask<'a>(
        &mut self,
        device: &mut impl Device,
        kernels: impl Iterator<Item = &'a Kernel>,
    ) -> State {
        ask(device, &mut self.compiles, kernels)
    }

    /// Takes the compilations that have begun since the last time.
    pub(super) fn take_compiles(&mut self) -> Vec<Compile> {
        std::mem::take(&mut self.compiles)
    }

    /// Notes that the compiler is done with a kernel.
    pub(super) fn compiled(&mut self, now: Millis) {
        self.is_due = true;
        self.is_warmup_due = true;
        self.since = now;
    }

    /// Notes that parked calls may be able to go by now.
    pub(super) fn open(&mut self) {
        self.is_due = true;
    }

    /// Notes that no parked call can go for now.
    pub(super) fn close(&mut self) {
        self.is_due = false;
    }

    /// Whether parked calls may be able to go.
    pub(super) fn is_open(&self) -> bool {
        self.is_due
    }

    /// Notes that a call is parked while no other is.
    pub(super) fn park(&mut self, now: Millis) {
        self.since = now;
    }

    /// Since when the compiler owes a kernel, where calls wait for one.
    pub(super) fn since(&self) -> Millis {
        self.since
    }

    /// Takes a warm-up.
    pub(super) fn warm_up(&mut self, ticket: Ticket, kernels: Kernels) {
        self.warmups.push(Warmup { ticket, kernels });
        self.is_warmup_due = true;
    }

    /// Takes a warm-up that is over: its kernels are compiled, or one of them does not
    /// compile.
    pub(super) fn warmed(
        &mut self,
        device: &mut impl Device,
        now: Millis,
    ) -> Option<(Ticket, Result<(), Error>)> {
        for at in 0..self.warmups.len() {
            let kernels = self.warmups[at].kernels.0.iter();
            let outcome = match ask(device, &mut self.compiles, kernels) {
                State::Ready => Ok(()),
                State::Failed(error) => Err(error),
                State::Compiling => continue,
            };
            return Some((self.warmups.remove(at).ticket, outcome));
        }
        self.is_warmup_due = false;
        self.warmups_since = now;
        None
    }

    /// Since when the compiler owes a kernel, where warm-ups wait for one.
    pub(super) fn warmups_since(&self) -> Option<Millis> {
        let waits = !self.is_warmup_due && !self.warmups.is_empty();
        waits.then_some(self.warmups_since)
    }

    /// Whether a warm-up may be over.
    pub(super) fn has_warmup_due(&self) -> bool {
        self.is_warmup_due && !self.warmups.is_empty()
    }

    /// Forgets everything. Returns the tickets of the warm-ups.
    pub(super) fn clear(&mut self) -> Vec<Ticket> {
        let warmups = std::mem::take(self).warmups;
        warmups.iter().map(|warmup| warmup.ticket).collect()
    }

    /// Forgets compilations: the device is another one, which has compiled nothing.
    pub(super) fn forget_compiles(&mut self) {
        self.compiles.clear();
        self.is_warmup_due = true;
    }
}

fn ask<'a>(
    device: &mut impl Device,
    compiles: &mut Vec<Compile>,
    kernels: impl Iterator<Item = &'a Kernel>,
) -> State {
    let (mut is_compiling, mut failure) = (false, None);
    for kernel in kernels {
        match device.prepare(kernel) {
            Readiness::Ready => {}
            Readiness::Failed(error) => failure = Some(error),
            Readiness::Compiling(started) => {
                is_compiling = true;
                compiles.extend(started);
            }
        }
    }
    match (is_compiling, failure) {
        (true, _) => State::Compiling,
        (false, Some(error)) => State::Failed(error),
        (false, None) => State::Ready,
    }
}

impl std::fmt::Debug for CompileGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompileGate").finish_non_exhaustive()
    }
}
