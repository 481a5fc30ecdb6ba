//! The tensor that all clips of a session lie in, so that calls of different clips are computed
//! together.
//!
//! What a clip's words mean is not known here.

use std::collections::VecDeque;

use super::platform::AnyDevice;
use crate::error::Error;
use crate::session::{Fence, Session};
use crate::tensor::Places;

/// Words of the first store; it doubles when it is full.
const SMALLEST: usize = 1 << 16;

/// A place that no call from behind a fence samples.
#[derive(Debug)]
struct DroppedPlace {
    fence: Fence,
    at: u32,
    words: u32,
}

/// The store of one session.
#[derive(Debug, Default)]
pub(super) struct Clips {
    words: Vec<u32>,
    places: Places,
    /// Places of clips that are gone, oldest first. Batches may sample some of these yet.
    dropped: VecDeque<DroppedPlace>,
    /// The store's tensor, once there is a clip.
    number: Option<u32>,
    /// Whether the device has all words. A device that had no room for them, or that replaced
    /// another one, gets them when a call needs them next.
    is_there: bool,
}

impl Clips {
    /// Finds a place for a clip and writes it there, on the device too.
    pub(super) fn put(
        &mut self,
        words: &[u32],
        session: &mut Session<AnyDevice>,
    ) -> Result<u32, Error> {
        self.reclaim(session);
        let need = words_of(words.len());
        let at = self.places.take(need, u32::MAX);
        let at = at.expect("a store has fewer than 2^32 words");
        let place = at as usize..at as usize + words.len();
        let before = self.words.len();
        if place.end > before {
            let size = place.end.max(SMALLEST).next_power_of_two();
            self.words.resize(size, 0);
            self.is_there = false;
        }
        self.words[place].copy_from_slice(words);
        let number = self.number(session);
        let written = match self.is_there {
            true => session.patch(number, at, words),
            false => self.store(session),
        };
        if let Err(error) = written {
            self.words.truncate(before);
            self.places.give(at, need);
            // The larger tensor replaced that of the other clips, which are stored again.
            let _ = self.store(session);
            return Err(error);
        }
        Ok(at)
    }

    /// Gives a clip's place to others, as soon as no batch can sample it.
    pub(super) fn release(&mut self, at: u32, words: u32, session: &Session<AnyDevice>) {
        let fence = session.fence();
        self.dropped.push_back(DroppedPlace { fence, at, words });
    }

    fn reclaim(&mut self, session: &Session<AnyDevice>) {
        // Places are given back in the order in which they were dropped: a later fence seldom
        // passes earlier.
        while let Some(DroppedPlace { fence, at, words }) = self.dropped.front()
            && session.has_passed(*fence)
        {
            self.places.give(*at, *words);
            self.dropped.pop_front();
        }
    }

    /// The number of the store's tensor.
    pub(super) fn number(&mut self, session: &mut Session<AnyDevice>) -> u32 {
        *self.number.get_or_insert_with(|| session.hold())
    }

    /// Whether the device has all clips, or is lost and gets them with the next one.
    pub(super) fn is_stored(&self, session: &Session<AnyDevice>) -> bool {
        self.is_there || self.words.is_empty() || session.is_lost()
    }

    /// Brings all clips to the device.
    pub(super) fn store(&mut self, session: &mut Session<AnyDevice>) -> Result<(), Error> {
        let number = self.number(session);
        if !self.is_stored(session) {
            session.fill(number, &self.words)?;
            self.is_there = true;
        }
        Ok(())
    }

    /// Fills the store again after a loss.
    pub(super) fn restore(&mut self, session: &mut Session<AnyDevice>) {
        self.is_there = false;
        // Where there is no room for the store, calls that sample clips are given up.
        let _ = self.store(session);
    }
}

/// A number of words in 32 bits, as places count them.
pub(super) fn words_of(count: usize) -> u32 {
    u32::try_from(count).expect("a store has fewer than 2^32 words")
}
