//! A session whose device is lost: everything stays queued until there is another,
//! and nothing of the old one is heard again.
//!
//! Finding another device is a face's matter.

use super::Session;
use crate::batch::BatchId;
use crate::device::{Device, Generation};

impl<D: Device> Session<D> {
    /// Notes that the device of this generation is gone, whoever saw it. What
    /// is queued and in flight waits for [`Session::replace_device`].
    pub fn lose(&mut self, generation: Generation) {
        if generation == self.generation {
            self.lost = true;
        }
    }

    /// Whether the device is lost and waits for its replacement.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Which life of the device this is.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Goes on with another device. Everything in flight on the old one is sent
    /// again; what the old one still answers is ignored.
    pub fn replace_device(&mut self, device: D) {
        while !self.in_flight.is_empty() {
            self.requeue(self.in_flight.len() - 1);
        }
        self.gone = self.device.counters().after(self.gone);
        self.device.destroy();
        self.engine = device.info().engine;
        self.device = device;
        self.generation = Generation(self.generation.0 + 1);
        self.lost = false;
    }

    /// Puts a batch in flight back to where it waits to be sent.
    pub(super) fn requeue(&mut self, index: usize) {
        let load = self.in_flight.remove(index).load;
        assert!(self.batcher.requeue(load.id), "both know what is in flight");
        let age = |id: BatchId| self.open.id.0.wrapping_sub(id.0);
        let place = self
            .sealed
            .partition_point(|sealed| age(sealed.id) > age(load.id));
        self.sealed.insert(place, load);
    }
}
