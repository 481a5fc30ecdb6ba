//! The way of a batch in flight: what of the batch was sent, and what came back.
//!
//! What is sent next, and what is done about a failure, is not decided here.

use super::batch_metrics::{Outline, Timing};
use super::payload::{Computation, Payload};
use super::router::Group;
use super::scatter::{Acceptance, Sent};
use crate::batch::{self, Millis, Ticket};
use crate::device::{Engine, Generation};
use crate::plan::Chunk;

/// Every batch of a session, whatever its state.
pub(super) type Queue = batch::Queue<Computation, Payload, Way>;

/// A batch in flight.
pub(super) type InFlight = batch::InFlight<Computation, Payload, Way>;

/// Bytes of operands and results in flight beyond which the next chunk of a batch waits for
/// one that returns: many more than keep copies, link and device at work.
pub(super) const BYTES_IN_FLIGHT: u64 = 64 << 20;

/// What of a batch may be in flight at once.
pub(super) struct Allowance {
    pub(super) bytes: u64,
    pub(super) chunks: usize,
}

/// What else was in flight when a batch was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    /// No other batch.
    Alone,
    /// Other batches.
    Others,
}

/// The way of a batch in flight: what was sent, and what came back. The batch itself is
/// kept whole, because it is sent again if the device is lost.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) generation: Generation,
    pub(super) sent: Millis,
    /// The chunks that were sent, in order.
    pub(super) chunks: Vec<Sent>,
    /// How many of the chunks are back.
    pub(super) landed: usize,
    /// The chunks that were not sent yet, the next one last.
    pub(super) rest: Vec<Chunk>,
    /// Where the batch's time goes, if anybody asked.
    pub(super) timing: Option<Timing>,
    /// The batch's calls by structure, where they had a choice of devices.
    pub(super) groups: Vec<Group>,
    pub(super) company: Company,
    /// What a slice of low work is foreseen to take; 0 for other batches.
    pub(super) slice: f64,
    /// How the batch goes again when all its flights have landed, if one has failed.
    pub(super) retry: Option<Retry>,
    /// Whether the device was found to be lost when a chunk was to be submitted. The chunk's
    /// flight tells of the loss.
    pub(super) found_loss: bool,
    /// Whether a chunk was refused before its flight came. Flights that come later are ignored:
    /// all chunks that were sent are refused with it.
    pub(super) is_refused: bool,
    /// The places in the batch of calls that were refused because they read what was lost. They may
    /// be computed all the same.
    pub(super) tainted: Vec<usize>,
}

/// How a batch goes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// In smaller chunks: there was no memory for one.
    InSmallerChunks,
    /// Without the calls that were rejected for naming a buffer which the device cannot use.
    WithoutRefused,
}

impl InFlight {
    /// What the batch metrics tell of this batch.
    pub(super) fn outline(&self, engine: Engine) -> Outline {
        let calls = self.batch.calls();
        let older = |a: Ticket, b: Ticket| if b.is_before(a) { b } else { a };
        let newer = |a: Ticket, b: Ticket| if a.is_before(b) { b } else { a };
        let tickets = || calls.iter().map(|call| call.ticket);
        let mut chunks = self.way.chunks.iter();
        Outline {
            id: self.batch.id,
            first: tickets().reduce(older).unwrap_or_default(),
            last: tickets().reduce(newer).unwrap_or_default(),
            calls: calls.len(),
            items: calls.iter().map(|call| call.request.items).sum(),
            failed: self.batch.payload.failed,
            chunks: chunks.len(),
            engine: match chunks.all(|sent| sent.is_cpu_share) {
                true => Engine::Cpu,
                false => engine,
            },
        }
    }
}

impl Way {
    /// The way of a batch that is about to be sent.
    pub(super) fn new(generation: Generation, sent: Millis, company: Company) -> Self {
        Way {
            generation,
            sent,
            chunks: Vec::new(),
            landed: 0,
            rest: Vec::new(),
            timing: None,
            groups: Vec::new(),
            company,
            slice: 0.0,
            retry: None,
            found_loss: false,
            is_refused: false,
            tainted: Vec::new(),
        }
    }

    /// Whether the flight that lands next is the batch's last, and the device's.
    pub(super) fn is_at_last(&self) -> bool {
        self.landed + 1 == self.chunks.len() && self.rest.is_empty() && self.is_device_next()
    }

    /// Whether the flight that lands next is the device's.
    pub(super) fn is_device_next(&self) -> bool {
        let next = self.chunks.get(self.landed);
        next.is_some_and(|sent| !sent.is_cpu_share)
    }

    /// Whether the flight that lands next is the device's, and shows that the device works:
    /// nobody waits for what a chunk only writes to tensors.
    pub(super) fn is_heard_next(&self) -> bool {
        let next = self.chunks.get(self.landed);
        self.is_device_next() && next.is_some_and(Sent::has_words)
    }

    /// Whether a chunk of the batch still needs the device that the batch was sent to.
    pub(super) fn needs_device(&self) -> bool {
        let to_come = &self.chunks[self.landed..];
        !self.rest.is_empty() || to_come.iter().any(|sent| !sent.is_cpu_share)
    }

    /// How many of the calls ahead were sent, the last maybe in part.
    pub(super) fn sent_calls(&self) -> usize {
        let mut chunks = self.chunks.iter().rev();
        let last = chunks.find(|sent| !sent.is_cpu_share);
        last.map_or(0, |sent| sent.chunk.end)
    }

    /// Whether chunks of the batch are still to be sent, for the first time or again.
    pub(super) fn has_more(&self) -> bool {
        !self.rest.is_empty() || self.retry.is_some() || self.found_loss
    }

    /// Whether another chunk may go: one is always in flight, two if there are so many, and
    /// more as long as they are few bytes. None goes behind one that was not submitted, until that
    /// is answered: its calls may go again before, or calls behind may read what it was to write.
    pub(super) fn has_room(&self, most: &Allowance) -> bool {
        let mut on_the_way = self.chunks[self.landed..].iter();
        if on_the_way.any(|sent| sent.acceptance == Acceptance::Failed) {
            return false;
        }
        let sent = || {
            self.chunks[self.landed..]
                .iter()
                .filter(|sent| !sent.is_cpu_share)
        };
        let bytes: u64 = sent().map(|sent| sent.bytes).sum();
        match sent().count() {
            0 => true,
            count if count >= most.chunks => false,
            count => count < 2 || bytes < most.bytes,
        }
    }
}
