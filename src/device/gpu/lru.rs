//! A list of a bounded number of items, of which the least recently used makes room for a
//! new one. The list knows nothing of its items: dropping one is all that frees it.

/// A least-recently-used list. Lookups are linear: there are few items.
#[derive(Debug)]
pub(super) struct Lru<T> {
    /// Each item with the launch that used it last.
    items: Vec<(u64, T)>,
    most: usize,
}

impl<T> Lru<T> {
    /// A list of at most `most` items, or of as many as one launch needs.
    pub(super) const fn new(most: usize) -> Self {
        Lru {
            items: Vec::new(),
            most,
        }
    }

    /// The index of the item that fits, and whether it was made just now.
    /// Invariant: an index that was found in a launch stays valid until the launch ends.
    pub(super) fn find_or_make(
        &mut self,
        launch: u64,
        fits: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> (usize, bool) {
        if let Some(at) = self.items.iter().position(|(_, item)| fits(item)) {
            self.items[at].0 = launch;
            return (at, false);
        }
        let item = (launch, make());
        let items = self.items.iter().enumerate();
        let oldest = items.min_by_key(|(_, (used, _))| *used);
        match oldest {
            Some((at, (used, _))) if self.items.len() >= self.most && *used < launch => {
                self.items[at] = item;
                (at, true)
            }
            _ => {
                self.items.push(item);
                (self.items.len() - 1, true)
            }
        }
    }

    /// Marks the item that fits as used in `launch`; `false` where none fits.
    pub(super) fn touch(&mut self, launch: u64, fits: impl Fn(&T) -> bool) -> bool {
        let found = self.items.iter_mut().find(|(_, item)| fits(item));
        found.map(|(used, _)| *used = launch).is_some()
    }

    /// Whether an item fits.
    pub(super) fn has(&self, fits: impl Fn(&T) -> bool) -> bool {
        self.items.iter().any(|(_, item)| fits(item))
    }

    pub(super) fn get(&self, at: usize) -> &T {
        &self.items[at].1
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.items.retain(|(_, item)| keep(item));
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_item_makes_room() {
        let mut lru = Lru::new(4);
        let mut ask =
            |launch, item: u32| lru.find_or_make(launch, |known| *known == item, || item).1;
        let made = |asked: &[(u64, u32)], ask: &mut dyn FnMut(u64, u32) -> bool| {
            let made = asked.iter().filter(|(launch, item)| ask(*launch, *item));
            made.map(|(_, item)| *item).collect::<Vec<_>>()
        };
        assert_eq!(
            made(&[(1, 1), (1, 2), (2, 3), (2, 4), (3, 1)], &mut ask),
            [1, 2, 3, 4]
        );
        // 2 was used longest ago, then 3 and 4.
        assert_eq!(made(&[(4, 5), (5, 1), (5, 5), (5, 2)], &mut ask), [5, 2]);
        // A launch that needs more than four items has them all, and their indices stay.
        assert_eq!(
            made(&[(6, 1), (6, 2), (6, 6), (6, 7), (6, 8), (6, 9)], &mut ask),
            [6, 7, 8, 9]
        );
        assert_eq!(
            made(&[(6, 1), (6, 2), (6, 6), (6, 7), (6, 8), (6, 9)], &mut ask),
            [0_u32; 0]
        );
        for item in 100..1100 {
            ask(u64::from(item), item);
        }
        assert_eq!(lru.items.len(), 6, "as many as one launch needed");
    }
}
