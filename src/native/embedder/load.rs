//! How many tokens each device has to embed, and which device the next text goes to.
//!
//! Only counters that any thread may read: no device is asked, and nothing is locked.

use std::iter::Sum;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a device did for an embedder, and what it has yet to do. The counts of several devices can
/// be summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbedderStats {
    /// Texts that the device answered with a vector; equal texts that waited together count once.
    pub texts: u64,
    /// Tokens of these texts.
    pub tokens: u64,
    /// Tokens of the texts that the device was given and has not answered.
    pub pending_tokens: u64,
    /// Texts that went to another device, because this one was lost, closed or full.
    pub handed_over: u64,
}

impl Sum for EmbedderStats {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(EmbedderStats::default(), |sum, one| EmbedderStats {
            texts: sum.texts + one.texts,
            tokens: sum.tokens + one.tokens,
            pending_tokens: sum.pending_tokens + one.pending_tokens,
            handed_over: sum.handed_over + one.handed_over,
        })
    }
}

/// The counts of one device.
#[derive(Debug)]
pub(super) struct Load {
    /// Whether the session has a device of the kind that it was opened on.
    sound: Arc<AtomicBool>,
    texts: AtomicU64,
    tokens: AtomicU64,
    pending_tokens: AtomicU64,
    pub(super) handed_over: AtomicU64,
}

impl Load {
    pub(super) fn new(sound: Arc<AtomicBool>) -> Load {
        Load {
            sound,
            texts: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            pending_tokens: AtomicU64::new(0),
            handed_over: AtomicU64::new(0),
        }
    }

    pub(super) fn stats(&self) -> EmbedderStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        EmbedderStats {
            texts: read(&self.texts),
            tokens: read(&self.tokens),
            pending_tokens: read(&self.pending_tokens),
            handed_over: read(&self.handed_over),
        }
    }

    fn is_sound(&self) -> bool {
        self.sound.load(Ordering::Relaxed)
    }
}

/// A set of devices: a bit for each place in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(u64);

impl Places {
    /// The most devices, one for each bit of [`Places`].
    pub(super) const MOST: usize = 64;

    pub(super) const ALL: Places = Places(u64::MAX);

    pub(super) fn with(self, at: usize) -> Places {
        Places(self.0 | 1 << at)
    }

    fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }
}

/// The place of the device with the fewest pending tokens, of the devices that were not tried, and
/// of the sound devices if there are any.
pub(super) fn least(loads: &[Load], tried: Places) -> Option<usize> {
    let untried = loads.iter().enumerate().filter(|(at, _)| !tried.has(*at));
    let best = untried.min_by_key(|(_, load)| {
        let pending = load.pending_tokens.load(Ordering::Relaxed);
        (!load.is_sound(), pending)
    });
    best.map(|(at, _)| at)
}

/// The load of a text on a device, which ends when this is dropped.
#[derive(Debug)]
pub(in crate::native) struct Burden {
    loads: Arc<[Load]>,
    at: usize,
    tokens: u64,
    /// The devices that were tried, this one included.
    tried: Places,
}

impl Burden {
    pub(super) fn new(loads: &Arc<[Load]>, at: usize, tokens: u64, tried: Places) -> Burden {
        let pending = &loads[at].pending_tokens;
        pending.fetch_add(tokens, Ordering::Relaxed);
        Burden {
            loads: Arc::clone(loads),
            at,
            tokens,
            tried,
        }
    }

    /// Whether there is a sound device that was not tried.
    pub(in crate::native) fn may_move(&self) -> bool {
        least(&self.loads, self.tried).is_some_and(|at| self.loads[at].is_sound())
    }

    /// Counts the text as answered by the device.
    pub(in crate::native) fn answered(self) {
        let load = &self.loads[self.at];
        load.texts.fetch_add(1, Ordering::Relaxed);
        load.tokens.fetch_add(self.tokens, Ordering::Relaxed);
    }
}

impl Drop for Burden {
    fn drop(&mut self) {
        let pending = &self.loads[self.at].pending_tokens;
        pending.fetch_sub(self.tokens, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(count: usize) -> Arc<[Load]> {
        let load = |_| Load::new(Arc::new(AtomicBool::new(true)));
        (0..count).map(load).collect()
    }

    #[test]
    fn texts_go_where_the_fewest_tokens_are() {
        let loads = loads(3);
        let mut held = Vec::new();
        let dealt = [100, 40, 30, 30, 10, 10, 5, 90].map(|tokens| {
            let at = least(&loads, Places::default()).expect("there are three");
            held.push(Burden::new(&loads, at, tokens, Places::default()));
            at
        });
        assert_eq!(dealt, [0, 1, 2, 2, 1, 1, 1, 2]);
        held.clear();
        assert!(loads.iter().all(|load| load.stats().pending_tokens == 0));
    }

    #[test]
    fn what_is_not_sound_comes_last_and_what_was_tried_never() {
        let loads = loads(3);
        let none = Places::default();
        let held = Burden::new(&loads, 1, 5, none.with(1));
        loads[0].sound.store(false, Ordering::Relaxed);
        loads[2].sound.store(false, Ordering::Relaxed);
        assert_eq!(least(&loads, none), Some(1));
        assert_eq!(least(&loads, none.with(1)), Some(0));
        assert!(!held.may_move(), "no other is sound");
        loads[2].sound.store(true, Ordering::Relaxed);
        assert!(held.may_move());
        assert_eq!(least(&loads, none), Some(2));
        assert_eq!(least(&loads, none.with(0).with(1).with(2)), None);
        assert_eq!(least(&loads, Places::ALL), None);
        held.answered();
        let sum: EmbedderStats = loads.iter().map(Load::stats).sum();
        let expected = EmbedderStats {
            texts: 1,
            tokens: 5,
            ..EmbedderStats::default()
        };
        assert_eq!(sum, expected);
    }
}
