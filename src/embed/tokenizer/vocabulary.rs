//! The tokens of a model, found by their bytes.
//!
//! A table with open addressing. Hashes grow byte by byte, so one pass over a text gives the hashes
//! of all tokens that begin at one place.

use super::text::number;
use crate::error::Error;

/// A token's hash, and its place plus one; 0 where there is none.
type Slot = (u32, u32);

/// In a slot: only longer tokens begin with what has this hash.
pub(super) const BEGINNING: u32 = u32::MAX;

/// All tokens, in the order in which they were added: a token's number here is its place.
pub(super) struct Vocabulary {
    /// Every token, one after another, and where each begins and the last one ends.
    text: Vec<u8>,
    starts: Vec<u32>,
    /// The id of each token.
    ids: Vec<u32>,
    pub(super) slots: Vec<Slot>,
    pub(super) used: usize,
    pub(super) longest: usize,
}

impl Default for Vocabulary {
    fn default() -> Vocabulary {
        Vocabulary::with_capacity(0)
    }
}

impl Vocabulary {
    /// An empty vocabulary with room for so many tokens.
    pub(super) fn with_capacity(tokens: usize) -> Vocabulary {
        Vocabulary {
            text: Vec::new(),
            starts: vec![0],
            ids: Vec::new(),
            slots: vec![(0, 0); (2 * tokens).next_power_of_two().max(16)],
            used: 0,
            longest: 0,
        }
    }

    /// Adds a token. Of equal tokens the last one counts.
    pub(super) fn push(&mut self, token: &[u8], id: u32) {
        self.reserve();
        let hash = token.iter().fold(SEED, extend);
        let mut at = self.first(hash);
        // A beginning's slot is taken over: it stays one, because only hashes are compared.
        while self.slots[at].1 != 0 && self.slots[at] != (hash, BEGINNING) {
            if self.holds(at, hash, &[], token) {
                break;
            }
            at = self.next(at);
        }
        self.used += usize::from(self.slots[at].1 == 0);
        self.slots[at] = (hash, number(self.len()) + 1);
        self.longest = self.longest.max(token.len());
        self.text.extend(token);
        self.starts.push(number(self.text.len()));
        self.ids.push(id);
    }

    /// Makes room for one more slot.
    pub(super) fn reserve(&mut self) {
        // A quarter of the slots stays free.
        if 4 * (self.used + 1) <= 3 * self.slots.len() {
            return;
        }
        let slots = vec![(0, 0); 2 * self.slots.len()];
        let before = std::mem::replace(&mut self.slots, slots);
        for slot in before.into_iter().filter(|(_, place)| *place != 0) {
            let mut at = self.first(slot.0);
            while self.slots[at].1 != 0 {
                at = self.next(at);
            }
            self.slots[at] = slot;
        }
    }

    pub(super) fn first(&self, hash: u32) -> usize {
        (hash ^ hash >> 15) as usize & (self.slots.len() - 1)
    }

    pub(super) fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// Whether a slot has the token that `head` and `tail` make.
    pub(super) fn holds(&self, slot: usize, hash: u32, head: &[u8], tail: &[u8]) -> bool {
        let (other, place) = self.slots[slot];
        if other != hash || place == BEGINNING {
            return false;
        }
        let token = self.token(place - 1);
        token.len() == head.len() + tail.len() && token.starts_with(head) && token.ends_with(tail)
    }

    /// How many tokens were added.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The highest id, if there are tokens.
    pub(super) fn last_id(&self) -> Option<u32> {
        self.ids.iter().max().copied()
    }

    pub(super) fn token(&self, place: u32) -> &[u8] {
        let place = place as usize;
        &self.text[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// The text of the token with an id, which is empty if there is none.
    pub(super) fn token_of(&self, id: u32) -> &str {
        // Nearly all vocabularies are in the order of their ids.
        let place = match self.ids.get(id as usize) == Some(&id) {
            true => Some(id as usize),
            false => self.ids.iter().position(|other| *other == id),
        };
        let token = place.map_or(&[][..], |place| self.token(number(place)));
        std::str::from_utf8(token).unwrap_or_default()
    }

    pub(super) fn id(&self, place: u32) -> u32 {
        self.ids[place as usize]
    }

    /// The place of a token.
    pub(super) fn place(&self, token: &[u8]) -> Option<u32> {
        self.place_of(token.iter().fold(SEED, extend), &[], token)
    }

    /// The place of a token that must be there.
    pub(super) fn needed(&self, token: &str) -> Result<u32, Error> {
        self.place(token.as_bytes()).ok_or_else(|| {
            let problem = ["the vocabulary has no token '", token, "'; name its own"];
            Error::InvalidInput(problem.concat())
        })
    }

    /// The place of the token that `head` and `tail` make.
    pub(super) fn place_of(&self, hash: u32, head: &[u8], tail: &[u8]) -> Option<u32> {
        let mut at = self.first(hash);
        while self.slots[at].1 != 0 {
            if self.holds(at, hash, head, tail) {
                return Some(self.slots[at].1 - 1);
            }
            at = self.next(at);
        }
        None
    }
}

/// FNV-1a: <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub(super) const SEED: u32 = 0x811c_9dc5;

pub(super) fn extend(hash: u32, byte: &u8) -> u32 {
    (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
}
