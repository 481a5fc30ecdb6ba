//! Where the answer to a call goes: to whoever awaits the call, as floats or as states.
//!
//! What the answer is made of comes from `delivery`.

use futures_channel::oneshot::Sender;

use super::embedder::Burden;
use super::result_buffer::{Spare, Words};
use crate::error::Error;
use crate::ops::State;

/// Where the answer to a call goes.
#[derive(Debug)]
pub(super) enum Answer {
    /// At most so many floats: behind those of a chain there may be padding.
    Floats(Sender<Result<Vec<f32>, Error>>, usize),
    States(Sender<Result<Vec<State>, Error>>),
    /// At most so many floats of a text, and what the device is eased of with it.
    Embedded(Sender<Result<Vec<f32>, Error>>, usize, Burden),
}

impl From<Sender<Result<Vec<f32>, Error>>> for Answer {
    fn from(sender: Sender<Result<Vec<f32>, Error>>) -> Self {
        Answer::Floats(sender, usize::MAX)
    }
}

impl From<Sender<Result<Vec<State>, Error>>> for Answer {
    fn from(sender: Sender<Result<Vec<State>, Error>>) -> Self {
        Answer::States(sender)
    }
}

impl Answer {
    /// Whether somebody else can give it.
    pub(super) fn may_move(&self) -> bool {
        matches!(self, Answer::Embedded(_, _, burden) if burden.may_move())
    }

    /// What its result of `total` words is to be put in.
    pub(super) fn words(&self, spare: &mut Spare, total: u32) -> Words {
        match self {
            Answer::Floats(..) | Answer::Embedded(..) => Words::Floats(spare.take(total as usize)),
            Answer::States(_) => Words::States(Vec::new()),
        }
    }

    /// Settles the call with its result or with its error. A call dropped a moment
    /// ago does not listen any more.
    pub(super) fn send(self, outcome: Result<Words, Error>) {
        match self {
            Answer::Floats(sender, most) => {
                let floats = outcome.map(|words| {
                    let mut floats = words.floats();
                    floats.truncate(most);
                    floats
                });
                let _ = sender.send(floats);
            }
            Answer::Embedded(sender, most, burden) => {
                match &outcome {
                    Ok(_) => burden.answered(),
                    Err(_) => drop(burden),
                }
                Answer::Floats(sender, most).send(outcome);
            }
            Answer::States(sender) => {
                let _ = sender.send(outcome.map(Words::states));
            }
        }
    }
}
