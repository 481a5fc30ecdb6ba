//! The listeners of a session to events of one kind, and the events that they are to hear of.
//!
//! Who calls the listeners, and when, is not known here.

use std::collections::VecDeque;
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
    /// Events that the listeners have not heard of, oldest first.
    events: VecDeque<E>,
    /// Whether a thread is calling the listeners.
    is_calling: bool,
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
            events: VecDeque::new(),
            is_calling: false,
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

    /// Takes an event. `true` where the caller is to call the listeners; otherwise the thread
    /// that is calling them goes on with this event, so that events stay in order.
    pub(super) fn note(&mut self, event: E) -> bool {
        if self.is_empty() {
            return false;
        }
        self.events.push_back(event);
        !std::mem::replace(&mut self.is_calling, true)
    }

    /// The oldest event that nobody has heard of, and all listeners, to be called with nothing
    /// locked and then given back.
    pub(super) fn next(&mut self) -> Option<(E, Vec<Numbered<E>>)> {
        let event = self.events.pop_front();
        self.is_calling = event.is_some();
        Some((event?, std::mem::take(&mut self.resting)))
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
