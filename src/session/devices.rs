//! The devices of a session: the one that batches are sent to, and a second one where there
//! is one.
//!
//! Others decide which calls go where, when a device is replaced, and what becomes of calls
//! and tensors then.

use crate::device::{Device, Engine};

/// The devices of a session.
#[derive(Debug)]
pub(super) struct Devices<D> {
    primary: D,
    engine: Engine,
    second: Second<D>,
}

/// What there is besides the primary device.
#[derive(Debug)]
enum Second<D> {
    Nothing,
    /// The CPU, beside a GPU: calls may leave the GPU.
    Companion(D),
    /// A GPU that takes the CPU's place as soon as nothing is in flight.
    Successor(D),
}

impl<D: Device> Devices<D> {
    /// One device alone.
    pub(super) fn new(primary: D) -> Self {
        Devices {
            engine: primary.info().engine,
            primary,
            second: Second::Nothing,
        }
    }

    /// The kind of the primary device.
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }

    /// The device that batches are sent to.
    pub(super) fn primary(&self) -> &D {
        &self.primary
    }

    /// The device that batches are sent to, to be changed.
    pub(super) fn primary_mut(&mut self) -> &mut D {
        &mut self.primary
    }

    /// The CPU beside a GPU.
    pub(super) fn companion(&self) -> Option<&D> {
        match &self.second {
            Second::Companion(cpu) => Some(cpu),
            Second::Nothing | Second::Successor(_) => None,
        }
    }

    /// The CPU beside a GPU, to be changed.
    pub(super) fn companion_mut(&mut self) -> Option<&mut D> {
        self.primary_and_companion_mut().1
    }

    /// The primary device, and the CPU beside it if it is a GPU.
    pub(super) fn primary_and_companion_mut(&mut self) -> (&mut D, Option<&mut D>) {
        let companion = match &mut self.second {
            Second::Companion(cpu) => Some(cpu),
            Second::Nothing | Second::Successor(_) => None,
        };
        (&mut self.primary, companion)
    }

    /// Whether there is a CPU beside a GPU.
    pub(super) fn has_companion(&self) -> bool {
        self.companion().is_some()
    }

    /// Puts the CPU beside a GPU.
    pub(super) fn add_companion(&mut self, cpu: D) {
        self.second = Second::Companion(cpu);
    }

    /// Keeps a GPU that is to take the CPU's place.
    pub(super) fn add_successor(&mut self, gpu: D) {
        self.second = Second::Successor(gpu);
    }

    /// Whether a GPU is to take the CPU's place.
    pub(super) fn has_successor(&self) -> bool {
        matches!(self.second, Second::Successor(_))
    }

    /// Makes the successor the primary device, and the CPU the one beside it.
    pub(super) fn promote_successor(&mut self) {
        match std::mem::replace(&mut self.second, Second::Nothing) {
            Second::Successor(gpu) => self.second = Second::Companion(self.set_primary(gpu)),
            other => self.second = other,
        }
    }

    /// Puts a device in the place of the primary one, and hands that one back. A CPU leaves
    /// none beside itself.
    pub(super) fn replace_primary(&mut self, device: D) -> D {
        let old = self.set_primary(device);
        if self.engine == Engine::Cpu && self.has_companion() {
            self.second = Second::Nothing;
        }
        old
    }

    /// Takes out the primary device and its successor, for whoever frees them; `instead`
    /// stays.
    pub(super) fn take(&mut self, instead: D) -> Vec<D> {
        let successor = match std::mem::replace(&mut self.second, Second::Nothing) {
            Second::Successor(gpu) => Some(gpu),
            Second::Nothing | Second::Companion(_) => None,
        };
        let primary = self.set_primary(instead);
        successor.into_iter().chain([primary]).collect()
    }

    /// Frees what the devices hold.
    pub(super) fn destroy(&mut self) {
        self.primary.destroy();
        match &mut self.second {
            Second::Nothing => {}
            Second::Companion(other) | Second::Successor(other) => other.destroy(),
        }
    }

    fn set_primary(&mut self, device: D) -> D {
        self.engine = device.info().engine;
        std::mem::replace(&mut self.primary, device)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/devices.rs"]
mod tests;
