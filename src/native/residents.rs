//! The tensors of a session by number, and what each is made of again when its device is lost.
//!
//! Who reads a tensor the session counts, and what the handles are is in `tensor`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::import::Imports;
use super::platform::AnyDevice;
use super::recipient::Recipient;
use super::request::Written;
use super::state::State;
use super::storage::Contents;
use super::tensor::Resident;
use crate::batch::{Millis, Ticket};
use crate::error::Error;
use crate::session::{Filling, Session};

/// The tensors of a session by number, and where each comes from.
#[derive(Debug, Default)]
pub(super) struct Residents {
    pub(super) sources: BTreeMap<u32, Source>,
    pub(super) imports: Imports,
    /// In a session that explains calls of another one: tensors of that session, and their
    /// numbers here.
    pub(super) adopted: Vec<(Arc<Resident>, u32)>,
}

/// What a tensor is filled with on another device.
#[derive(Debug)]
pub(super) enum Source {
    /// The tensor's data.
    Kept(Contents),
    /// The tensor's data, which is dropped when it is on a device.
    Once(Contents),
    /// The tensor's data, for as long as no call that was taken has written over it: `Written` with
    /// these words from then on.
    Overwritten { data: Contents, words: u32 },
    /// Nothing: only the device has its data.
    Given,
    /// Nothing yet: the tensor has room for so many words, and is computed when its batch is
    /// executed.
    Unwritten { words: u32 },
    /// Nothing: the tensor has room for so many words, and a call was taken that computes them.
    Computed { words: u32 },
    /// Nothing: the tensor has so many words, which calls wrote. Another device has room for
    /// them, and the session knows that these words are lost until all of them are written.
    Written { words: u32 },
    /// Nothing: the tensor is a buffer of the program's.
    Imported,
    /// Nothing: the tensor was a buffer of the program's on a device that is gone.
    ImportLost,
    /// Nothing: the tensor's words are gone, for this reason.
    Lost(Error),
}

impl Residents {
    /// Refuses a tensor that has no words: they were lost, or are not computed yet.
    pub(super) fn check(&self, number: u32) -> Result<(), Error> {
        match self.sources.get(&number) {
            Some(Source::Lost(why)) => Err(why.clone()),
            Some(Source::ImportLost) => Err(Error::DeviceLost(IMPORTED.into())),
            Some(Source::Unwritten { .. }) => Err(Error::InvalidInput(
                "tensor: it is not computed yet; execute the batch whose `compute` gave it first"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    /// The tensors that are made again of their data, in 32-bit floats.
    pub(super) fn kept(&self) -> Vec<u32> {
        let is_kept = |source: &Source| {
            matches!(
                source,
                Source::Kept(_) | Source::Once(_) | Source::Overwritten { .. }
            )
        };
        let kept = self.sources.iter().filter(|(_, source)| is_kept(source));
        kept.map(|(number, _)| *number).collect()
    }

    /// The tensors that have the words of their data, and that no call was taken to write.
    pub(super) fn untouched(&self) -> Vec<u32> {
        let is_kept = |source: &Source| matches!(source, Source::Kept(_) | Source::Once(_));
        let kept = self.sources.iter().filter(|(_, source)| is_kept(source));
        kept.map(|(number, _)| *number).collect()
    }

    /// Notes that a call is to write a tensor. Its data is kept until the call has: until then a
    /// lost device's successor is filled with it.
    fn note_taken(&mut self, written: Written, targets: &mut Targets) {
        let Written { number, words, .. } = written;
        let Some(source) = self.sources.get_mut(&number) else {
            return; // A tensor of another session, whose calls are explained.
        };
        *source = match std::mem::replace(source, Source::Given) {
            Source::Kept(data) | Source::Once(data) | Source::Overwritten { data, .. } => {
                targets.filled.push(number);
                Source::Overwritten { data, words }
            }
            Source::Unwritten { words } => {
                targets.empty.push(number);
                Source::Computed { words }
            }
            _ => Source::Written { words },
        };
    }
}

/// The tensors that a call is to write, as far as its answer changes what they are made of again.
#[derive(Debug, Default)]
pub(super) struct Targets {
    /// The tensors that have no words before.
    pub(super) empty: Vec<u32>,
    /// The tensors that another device is filled with from data, until they are written.
    pub(super) filled: Vec<u32>,
}

impl State {
    /// Notes that a call that was taken is to write these tensors.
    pub(super) fn note_taken(&mut self, written: &[Written]) -> Targets {
        let mut targets = Targets::default();
        for written in written {
            self.residents.note_taken(*written, &mut targets);
        }
        targets
    }

    /// Notes that a call has written its tensors, which no longer have the words of their sources.
    /// Gives these: they may be large, and so are dropped with nothing locked.
    pub(super) fn note_written(&mut self, ticket: Ticket) -> Vec<Contents> {
        let mut over = Vec::new();
        let written = self.answers.get(&ticket).and_then(Recipient::targets);
        for number in written.map_or(&[][..], |targets| &targets.filled) {
            let Some(source) = self.residents.sources.get_mut(number) else {
                continue;
            };
            if let Source::Overwritten { words, .. } = *source {
                let before = std::mem::replace(source, Source::Written { words });
                if let Source::Overwritten { data, .. } = before {
                    over.push(data);
                }
            }
        }
        over
    }

    /// Notes that a call failed: tensors that it was to compute have no words, for the same reason,
    /// unless another call writes them.
    pub(super) fn note_failed(&mut self, ticket: Ticket, why: &Error) {
        let failed = self.answers.get(&ticket).and_then(Recipient::targets);
        for number in failed.map_or(&[][..], |targets| &targets.empty) {
            if let Some(source @ Source::Computed { .. }) = self.residents.sources.get_mut(number) {
                *source = Source::Lost(why.clone());
            }
        }
    }

    /// Takes who waits for a call that failed.
    pub(super) fn take_failed(&mut self, ticket: Ticket, why: &Error) -> Option<Recipient> {
        self.note_failed(ticket, why);
        self.answers.remove(&ticket)
    }

    /// Fills the tensors again after a loss. A tensor that cannot be filled is lost, and its calls
    /// are given up; who waits for these calls.
    pub(super) fn restore(&mut self, now: Millis) -> Vec<Recipient> {
        let kept = self.residents.kept();
        let mut sources = std::mem::take(&mut self.residents.sources);
        for (number, source) in &mut sources {
            let gone = match source {
                Source::Kept(data) | Source::Once(data) | Source::Overwritten { data, .. } => {
                    fill(&mut self.driver.session, *number, data)
                        .err()
                        .map(|_| lost(NO_ROOM))
                }
                Source::Unwritten { words }
                | Source::Computed { words }
                | Source::Written { words } => {
                    let made = self.driver.session.allocate(*number, *words);
                    made.err().map(|_| lost(NO_ROOM))
                }
                Source::Given => Some(lost(NO_SOURCE)),
                Source::Imported | Source::ImportLost => Some(Source::ImportLost),
                Source::Lost(why) => Some(Source::Lost(why.clone())),
            };
            if let Some(gone) = gone {
                *source = gone;
                continue;
            }
            if let Source::Once(_) = source {
                *source = Source::Given;
            }
        }
        self.residents.sources = sources;
        self.clips.restore(&mut self.driver.session);
        let mut tickets = self.restore_indexes(kept, now);
        tickets.extend(self.driver.resume());
        let tickets = tickets.into_iter();
        tickets
            .filter_map(|ticket| self.take_failed(ticket, &lost_with_device()))
            .collect()
    }
}

const NO_ROOM: &str = "a tensor's data found no room on the next one; make it again, smaller";
const NO_SOURCE: &str = "a tensor's data went with it; make it again, or keep its source";
const IMPORTED: &str = "an imported buffer went with it; import one of `wgpu_device`'s device";

fn lost(why: &str) -> Source {
    Source::Lost(Error::DeviceLost(why.into()))
}

/// The error of pending calls one of whose tensors is lost.
pub(super) fn lost_with_device() -> Error {
    let why = "a tensor of the call went with it; make it again, or keep its source, or import \
               a buffer of `wgpu_device`'s device";
    Error::DeviceLost(why.into())
}

/// A number for a tensor of this data.
pub(super) fn hold(session: &mut Session<AnyDevice>, contents: &Contents) -> u32 {
    let words = u32::try_from(contents.words.len()).expect("no more than 2^30");
    match contents.packing {
        None => session.hold_shared(words.max(1), &[]),
        Some(_) => session.hold(),
    }
}

/// Copies a tensor's data to the device. A tensor without elements gets a word, because a kernel
/// binds it.
pub(super) fn fill(
    session: &mut Session<AnyDevice>,
    number: u32,
    Contents {
        words,
        packing,
        row,
    }: &Contents,
) -> Result<(), Error> {
    let words = if words.is_empty() { &[0] } else { &words[..] };
    let count = u32::try_from(words.len()).expect("no more than 2^30");
    let filling = Filling::packed(*packing, count, *row);
    session.fill_rows(number, filling, &|device, place, range| {
        let words = &words[range.start as usize..range.end as usize];
        place.write(device, words, *packing)
    })
}
