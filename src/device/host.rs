//! The memory of results on the host, which is used again: new memory has to be cleared, and
//! natively costs page faults when it is first written.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// The most words that are kept, whatever is allowed: 64 MiB.
const KEPT: usize = 1 << 24;

/// The pool that the memory of results comes back to.
#[derive(Clone, Debug, Default)]
pub struct HostPool(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    words: Vec<u32>,
    most: usize,
}

impl Default for Kept {
    fn default() -> Self {
        let words = Vec::new();
        Kept { words, most: KEPT }
    }
}

/// Results on the host.
#[derive(Debug, Default)]
pub struct HostWords {
    words: Vec<u32>,
    pool: HostPool,
}

impl HostPool {
    /// Memory of `words` words or fewer, with the contents of its last use.
    pub fn take(&self, words: usize) -> Vec<u32> {
        let mut kept = match self.0.lock() {
            Ok(mut kept) => std::mem::take(&mut kept.words),
            Err(_) => Vec::new(), // A thread panicked with the pool locked.
        };
        kept.truncate(words);
        kept
    }

    /// Keeps no more than `words` words from now on.
    pub fn allow(&self, words: u64) {
        if let Ok(mut kept) = self.0.lock() {
            kept.most = usize::try_from(words).map_or(KEPT, |words| words.min(KEPT));
            if kept.words.capacity() > kept.most {
                kept.words = Vec::new();
            }
        }
    }

    /// Frees what is kept.
    pub fn trim(&self) {
        drop(self.take(0));
    }

    /// Words that are kept.
    pub fn kept(&self) -> usize {
        self.0.lock().map_or(0, |kept| kept.words.capacity())
    }

    /// Lends words, which come back to the pool when they are dropped.
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
            && (kept.words.capacity()..=kept.most).contains(&words.capacity())
        {
            kept.words = words;
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
        pool.allow(60);
        drop(pool.lend(vec![1; 61]));
        assert_eq!(pool.kept(), 0, "more than is allowed");
        drop(pool.lend(vec![1; 60]));
        assert_eq!(pool.kept(), 60);
        pool.trim();
        assert_eq!(pool.kept(), 0);
        drop(pool.lend(vec![1; 60]));
        pool.allow(59);
        assert_eq!(pool.kept(), 0);
    }
}
