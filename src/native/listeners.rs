//! The listeners of a session, who hear of its batches.
//!
//! Who calls the listeners, and what a batch was, is not known here.

use std::fmt;

use crate::session::Facts;

/// Hears what a batch was.
pub(super) type Listener = Box<dyn FnMut(&Facts) + Send>;

/// The listeners of a session.
#[derive(Default)]
pub(super) struct Listeners {
    /// All but those that are being called.
    resting: Vec<Numbered>,
    /// The numbers of all who still listen.
    listening: Vec<u64>,
    /// How many there were so far.
    numbered: u64,
}

/// A listener and its number in the session.
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) listener: Listener,
}

impl Listeners {
    /// Whether nobody listens.
    pub(super) fn is_empty(&self) -> bool {
        self.listening.is_empty()
    }

    /// Adds a listener; its number.
    pub(super) fn add(&mut self, listener: Listener) -> u64 {
        self.numbered += 1;
        let number = self.numbered;
        self.listening.push(number);
        self.resting.push(Numbered { number, listener });
        number
    }

    /// Ends a listener, which is returned unless it is being called: to be dropped with nothing
    /// locked, for it may hold anything.
    pub(super) fn remove(&mut self, number: u64) -> Option<Numbered> {
        self.listening.retain(|listening| *listening != number);
        let at = self.resting.iter().position(|one| one.number == number)?;
        Some(self.resting.remove(at))
    }

    /// All listeners, to be called with nothing locked and then given back.
    pub(super) fn take(&mut self) -> Vec<Numbered> {
        std::mem::take(&mut self.resting)
    }

    /// Takes listeners back that were called; those that ended meanwhile, to be dropped with
    /// nothing locked.
    pub(super) fn give_back(&mut self, called: Vec<Numbered>) -> Vec<Numbered> {
        let still = |one: &Numbered| self.listening.contains(&one.number);
        let (still, ended): (Vec<_>, Vec<_>) = called.into_iter().partition(still);
        self.resting.splice(..0, still);
        ended
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listening", self.listening.len())
    }
}
