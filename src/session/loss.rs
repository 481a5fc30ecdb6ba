//! A session whose device is lost: everything stays queued until there is another,
//! and nothing of the old one is heard again.
//!
//! Finding another device is a face's matter.

use super::Session;
use crate::batch::Ticket;
use crate::device::{Device, Engine, Generation};

/// How often a device at work on a batch is lost, and the batch answers no call
/// in between, before its calls are refused. Batches behind it, on their way or
/// in the queue, have lost nothing.
pub(super) const ATTEMPTS: u32 = 3;

/// Losses without an answer in between after which a face gives the GPU up: more
/// than a single batch survives, so that one which brings every device down is
/// refused and the others keep the GPU.
pub(crate) const LOSSES: u32 = ATTEMPTS + 1;

impl<D: Device> Session<D> {
    /// Notes that the device of this generation is gone, whoever saw it. What
    /// is queued and in flight waits for [`Session::replace_device`].
    pub fn lose(&mut self, generation: Generation) {
        if generation != self.generation || self.lost {
            return;
        }
        self.lost = true;
        // What is sent from here on is not what is still on its way.
        self.generation = Generation(self.generation.0 + 1);
        // A device takes batches in order: it was at work on the oldest.
        let mut flying = self.in_flight.iter_mut();
        if let Some(oldest) = flying.find(|flying| flying.needs_device()) {
            oldest.load.losses += 1;
        }
        // And the compiler on all that waits for it; one that answered others meanwhile
        // is half as much to be blamed on them.
        for id in self.batcher.aside() {
            if let Some(load) = self.sealed.iter_mut().find(|load| load.id == id) {
                load.doubts += u32::from(self.has_answered);
                load.losses += u32::from(!self.has_answered || load.doubts % 2 == 0);
            }
        }
    }

    /// Whether some calls are sent while the device is lost: to the processor
    /// beside it.
    pub(super) fn goes_on(&self) -> bool {
        let mut queued = self.sealed.iter().chain([&self.open]);
        self.router.is_some() || queued.any(|load| load.asks(Engine::Cpu))
    }

    /// Whether the device is lost and waits for its replacement.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Which life of the device this is.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Goes on with another device, and hands the old one back. Everything in flight on it
    /// is sent again; what it still answers is ignored.
    pub fn replace_device(&mut self, device: D) -> D {
        for at in (0..self.in_flight.len()).rev() {
            if self.in_flight[at].needs_device() {
                self.requeue(at);
            }
        }
        self.batcher.resume_all();
        self.waiting.forget();
        self.gone = self.device.counters().after(self.gone);
        self.device.destroy();
        self.engine = device.info().engine;
        let old = std::mem::replace(&mut self.device, device);
        self.structures.forget_taken();
        self.device.allow(self.budget.0);
        self.has_answered = false;
        self.first_sent = None;
        self.is_exhausted = false;
        if self.engine == Engine::Cpu {
            self.beside = None; // It is the device itself now.
            self.router = None;
            self.calibration = None;
        }
        self.device.measure(self.meter.renew());
        self.tensors.lose();
        self.fit_batches();
        // They may be as large as the batches that grew while nothing was sent.
        self.spare.clear();
        self.generation = Generation(self.generation.0 + 1);
        self.lost = false;
        old
    }

    /// Gives up the queued calls that read a tensor which went with the last
    /// device and was not filled again. The tickets wait for the face to reject
    /// them.
    pub fn give_up_unreadable(&mut self) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        for load in self.sealed.iter().chain([&self.open]) {
            for (call, ticket) in load.calls.iter().zip(&load.tickets) {
                let set = &load.sets[call.set.0 as usize];
                let is_lost = |tensor: &u32| !self.tensors.is_filled(*tensor);
                if set.iter().any(is_lost) && self.batcher.abort(*ticket) {
                    tickets.push(*ticket);
                }
            }
        }
        self.counts.rejected += tickets.len() as u64;
        tickets
    }

    /// Puts a batch in flight back to where it waits to be sent.
    pub(super) fn requeue(&mut self, index: usize) {
        let mut load = self.in_flight.remove(index).load;
        load.join();
        assert!(self.batcher.requeue(load.id), "both know what is in flight");
        self.sealed.push(load);
    }
}
