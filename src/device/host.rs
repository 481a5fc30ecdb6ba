//! The memory of results on the host, which comes back to be used again: new
//! memory costs its clearing, and natively its first touch.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// Words that are kept at most: 64 MiB.
const KEPT: usize = 1 << 24;

/// Where the memory of results comes back to.
#[derive(Clone, Debug, Default)]
pub struct HostPool(Arc<Mutex<Vec<u32>>>);

/// Results on the host.
#[derive(Debug, Default)]
pub struct HostWords {
    words: Vec<u32>,
    pool: HostPool,
}

impl HostPool {
    /// Memory for so many words or fewer, with whatever is in it.
    pub fn take(&self, words: usize) -> Vec<u32> {
        let mut kept = match self.0.lock() {
            Ok(mut kept) => std::mem::take(&mut *kept),
            Err(_) => Vec::new(), // Somebody panicked with it.
        };
        kept.truncate(words);
        kept
    }

    /// Lends words, which come back when they are dropped.
    pub fn lend(&self, words: Vec<u32>) -> HostWords {
        let pool = self.clone();
        HostWords { words, pool }
    }
}

impl From<Vec<u32>> for HostWords {
    fn from(words: Vec<u32>) -> Self {
        HostPool::default().lend(words)
    }
}

impl Deref for HostWords {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.words
    }
}

impl Drop for HostWords {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        if let Ok(mut kept) = self.pool.0.lock()
            && (kept.capacity()..=KEPT).contains(&words.capacity())
        {
            *kept = words;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_and_no_more_than_is_kept() {
        let pool = HostPool::default();
        assert!(pool.take(5).is_empty(), "nothing came back yet");
        let first = pool.lend(vec![7; 100]);
        let second = pool.lend(vec![8; 50]);
        assert!(pool.take(5).is_empty(), "both are in use");
        drop(first);
        drop(second);
        assert_eq!(pool.take(5), [7; 5], "the larger one is kept");
        drop(pool.lend(vec![0; KEPT + 1]));
        assert!(pool.take(1).is_empty(), "too much to keep");
    }
}
