//! Things that are made once and found again. Where there are many, those not
//! used for longest make room; a drop is all that it takes to free one.

/// A list that is searched, as few things are in it.
#[derive(Debug)]
pub(super) struct Kept<T> {
    items: Vec<(u64, T)>,
    most: usize,
}

impl<T> Kept<T> {
    /// A list of at most so many, unless one launch needs more.
    pub(super) const fn new(most: usize) -> Self {
        Kept {
            items: Vec::new(),
            most,
        }
    }

    /// The place of the item that fits, made if there is none, and whether it was.
    /// Invariant: places found in one launch stay as they are while it lasts.
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
        let places = self.items.iter().enumerate();
        let oldest = places.min_by_key(|(_, (used, _))| *used);
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

    /// Whether one fits, which is then used in `launch`.
    pub(super) fn touch(&mut self, launch: u64, fits: impl Fn(&T) -> bool) -> bool {
        let found = self.items.iter_mut().find(|(_, item)| fits(item));
        found.map(|(used, _)| *used = launch).is_some()
    }

    /// Whether one fits.
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
    fn what_was_used_last_stays() {
        let mut kept = Kept::new(4);
        let mut ask =
            |launch, item: u32| kept.find_or_make(launch, |known| *known == item, || item).1;
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
        // One launch has all it needs, and what it has stays in its place.
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
        assert_eq!(kept.items.len(), 6, "as many as one launch needed");
    }
}
