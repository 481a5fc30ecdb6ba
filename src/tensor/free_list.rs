//! The words of a memory that are in use, and those that are free.
//!
//! Numbers only: what lies in the words, and on which device, is the owner's matter.

/// Places in a memory, such as the store of clips or a slab of tensors. A place that is given back
/// joins the free words beside it, so that clips and tensors that come and go do not fragment the
/// memory.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Words up to the end of the last place in use.
    end: u32,
    /// The free runs of words: where each begins, and how long it is. Invariant: they are in
    /// order, and words in use lie between two runs and behind the last.
    free: Vec<(u32, u32)>,
}

impl Places {
    /// A place of `words` words in a memory of `size` words: the first free run that holds them,
    /// or behind all others. `None` where the memory has no such place.
    pub(crate) fn take(&mut self, words: u32, size: u32) -> Option<u32> {
        let Some(found) = self.free.iter().position(|(_, free)| *free >= words) else {
            let at = self.end;
            let end = at.checked_add(words).filter(|end| *end <= size)?;
            self.end = end;
            return Some(at);
        };
        let (at, free) = self.free[found];
        if free == words {
            self.free.remove(found);
        } else {
            self.free[found] = (at + words, free - words);
        }
        Some(at)
    }

    /// Gives a place back.
    pub(crate) fn give(&mut self, at: u32, words: u32) {
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

    /// Joins a free run with the next one, if no word is between them.
    fn join(&mut self, index: usize) {
        let (at, words) = self.free[index];
        if let Some((next, more)) = self.free.get(index + 1).copied()
            && at + words == next
        {
            self.free[index].1 += more;
            self.free.remove(index + 1);
        }
    }

    /// Whether no word is in use.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Words up to the end of the last place in use.
    #[cfg(test)]
    pub(crate) fn end(&self) -> u32 {
        self.end
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "free_list_tests.rs"]
mod tests;
