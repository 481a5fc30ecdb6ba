//! Where vectors lie in an index's device pages, which insertions write.
//!
//! Places only: the vectors themselves are on the device. A *place* counts vectors through all
//! pages, 64 for each block.

use std::collections::{BTreeMap, HashMap};

use super::rounded;
use crate::graph::insertion::{NOTHING, ROW};
use crate::graph::searching::{BLOCK, DeviceBlocks};

/// Words of the first page, 1 MiB, unless one block has more. Each page has twice as many words as
/// the page before, up to the most of a page.
const FIRST: u32 = 1 << 18;

/// The most rows of one insertion, 12 MiB of operands.
const MOST_ROWS: usize = 1 << 20;

/// The places of the vectors in device pages.
#[derive(Debug)]
pub struct DevicePlaces {
    /// The place of each vector, by its id.
    places: HashMap<u32, u32>,
    /// Places of vectors that were removed.
    free: Vec<u32>,
    /// How many places were ever taken.
    end: u32,
    block_words: u32,
    /// Blocks of the first page, and the most blocks of a page.
    first: u32,
    most: u32,
}

/// What one insertion writes.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRows {
    /// The number of the page.
    pub page: usize,
    /// The rows of the call, as [`Insertion`](crate::graph::insertion::Insertion) says.
    pub rows: Vec<u32>,
}

impl DevicePlaces {
    /// No vectors, in pages of at most so many blocks of so many words.
    pub(super) fn new(block_words: u32, most: u32) -> DevicePlaces {
        DevicePlaces {
            places: HashMap::new(),
            free: Vec::new(),
            end: 0,
            block_words,
            first: (FIRST / block_words).clamp(1, most),
            most,
        }
    }

    /// How many vectors there are.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Whether a vector lies in a device page.
    pub fn has(&self, id: u32) -> bool {
        self.places.contains_key(&id)
    }

    /// The ids of all vectors, in no order.
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.keys().copied()
    }

    /// How many pages hold the vectors, and so many more.
    pub fn pages_for(&self, more: u32) -> usize {
        let free = u32::try_from(self.free.len()).unwrap_or(u32::MAX);
        let end = self.end.saturating_add(more.saturating_sub(free));
        match end {
            0 => 0,
            end => self.locate(end - 1).0 + 1,
        }
    }

    /// Words of a page.
    pub fn page_words(&self, page: usize) -> u32 {
        self.capacity(page) * self.block_words
    }

    /// The blocks that a search of these vectors looks through.
    pub fn blocks(&self) -> DeviceBlocks {
        if self.places.is_empty() {
            return DeviceBlocks::default();
        }
        let used = self.end.div_ceil(BLOCK);
        let all = (0..self.pages_for(0)).map(|page| self.capacity(page)).sum();
        DeviceBlocks {
            count: rounded(used).min(all),
            first: self.first,
        }
    }

    /// Takes places for vectors with these ids, which are the rows of a tensor in order; the
    /// insertions that write them.
    pub(super) fn insert(&mut self, ids: impl Iterator<Item = u32>) -> Vec<PageRows> {
        let mut calls = Vec::new();
        for (row, id) in (0..).zip(ids) {
            let place = self.free.pop().unwrap_or_else(|| {
                self.end += 1;
                self.end - 1
            });
            self.places.insert(id, place);
            self.append(&mut calls, place, [row, id + 1]);
        }
        calls
    }

    /// The insertions that write no vector to the places of these vectors.
    pub fn removals(&self, ids: impl Iterator<Item = u32>) -> Vec<PageRows> {
        let mut calls = Vec::new();
        for id in ids {
            if let Some(place) = self.places.get(&id) {
                self.append(&mut calls, *place, [NOTHING, 0]);
            }
        }
        calls
    }

    /// Those of the rows for which `is_wanted` holds, by the vector that has the row's place now.
    pub fn filtered(
        &self,
        call: &PageRows,
        is_wanted: impl Fn(Option<u32>, &[u32]) -> bool,
    ) -> PageRows {
        let ids = self.ids_of_page(call.page);
        let rows = call.rows.chunks_exact(ROW as usize);
        let wanted = rows.filter(|row| is_wanted(ids.get(&row[1]).copied(), row));
        PageRows {
            page: call.page,
            rows: wanted.flatten().copied().collect(),
        }
    }

    /// The vectors of a page, by their places there.
    pub fn ids_of_page(&self, page: usize) -> BTreeMap<u32, u32> {
        let own = self.places.iter().filter_map(|(id, place)| {
            let (of, place) = self.locate(*place);
            (of == page).then_some((place, *id))
        });
        own.collect()
    }

    /// Gives up the place of a vector. Returns whether the vector had one.
    pub(super) fn remove(&mut self, id: u32) -> bool {
        let place = self.places.remove(&id);
        self.free.extend(place);
        place.is_some()
    }

    /// Adds a row to the last call that writes its page, or to a new one.
    fn append(&self, calls: &mut Vec<PageRows>, place: u32, [row, id]: [u32; 2]) {
        let (page, place) = self.locate(place);
        let last = calls.iter().rposition(|call| call.page == page);
        let last = last.filter(|last| calls[*last].rows.len() < MOST_ROWS * ROW as usize);
        let last = last.unwrap_or_else(|| {
            calls.push(PageRows {
                page,
                rows: Vec::new(),
            });
            calls.len() - 1
        });
        calls[last].rows.extend([row, place, id]);
    }

    /// The page of a place, and the place in that page.
    fn locate(&self, place: u32) -> (usize, u32) {
        let (mut page, mut rest) = (0, place);
        // Places behind the last that 32 bits count are in no page.
        while rest / BLOCK >= self.capacity(page) {
            rest -= self.capacity(page) * BLOCK;
            page += 1;
        }
        (page, rest)
    }

    /// Blocks of a page.
    fn capacity(&self, page: usize) -> u32 {
        let page = u32::try_from(page).unwrap_or(u32::MAX);
        DeviceBlocks::capacity(self.first, page, self.most)
    }
}
