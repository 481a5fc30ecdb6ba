//! The tensors of a session by number, and what each is made of again when its device is lost.
//!
//! Who reads a tensor the session counts, and what the handles are is in `tensor`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::import::Imports;
use super::platform::AnyDevice;
use super::recipient::Recipient;
use super::state::State;
use super::storage::Contents;
use super::tensor::Resident;
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
    /// Nothing: only the device has its data.
    Given,
    /// Nothing: the tensor is a buffer of the program's.
    Imported,
    /// Nothing: the tensor was lost with its device, for this reason.
    Lost(&'static str),
}

impl Residents {
    /// Refuses a tensor that was lost with its device.
    pub(super) fn check(&self, number: u32) -> Result<(), Error> {
        match self.sources.get(&number) {
            Some(Source::Lost(why)) => Err(Error::DeviceLost((*why).into())),
            _ => Ok(()),
        }
    }
}

impl State {
    /// Fills the tensors again after a loss. A tensor that cannot be filled is lost, and its calls
    /// are given up; who waits for these calls.
    pub(super) fn restore(&mut self) -> Vec<Recipient> {
        let mut sources = std::mem::take(&mut self.residents.sources);
        for (number, source) in &mut sources {
            let lost = match source {
                Source::Kept(data) | Source::Once(data) => {
                    fill(&mut self.driver.session, *number, data)
                        .err()
                        .map(|_| NO_ROOM)
                }
                Source::Given => Some(NO_SOURCE),
                Source::Imported => Some(IMPORTED),
                Source::Lost(why) => Some(*why),
            };
            if let Some(why) = lost {
                *source = Source::Lost(why);
            } else if let Source::Once(_) = source {
                *source = Source::Given;
            }
        }
        self.residents.sources = sources;
        self.clips.restore(&mut self.driver.session);
        self.indexes.restore(&mut self.driver.session);
        let tickets = self.driver.resume().into_iter();
        tickets
            .filter_map(|ticket| self.answers.remove(&ticket))
            .collect()
    }
}

const NO_ROOM: &str = "a tensor's data found no room on the next one; make it again, smaller";
const NO_SOURCE: &str = "a tensor's data went with it; make it again, or keep its source";
const IMPORTED: &str = "an imported buffer went with it; import one of `wgpu_device`'s device";

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
