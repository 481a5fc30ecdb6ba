//! Lost tensors: which tensors a failure leaves with words that nobody may read, and the calls
//! that read them.
//!
//! `provenance` keeps what is lost. How calls write tensors is in `writes`.

use std::sync::Arc;

use super::Session;
use super::in_flight::InFlight;
use super::payload::{Batch, Call};
use super::scatter::{Acceptance, Sent};
use super::writes::{Answered, Refused, writers};
use crate::batch::Ticket;
use crate::device::Device;
use crate::error::Error;
use crate::plan::Recipe;

/// Why a tensor that calls wrote is lost with its device.
const GONE: &str = "calls wrote it, and its device is gone; write all of it, or make it again";

/// Why a tensor cannot be read that no call has written since it got its place on the device.
const EMPTY: &str =
    "no call has written it on this device yet; compute it again, or write all of it";

/// Why a tensor cannot be read that is there again in part.
const SHORT: &str =
    "some of what calls wrote to it is gone; remove that from its index, and call again";

impl<D: Device> Session<D> {
    /// Notes that a tensor has room for so many words, and no words yet.
    pub(super) fn note_allocated(&mut self, tensor: u32, words: u32) {
        self.provenances.fill(tensor, words);
        if !self.provenances.is_lost(tensor) {
            self.provenances.lose(tensor, &Arc::from(EMPTY));
        }
    }

    /// Counts what calls wrote as lost with the device. A face fills the tensors again, with data
    /// that is older, until [`Session::give_up_unreadable`].
    pub(super) fn lose_written_tensors(&mut self) {
        self.provenances.lose_written(&Arc::from(GONE));
    }

    /// The calls that wait to be sent.
    pub fn waiting_calls(&self) -> Vec<Ticket> {
        let calls = self.queue.waiting().flat_map(|batch| batch.calls());
        calls
            .filter(|call| call.is_live)
            .map(|call| call.ticket)
            .collect()
    }

    /// Gives up the calls that wait to be sent and read a tensor, a part of which is lost. The
    /// tickets wait for the face to reject them.
    pub fn give_up_readers(&mut self, tensor: u32) -> Vec<Ticket> {
        let recipes = self.programs.recipes();
        let mut tickets = Vec::new();
        for batch in self.queue.waiting() {
            for call in batch.calls().iter().filter(|call| call.is_live) {
                if read_by(recipes, batch, call, |read| read == tensor).is_some() {
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

    /// Refuses the calls that wait to be sent and read a tensor, which lacks something that calls
    /// wrote to it.
    pub fn refuse_readers(&mut self, tensor: u32) {
        let tickets = self.give_up_readers(tensor);
        if !tickets.is_empty() {
            let outcome = Err(Error::TensorLost(SHORT.into()));
            self.answered.push(Answered { tickets, outcome });
        }
    }

    /// Refuses the calls of a batch that is about to be sent which read a lost tensor, unless a
    /// call before them, in the batch, in flight or parked, writes all of it: calls stay behind a
    /// parked one that writes what they read. A search behind an insertion that is refused is
    /// refused too, because it would find fewer vectors than there are. The refused calls leave the
    /// batch, so that none of them is computed.
    pub(super) fn refuse_readers_of_lost(&mut self, at: usize) {
        let batch = self.queue.flying(at);
        let is_lost = |tensor: &u32| self.provenances.is_lost(*tensor);
        if !self.provenances.has_lost() || !batch.payload.read.iter().any(is_lost) {
            return;
        }
        let recipes = self.programs.recipes();
        let mut healed = self.healed_in_flight(at);
        let parked = self.parked_healers();
        let mut refused = Vec::new();
        // Pages that lack vectors which a refused insertion was to write, and why.
        let mut short: Vec<(u32, Error)> = Vec::new();
        for (place, call) in batch.calls().iter().enumerate() {
            let is_healed = |tensor: usize| {
                let healer = parked[tensor];
                healed[tensor] || healer.is_some_and(|healer| healer.is_before(call.ticket))
            };
            let is_lost =
                |tensor: u32| self.provenances.is_lost(tensor) && !is_healed(tensor as usize);
            let is_short = |tensor: u32| short.iter().any(|(page, _)| *page == tensor);
            let is_missing = |tensor: u32| is_lost(tensor) || is_short(tensor);
            if let Some(tensor) = read_by(recipes, batch, call, is_missing) {
                let known = short.iter().find(|(page, _)| *page == tensor);
                let error =
                    known.map_or_else(|| self.provenances.error(tensor), |(_, why)| why.clone());
                let recipe = &recipes[call.work.planned.recipe.0 as usize];
                if call.is_live && recipe.insertion().is_some() {
                    let pages = batch.written(recipes, call);
                    short.extend(pages.map(|page| (page, error.clone())));
                }
                refused.push(Refused { place, error });
            } else if call.is_live {
                for tensor in batch.written(recipes, call) {
                    let stored = call.work.planned.stored;
                    healed[tensor as usize] |= self.provenances.is_whole(tensor, stored);
                }
            }
        }
        self.refuse_all(at, refused);
        self.queue.flying_mut(at).purge();
    }

    /// Marks the tensors that submissions in front of a batch write whole, though the device may
    /// still refuse these: if it does, what is behind them is refused as well.
    fn healed_in_flight(&self, at: usize) -> Vec<bool> {
        let mut healed = vec![false; self.tensors.count()];
        let (front, behind) = self.queue.in_flight().split_at(at);
        for InFlight { batch, way } in front {
            if way.generation != behind[0].way.generation || way.retry.is_some() {
                continue;
            }
            let in_doubt = |sent: &&Sent| sent.acceptance == Acceptance::InDoubt;
            for sent in way.chunks[way.landed..].iter().filter(in_doubt) {
                let places = writers(batch, sent).filter(|place| !way.tainted.contains(place));
                for call in places.map(|place| &batch.calls()[place]) {
                    let stored = call.work.planned.stored;
                    for tensor in batch.written(self.programs.recipes(), call) {
                        let is_whole = self.provenances.is_whole(tensor, stored);
                        healed[tensor as usize] |= call.is_live && is_whole;
                    }
                }
            }
        }
        healed
    }

    /// For each tensor the oldest parked call that writes all of it.
    fn parked_healers(&self) -> Vec<Option<Ticket>> {
        let mut healers = vec![None::<Ticket>; self.tensors.count()];
        for batch in self.queue.parked() {
            for call in batch.calls().iter().filter(|call| call.is_live) {
                let stored = call.work.planned.stored;
                for tensor in batch.written(self.programs.recipes(), call) {
                    let known = &mut healers[tensor as usize];
                    let is_oldest = known.is_none_or(|known| call.ticket.is_before(known));
                    if is_oldest && self.provenances.is_whole(tensor, stored) {
                        *known = Some(call.ticket);
                    }
                }
            }
        }
        healers
    }

    /// Counts what a chunk writes as lost, because the chunk has failed after it was submitted,
    /// and with that whatever was computed from it since. Calls behind that read a lost tensor
    /// are refused: devices compute in the order of submission, so their answers are to come.
    pub(super) fn lose_writes(&mut self, at: usize, error: &Error) {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[way.landed];
        let mut wrote = writers(batch, sent);
        if sent.acceptance == Acceptance::Failed {
            // Nothing of it runs, but the chunk before may have written the first rows of a call.
            let begun = usize::from(sent.chunk.skipped > 0);
            wrote.end = wrote.end.min(wrote.start + begun);
        }
        let mut lost = vec![false; self.tensors.count()];
        for call in &batch.calls()[wrote] {
            for tensor in batch.written(self.programs.recipes(), call) {
                lost[tensor as usize] = true;
            }
        }
        if !lost.contains(&true) {
            return;
        }
        let why =
            format!("a call that wrote it failed ({error}); write all of it, or make it again");
        let from = sent.chunk.end;
        self.lose_from(at, from, lost, &why);
    }

    /// Counts the marked tensors as lost, and with that whatever was computed from them since, from a place
    /// in a batch in flight on. Calls that read a lost tensor are refused.
    pub(super) fn lose_from(&mut self, at: usize, from: usize, mut lost: Vec<bool>, why: &str) {
        let (generation, mut from) = (self.queue.in_flight()[at].way.generation, from);
        for at in at..self.queue.in_flight().len() {
            let refused = match self.queue.in_flight()[at].way.generation == generation {
                true => self.spread_loss(at, from, &mut lost, why),
                false => Vec::new(),
            };
            let way = &mut self.queue.in_flight_mut()[at].way;
            way.tainted.extend(refused.iter().map(|call| call.place));
            self.refuse_all(at, refused);
            from = 0;
        }
        let why: Arc<str> = why.into();
        for (tensor, is_lost) in (0..).zip(lost) {
            if is_lost {
                self.provenances.lose(tensor, &why);
            }
        }
    }

    /// Follows lost tensors through the calls of a batch in flight, from a place on: the calls
    /// that read one are to be refused, and what they write is lost too. What is written whole
    /// is lost no longer.
    fn spread_loss(&self, at: usize, from: usize, lost: &mut [bool], why: &str) -> Vec<Refused> {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let recipes = self.programs.recipes();
        let end = match way.rest.is_empty() {
            // Calls behind that go again are looked at before that.
            true => way.sent_calls(),
            false => batch.ahead().len(),
        };
        let mut refused = Vec::new();
        for (place, call) in batch.ahead().iter().enumerate().take(end).skip(from) {
            let is_lost = |tensor: u32| lost[tensor as usize];
            let is_tainted = read_by(recipes, batch, call, is_lost).is_some();
            if is_tainted {
                let error = Error::TensorLost(why.into());
                refused.push(Refused { place, error });
            }
            for tensor in batch.written(recipes, call) {
                let stored = call.work.planned.stored;
                if is_tainted || self.provenances.is_whole(tensor, stored) {
                    lost[tensor as usize] = is_tainted;
                }
            }
        }
        refused
    }
}

/// The first of the tensors for which `is_lost` holds that a call reads. A tensor that a call
/// only writes may be lost.
fn read_by(
    recipes: &[Recipe],
    batch: &Batch,
    call: &Call,
    is_lost: impl Fn(u32) -> bool,
) -> Option<u32> {
    let recipe = &recipes[call.work.planned.recipe.0 as usize];
    let set = batch.payload.tensors_of(call);
    let reads = |(place, tensor): &(usize, &u32)| {
        let is_target = || recipe.written(set).any(|target| target == **tensor);
        is_lost(**tensor) && (!is_target() || recipe.reads(*place))
    };
    set.iter()
        .enumerate()
        .find(reads)
        .map(|(_, tensor)| *tensor)
}
