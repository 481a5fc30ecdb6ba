//! Device loss: everything stays queued until there is another device, and what the lost
//! one still answers is ignored.
//!
//! Finding another device is the matter of the driver and its face.

use super::in_flight::Way;
use super::payload::Payload;
use super::recovery::{ATTEMPTS, Loss, Remedy};
use super::settlement::Settlement;
use super::{Millis, Session};
use crate::batch::Ticket;
use crate::device::{Device, Engine, Generation};
use crate::error::Error;

impl<D: Device> Session<D> {
    /// Notes that the device of this generation is gone, whoever saw it. Queued calls and
    /// those in flight wait for [`Session::replace_device`].
    pub fn lose(&mut self, generation: Generation) {
        let is_at_work = self.ways().any(Way::needs_device) || self.queue.has_parked();
        let loss = match is_at_work {
            true => Loss::AtWork,
            false => Loss::Idle,
        };
        self.lose_by(loss, generation);
    }

    pub(super) fn lose_by(&mut self, loss: Loss, generation: Generation) {
        if generation != self.life.generation() || self.is_lost() {
            return;
        }
        self.life.end(loss);
        // A device takes batches in order: it was at work on the oldest batch.
        let flying = self.queue.in_flight_mut();
        let oldest = (flying.iter()).position(|flying| flying.way.needs_device());
        if let Some(oldest) = oldest {
            flying[oldest].batch.payload.losses += 1;
            self.blame(oldest);
        }
        let has_answered = self.life.has_answered();
        // The compiler was at work on all parked batches. If the device answered other
        // calls meanwhile, a loss counts half against the parked ones.
        for batch in self.queue.parked_mut() {
            let payload = &mut batch.payload;
            payload.doubts += u32::from(has_answered);
            payload.losses += u32::from(!has_answered || payload.doubts % 2 == 0);
        }
    }

    /// Refuses a chunk of a batch over which too many devices were lost, while the last
    /// lost device waits for its replacement. A device that stalls may keep the chunk's
    /// flight for ever. A driver asks before anything is sent, until no chunk is refused.
    pub fn refuse_chunk(&mut self) -> Option<Settlement> {
        while self.is_lost() {
            let mut flying = self.queue.in_flight().iter();
            let refused = flying.position(|flying| {
                flying.batch.payload.losses >= ATTEMPTS && flying.way.is_device_next()
            })?;
            // Chunks and flights are paired in order, and this chunk's flight is still to come.
            self.queue.in_flight_mut()[refused].way.is_refused = true;
            let why = "every device that was sent the call was lost".to_owned();
            let settlement = self.settle_at(refused, Err(Error::DeviceLost(why)));
            if settlement.is_some() {
                return settlement;
            }
        }
        None
    }

    /// Whether some calls are sent while the device is lost: to the CPU beside it.
    pub(super) fn goes_on(&self) -> bool {
        let mut waiting = self.queue.waiting();
        self.is_routing() || waiting.any(|batch| batch.payload.asks_cpu)
    }

    /// Whether the device is lost and waits for its replacement.
    pub fn is_lost(&self) -> bool {
        self.life.is_lost()
    }

    /// Whether nothing is sent for now: the device is lost and the CPU beside it has
    /// nothing to do, another device is about to take over, or what is in flight goes
    /// first.
    pub(super) fn is_stopped(&self) -> bool {
        let has_device = !self.is_lost() || self.goes_on();
        !has_device || self.devices.has_successor() || self.is_held_back()
    }

    /// What a face is to do about the device. A face asks after everything that may have
    /// lost the device, and at [`Session::next_look`].
    pub fn remedy(&mut self, now: Millis) -> Option<Remedy> {
        if let Some(loss) = self.life.loss() {
            self.recovery.lost(loss, now);
        }
        self.recovery.due(now)
    }

    /// Whether the device is lost and no face has asked for a [`Session::remedy`] since.
    pub fn is_unheard(&self) -> bool {
        self.is_lost() && self.recovery.is_in_use()
    }

    /// When a face is to ask for the next [`Session::remedy`], though nothing happens.
    pub fn next_look(&self) -> Option<Millis> {
        self.recovery.next_look()
    }

    /// Notes that a face has looked for a GPU, and found none.
    pub fn missed(&mut self, now: Millis) {
        self.recovery.fell_back(now);
    }

    /// Takes a GPU that a face has found while the CPU is in its place. The GPU takes over
    /// as soon as nothing is in flight; see [`Session::take_over`]. A GPU that cannot hold
    /// every tensor is destroyed.
    pub fn welcome(&mut self, mut gpu: D, now: Millis) {
        if self.tensors_fit(&gpu) {
            self.devices.add_successor(gpu);
        } else {
            gpu.destroy();
            self.missed(now);
        }
    }

    /// Whether a GPU is to take the CPU's place, and nothing is in flight any more.
    pub(super) fn has_successor(&self) -> bool {
        self.devices.has_successor() && self.queue.in_flight().is_empty()
    }

    /// Has the GPU that a face has found take over from the CPU, which stays beside it, if
    /// nothing is in flight: `true` where it did. No tensor has to be filled again. A face
    /// asks whenever it asks for [`Session::launch`].
    pub fn take_over(&mut self, now: Millis) -> bool {
        if !self.has_successor() {
            return false;
        }
        self.metrics.leave(self.devices.primary().counters());
        self.devices.promote_successor();
        self.begin_life(now);
        self.defer_tensors();
        self.leave_to_gpu();
        true
    }

    /// Drops the CPU's copies of tensors that queued calls write. Calls that asked for the
    /// CPU while there was no other device go to the GPU where the CPU lacks one of their
    /// tensors.
    fn leave_to_gpu(&mut self) {
        let recipes = self.programs.recipes();
        for batch in self.queue.waiting() {
            for call in batch.calls() {
                for written in batch.written(recipes, call) {
                    self.tensors.drop_copy(written);
                }
            }
        }
        for batch in self.queue.waiting_mut() {
            let mut read = batch.payload.read.iter();
            if !read.all(|tensor| self.tensors.has_copy(*tensor)) {
                let (works, payload) = batch.works_and_payload();
                works.for_each(|work| work.wanted = None);
                payload.asks_cpu = false;
            }
        }
    }

    /// The number of the device in use.
    pub fn generation(&self) -> Generation {
        self.life.generation()
    }

    /// Goes on with another device in the place of the lost one, and hands that one back.
    /// Every batch in flight on the lost device is sent again; what the device still
    /// answers is ignored.
    pub fn replace_device(&mut self, device: D, now: Millis) -> D {
        for at in (0..self.in_flight()).rev() {
            if self.queue.in_flight()[at].way.needs_device() {
                self.requeue(at);
            }
        }
        self.queue.resume_all();
        self.metrics.leave(self.devices.primary().counters());
        self.devices.primary_mut().destroy();
        let old = self.devices.replace_primary(device);
        self.begin_life(now);
        if !self.is_routing() {
            self.calibration = None;
        }
        self.tensors.lose();
        self.lose_written_tensors();
        self.fit_batches();
        // Spare arenas may be as large as the batches that grew while nothing was sent.
        self.arenas.clear();
        old
    }

    /// Begins with another device, which is in its place already.
    fn begin_life(&mut self, now: Millis) {
        match self.devices.engine() {
            Engine::Gpu => self.recovery.found(now),
            Engine::Cpu => self.recovery.fell_back(now),
        }
        self.gate.forget_compiles();
        self.programs.forget_footprints();
        let clock = self.metrics.meter.renew();
        let device = self.devices.primary_mut();
        device.allow(self.limits.budget().0);
        device.measure(clock);
        self.life.begin();
    }

    /// Calls made from here on write tensors anew that went with the last device, until
    /// [`Session::end_restoration`], and go before all that waits.
    pub fn begin_restoration(&mut self) {
        let payload = Payload::new(self.arenas.take());
        self.queue.begin_restoration(payload);
    }

    /// From here on calls wait behind those made before, as always.
    pub fn end_restoration(&mut self) {
        self.queue.end_restoration();
    }

    /// Gives up the queued calls that read a tensor which went with the last device and was
    /// not filled again. The tickets wait for the face to reject them.
    pub fn give_up_unreadable(&mut self) -> Vec<Ticket> {
        self.provenances.restored();
        let is_lost = |tensor: &u32| !self.tensors.is_filled(*tensor);
        let mut tickets = Vec::new();
        for batch in self.queue.waiting() {
            for call in batch.calls().iter().filter(|call| call.is_live) {
                if batch.payload.tensors_of(call).iter().any(is_lost) {
                    tickets.push(call.ticket);
                }
            }
        }
        for ticket in &tickets {
            self.queue.abort(*ticket);
        }
        self.metrics.rejected += tickets.len() as u64;
        tickets
    }

    /// Puts a batch in flight back among those that wait to be sent, without the calls that
    /// cannot go again.
    pub(super) fn requeue(&mut self, at: usize) {
        self.give_up_overwritten(at);
        let (batch, _) = self.queue.requeue(at);
        batch.forget_routes();
    }
}
