//! A map that keeps its most recently used entries. What the entries are is not known here.

use std::collections::HashMap;
use std::hash::Hash;

/// Entries of a generation; there are two.
const GENERATION: usize = 512;

/// A map of at most two generations of entries. When the young one is full it becomes the old one,
/// and the entries that were old are dropped.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// Values that were dropped by a lookup, until the next key is added.
    dropped: Vec<V>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent {
            young: HashMap::new(),
            old: HashMap::new(),
            dropped: Vec::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, V: Copy> Recent<K, V> {
    /// The value of a key, which counts as used now.
    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(*value);
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.put(key, value);
        Some(value)
    }

    /// Adds a new key; the values that were dropped.
    pub(super) fn add(&mut self, key: K, value: V) -> Vec<V> {
        self.put(key, value);
        std::mem::take(&mut self.dropped)
    }

    fn put(&mut self, key: K, value: V) {
        if self.young.len() == GENERATION {
            let young = std::mem::take(&mut self.young);
            let old = std::mem::replace(&mut self.old, young);
            self.dropped.extend(old.into_values());
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_goes_once() {
        let mut recent = Recent::default();
        let mut gone = Vec::new();
        for key in 0..10_000_u32 {
            assert_eq!(recent.get(&key), None);
            gone.extend(recent.add(key, key));
            assert_eq!(recent.get(&0), Some(0), "used all the time");
            assert_eq!(recent.get(&(key / 2 * 2)), Some(key / 2 * 2));
        }
        assert!(recent.young.len() + recent.old.len() <= 2 * GENERATION);
        let kept = recent.young.values().chain(recent.old.values());
        let mut all: Vec<u32> = kept.chain(&gone).chain(&recent.dropped).copied().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..10_000), "each is kept or gone, once");
        assert!(gone.iter().all(|key| *key < 10_000 - GENERATION as u32));
    }
}
