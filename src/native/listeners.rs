//! The listeners of a session to events of one kind.
//!
//! Who calls the listeners, and when, is not known here.

use std::fmt;

/// Hears of an event.
pub(super) type Listener<E> = Box<dyn FnMut(&E) + Send>;

/// The listeners of a session to one kind of events.
pub(super) struct Listeners<E> {
    /// All but those that are being called.
    resting: Vec<Numbered<E>>,
    /// The numbers of all who still listen.
    listening: Vec<u64>,
    /// How many there were so far.
    numbered: u64,
}

/// A listener and its number in the session.
pub(super) struct Numbered<E> {
    pub(super) number: u64,
    pub(super) listener: Listener<E>,
}

impl<E> Default for Listeners<E> {
    fn default() -> Self {
        Listeners {
            resting: Vec::new(),
            listening: Vec::new(),
            numbered: 0,
        }
    }
}

impl<E> Listeners<E> {
    /// Whether nobody listens.
    pub(super) fn is_empty(&self) -> bool {
        self.listening.is_empty()
    }

    /// Adds a listener; its number.
    pub(super) fn add(&mut self, listener: Listener<E>) -> u64 {
        self.numbered += 1;
        let number = self.numbered;
        self.listening.push(number);
        self.resting.push(Numbered { number, listener });
        number
    }

    /// Ends a listener, which is returned unless it is being called: to be dropped with nothing
    /// locked, for it may hold anything.
    pub(super) fn remove(&mut self, number: u64) -> Option<Numbered<E>> {
        self.listening.retain(|listening| *listening != number);
        let at = self.resting.iter().position(|one| one.number == number)?;
        Some(self.resting.remove(at))
    }

    /// All listeners, to be called with nothing locked and then given back.
    pub(super) fn take(&mut self) -> Vec<Numbered<E>> {
        std::mem::take(&mut self.resting)
    }

    /// Takes listeners back that were called; those that ended meanwhile, to be dropped with
    /// nothing locked.
    pub(super) fn give_back(&mut self, called: Vec<Numbered<E>>) -> Vec<Numbered<E>> {
        let still = |one: &Numbered<E>| self.listening.contains(&one.number);
        let (still, ended): (Vec<_>, Vec<_>) = called.into_iter().partition(still);
        self.resting.splice(..0, still);
        ended
    }
}

impl<E> fmt::Debug for Listeners<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listening", self.listening.len())
    }
}
