//! Who waits for a call's answer, and in what form.
//!
//! The words of the answer come from `delivery`.

use futures_channel::oneshot::Sender;

use super::embedder::Burden;
use super::page_writes::PageWrite;
use super::residents::Targets;
use super::result_buffer::{Spare, Words};
use crate::error::Error;
use crate::ops::State;

/// Who waits for a call's answer.
#[derive(Debug)]
pub(super) enum Recipient {
    /// Somebody who wants at most so many floats: a chain's result may end in padding.
    Floats(Sender<Result<Vec<f32>, Error>>, usize),
    /// Somebody who wants states.
    States(Sender<Result<Vec<State>, Error>>),
    /// Somebody who wants at most so many floats of a text, and the load that the text is on its
    /// device.
    Embedded(Sender<Result<Vec<f32>, Error>>, usize, Burden),
    /// Somebody who waits until tensors are written. What goes wrong with the call is why the words
    /// are missing of those that had none.
    Storing(Box<(Recipient, Targets)>),
    /// Somebody who lent memory for the result; `None` once the result lies there.
    Lender(Box<(Recipient, Option<Words>)>),
    /// An index, which notes where a call failed that was to write one of its pages.
    Page(Box<PageWrite>),
}

impl From<Sender<Result<Vec<f32>, Error>>> for Recipient {
    fn from(sender: Sender<Result<Vec<f32>, Error>>) -> Self {
        Recipient::Floats(sender, usize::MAX)
    }
}

impl From<Sender<Result<Vec<State>, Error>>> for Recipient {
    fn from(sender: Sender<Result<Vec<State>, Error>>) -> Self {
        Recipient::States(sender)
    }
}

impl Recipient {
    /// Whether another session can give the answer.
    pub(super) fn may_move(&self) -> bool {
        match self {
            Recipient::Embedded(_, _, burden) => burden.may_move(),
            Recipient::Lender(lender) => lender.0.may_move(),
            Recipient::Floats(..)
            | Recipient::States(_)
            | Recipient::Storing(_)
            | Recipient::Page(_) => false,
        }
    }

    /// Somebody who waits until these tensors are written, if there are any.
    pub(super) fn storing(self, targets: Targets) -> Recipient {
        match targets.empty.is_empty() && targets.filled.is_empty() {
            true => self,
            false => Recipient::Storing(Box::new((self, targets))),
        }
    }

    /// The tensors that the call writes.
    pub(super) fn targets(&self) -> Option<&Targets> {
        match self {
            Recipient::Storing(storing) => Some(&storing.1),
            Recipient::Lender(lender) => lender.0.targets(),
            Recipient::Floats(..)
            | Recipient::States(_)
            | Recipient::Embedded(..)
            | Recipient::Page(_) => None,
        }
    }

    /// Somebody who lends this memory for the result.
    pub(super) fn lending(self, memory: Words) -> Recipient {
        Recipient::Lender(Box::new((self, Some(memory))))
    }

    /// Memory for a result of `total` words, in the form that is wanted.
    pub(super) fn words(&mut self, spare: &mut Spare, total: u32) -> Words {
        match self {
            Recipient::Lender(lender) => {
                let (recipient, memory) = &mut **lender;
                memory
                    .take()
                    .unwrap_or_else(|| recipient.words(spare, total))
            }
            Recipient::Storing(storing) => storing.0.words(spare, total),
            Recipient::Floats(..) | Recipient::Embedded(..) => {
                Words::Floats(spare.take(total as usize))
            }
            Recipient::States(_) => Words::States(Vec::new()),
            Recipient::Page(_) => Words::Floats(Vec::new()),
        }
    }

    /// Settles the call with its result or with its error. A call that was dropped a moment ago
    /// does not hear of it.
    pub(super) fn send(self, outcome: Result<Words, Error>) {
        match self {
            Recipient::Floats(sender, most) => {
                let floats = outcome.map(|words| {
                    let mut floats = words.floats();
                    floats.truncate(most);
                    floats
                });
                let _ = sender.send(floats);
            }
            Recipient::Embedded(sender, most, burden) => {
                match &outcome {
                    Ok(_) => burden.answered(),
                    Err(_) => drop(burden),
                }
                Recipient::Floats(sender, most).send(outcome);
            }
            Recipient::Page(write) => {
                if outcome.is_err() {
                    write.fail();
                }
            }
            Recipient::Lender(lender) => lender.0.send(outcome),
            Recipient::Storing(storing) => storing.0.send(outcome),
            Recipient::States(sender) => {
                let _ = sender.send(outcome.map(Words::states));
            }
        }
    }
}
