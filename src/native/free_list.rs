//! Which words of a store are in use.
//!
//! Numbers only: what lies there, and on which device, is the store's matter.

/// Places in a store. What is given back joins what is free beside it, so that
/// clips that come and go leave no crumbs.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Words up to the end of the last place in use.
    end: u32,
    /// Where words are free, and how many. Invariant: in order, with words in use
    /// between any two and behind the last.
    free: Vec<(u32, u32)>,
}

impl Places {
    /// A place of so many words: the first that is free, or behind all others.
    pub(super) fn take(&mut self, words: u32) -> u32 {
        let Some(found) = self.free.iter().position(|(_, free)| *free >= words) else {
            let at = self.end;
            self.end += words;
            return at;
        };
        let (at, free) = self.free[found];
        if free == words {
            self.free.remove(found);
        } else {
            self.free[found] = (at + words, free - words);
        }
        at
    }

    /// Gives a place back.
    pub(super) fn give(&mut self, at: u32, words: u32) {
        let index = self.free.partition_point(|(other, _)| *other < at);
        self.free.insert(index, (at, words));
        self.join(index);
        if let Some(before) = index.checked_sub(1) {
            self.join(before);
        }
        if let Some((at, words)) = self.free.last()
            && at + words == self.end
        {
            self.end = *at;
            self.free.pop();
        }
    }

    /// Makes a free place one with the next, if nothing is between them.
    fn join(&mut self, index: usize) {
        let (at, words) = self.free[index];
        if let Some((next, more)) = self.free.get(index + 1).copied()
            && at + words == next
        {
            self.free[index].1 += more;
            self.free.remove(index + 1);
        }
    }

    /// Words up to the end of the last place in use.
    #[cfg(test)]
    pub(super) fn end(&self) -> u32 {
        self.end
    }
}
