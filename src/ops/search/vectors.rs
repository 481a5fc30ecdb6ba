//! The vectors of an index, as they lie on the device that searches it.
//!
//! The host pages hold every vector that was added as floats, also where a device has copies of
//! these pages. The index knows what changed since its device was told, and can tell another
//! device everything. Of vectors in device pages only the places are known.

use std::collections::{BTreeMap, HashMap};

use super::{DevicePlaces, IndexConfig, PageRows, invalid, rounded};
use crate::error::Error;
use crate::graph::searching::{
    BLOCK, BLOCK_HEADER, FEW_RESULTS, Mask, NOBODY, Scan, Searching, block_words, elements,
};
use crate::ops::search::Metric;
use crate::tensor::pack_vector;

/// The most words of a page: half of what every WebGPU device binds at once.
pub const PAGE: u32 = 1 << 24;

/// Words that are told at once, unless one block has more.
const PART: usize = 1 << 18;

const VECTORS: usize = BLOCK as usize;
const HEADER: usize = BLOCK_HEADER as usize;

/// The vectors of an index.
#[derive(Debug)]
pub struct Vectors {
    pub(super) config: IndexConfig,
    /// The words of each page; all pages but the last are full.
    pages: Vec<Vec<u32>>,
    /// Where each vector lies, by its id.
    places: HashMap<u32, u32>,
    /// Places of vectors that were removed.
    free: Vec<u32>,
    /// How many places were ever taken.
    end: u32,
    /// The next id. No id is given twice.
    pub(super) next: u32,
    /// How many words of each page the device was told.
    told: Vec<usize>,
    /// Blocks that changed since, and whether more than the ids of a block did.
    changed: BTreeMap<u32, bool>,
    /// The vectors that insertions write.
    device: DevicePlaces,
}

/// A change that a device has to be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// A whole page, which is new or has grown: its number and its words.
    Page(usize, &'a [u32]),
    /// A part of a page: the page's number, the first word, and the words.
    Part(usize, u32, &'a [u32]),
}

impl Vectors {
    /// An index without vectors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for vectors that are too wide, or have no floats.
    pub fn new(config: IndexConfig) -> Result<Vectors, Error> {
        config.check_self()?;
        let block_words = block_words(config.quads());
        Ok(Vectors {
            config,
            device: DevicePlaces::new(block_words, PAGE / block_words),
            pages: Vec::new(),
            places: HashMap::new(),
            free: Vec::new(),
            end: 0,
            next: 0,
            told: Vec::new(),
            changed: BTreeMap::new(),
        })
    }

    /// What the index holds, and how vectors are compared.
    pub fn config(&self) -> &IndexConfig {
        &self.config
    }

    /// Whether a vector has this id.
    pub fn has(&self, id: u32) -> bool {
        self.places.contains_key(&id) || self.device.has(id)
    }

    /// How many vectors there are.
    pub fn count(&self) -> usize {
        self.places.len() + self.device.count()
    }

    /// The vectors in device pages.
    pub fn device(&self) -> &DevicePlaces {
        &self.device
    }

    /// How many pages there are.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// How many ids were ever given.
    pub fn ids(&self) -> u32 {
        self.next
    }

    /// Adds vectors laid end to end, and returns the id of the first. The ids of all others follow.
    ///
    /// # Errors
    ///
    /// The errors of [`IndexConfig::check`]. No vector is added where there is an error.
    pub fn add(&mut self, floats: &[f32]) -> Result<u32, Error> {
        let count = self.config.check(["index.add", "vector"], floats)?;
        let first = self.take_ids(u32::try_from(count).unwrap_or(NOBODY))?;
        let vectors = floats.chunks_exact(self.config.dim as usize);
        for (id, vector) in (first..).zip(vectors) {
            let IndexConfig { packing, .. } = self.config;
            let padded = self.config.quads() * elements(packing);
            let (scale, words) = pack_vector(packing, &self.config.scaled(vector), padded);
            self.put(id, scale, &words);
        }
        Ok(first)
    }

    /// Takes ids and places for vectors that are the rows of a tensor: the id of the first, and the
    /// insertions that write them to device pages.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where there are no more ids.
    pub fn insert(&mut self, count: u32) -> Result<(u32, Vec<PageRows>), Error> {
        let first = self.take_ids(count)?;
        Ok((first, self.device.insert(first..first + count)))
    }

    /// Gives back the ids of vectors that were not inserted after all, from this one on.
    pub fn take_back(&mut self, first: u32) {
        for id in first..self.next {
            self.device.remove(id);
        }
        self.next = first;
    }

    /// Moves a vector from a device page to a host page; `words` are its scale and its quads as they were read
    /// back, and `None` stands for a vector that no search finds, which is removed. A vector that
    /// was removed meanwhile is left alone.
    pub fn bring_back(&mut self, id: u32, words: Option<(u32, Vec<u32>)>) {
        if self.device.remove(id)
            && let Some((scale, words)) = words
        {
            self.put(id, scale, &words);
        }
    }

    /// Forgets the device pages, where no vector is left.
    pub fn leave_device(&mut self) {
        let block_words = block_words(self.config.quads());
        self.device = DevicePlaces::new(block_words, self.page_blocks());
    }

    /// The pages that changed since the device was told. All words of these pages are told the
    /// next time.
    pub fn renew_changed(&mut self) -> Vec<usize> {
        let mut renewed = Vec::new();
        for (page, words) in self.pages.iter().enumerate() {
            let first = u32::try_from(page).unwrap_or(NOBODY) * self.page_blocks();
            let behind = first + self.page_blocks();
            let is_changed = self.changed.range(first..behind).next().is_some();
            if let Some(told) = self.told.get_mut(page)
                && (is_changed || *told != words.len())
            {
                *told = 0;
                renewed.push(page);
            }
        }
        renewed
    }

    /// Refuses an id that no vector has.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`].
    pub fn check_ids(&self, ids: &[u32]) -> Result<(), Error> {
        match ids.iter().find(|id| !self.has(**id)) {
            None => Ok(()),
            Some(id) => Err(invalid(
                "index.remove",
                &format!("no vector has the id {id}"),
            )),
        }
    }

    /// Removes vectors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for an id that no vector has; no vector is removed then.
    pub fn remove(&mut self, ids: &[u32]) -> Result<(), Error> {
        self.check_ids(ids)?;
        for id in ids {
            self.device.remove(*id);
            // A caller may name an id twice.
            if let Some(place) = self.places.remove(id) {
                let (page, at) = self.locate(place);
                self.pages[page][at + VECTORS + place as usize % VECTORS] = 0;
                self.changed.entry(place / BLOCK).or_insert(false);
                self.free.push(place);
            }
        }
        Ok(())
    }

    /// The structure of a search.
    pub fn searching(&self, count: u32, mask: Mask) -> Searching {
        let used = self.end.div_ceil(BLOCK);
        let page = self.page_blocks();
        let full = used.saturating_sub(1) / page * page;
        let last = self.pages.last().map_or(0, Vec::len) / self.block_words();
        let last = u32::try_from(last).unwrap_or(page);
        Searching {
            scan: Scan {
                packing: self.config.packing,
                is_distance: self.config.metric == Metric::L2,
                is_short: count <= FEW_RESULTS,
            },
            quads: self.config.quads(),
            count,
            blocks: full + rounded(used - full).min(last),
            page,
            device: self.device.blocks(),
            mask,
        }
    }

    /// The ids of all vectors, in no order.
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.keys().copied().chain(self.device.all())
    }

    /// Whether the device has been told every change.
    pub fn is_told(&self) -> bool {
        let told = |(page, told): (&Vec<u32>, &usize)| page.len() == *told;
        self.changed.is_empty()
            && self.told.len() == self.pages.len()
            && self.pages.iter().zip(&self.told).all(told)
    }

    /// Tells the device every change since it was told last.
    ///
    /// # Errors
    ///
    /// The errors of `tell`. Changes that the device was not told are told the next time.
    pub fn tell(
        &mut self,
        mut tell: impl FnMut(Change<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (page_blocks, block_words) = (self.page_blocks(), self.block_words());
        self.told.resize(self.pages.len(), 0);
        for (number, page) in self.pages.iter().enumerate() {
            if self.told[number] != page.len() {
                tell(Change::Page(number, page))?;
                self.told[number] = page.len();
                let first = u32::try_from(number).unwrap_or(NOBODY) * page_blocks;
                self.changed
                    .retain(|block, _| !(first..first + page_blocks).contains(block));
            }
        }
        let most = (PART / block_words).max(1);
        while let Some((block, is_whole)) = self.changed.first_key_value() {
            let (block, is_whole) = (*block, *is_whole);
            let mut end = block + 1;
            // Neighboring blocks of one page are told together.
            while is_whole
                && ((end - block) as usize) < most
                && !end.is_multiple_of(page_blocks)
                && self.changed.get(&end) == Some(&true)
            {
                end += 1;
            }
            let (page, at) = self.locate(block * BLOCK);
            let words = match is_whole {
                true => (end - block) as usize * block_words,
                false => HEADER,
            };
            let from = u32::try_from(at).unwrap_or(NOBODY);
            tell(Change::Part(page, from, &self.pages[page][at..at + words]))?;
            for told in block..end {
                self.changed.remove(&told);
            }
        }
        Ok(())
    }

    /// Forgets what the device was told, because another device takes its place.
    pub fn forget(&mut self) {
        self.told.clear();
    }

    /// The scale of a vector, and its words.
    pub(super) fn vector(&self, id: u32) -> (u32, Vec<u32>) {
        let place = self.places[&id];
        let (page, at) = self.locate(place);
        read_vector(
            &self.pages[page][at..at + self.block_words()],
            place % BLOCK,
        )
    }

    /// Puts a vector in a free place, or in a new one.
    pub(super) fn put(&mut self, id: u32, scale: u32, words: &[u32]) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        });
        self.grow(place);
        let (page, at) = self.locate(place);
        let lane = place as usize % VECTORS;
        let block_words = self.block_words();
        let block = &mut self.pages[page][at..at + block_words];
        block[lane] = scale;
        block[VECTORS + lane] = id + 1;
        let quads = block[HEADER..].chunks_exact_mut(4);
        for (to, from) in quads.skip(lane).step_by(VECTORS).zip(words.chunks_exact(4)) {
            to.copy_from_slice(from);
        }
        self.changed.insert(place / BLOCK, true);
        self.places.insert(id, place);
    }

    /// Makes the pages hold a place. The last page doubles until it has its full size.
    fn grow(&mut self, place: u32) {
        let (page, at) = self.locate(place);
        let (block_words, most) = (self.block_words(), self.page_blocks() as usize);
        if page == self.pages.len() {
            self.pages.push(Vec::new());
        }
        let words = &mut self.pages[page];
        let blocks = words.len() / block_words;
        if at < words.len() {
            return;
        }
        let blocks = (2 * blocks).max(at / block_words + 1).min(most);
        words.resize(blocks * block_words, 0);
    }

    /// The page of a place, and the word where its block begins.
    fn locate(&self, place: u32) -> (usize, usize) {
        let (block, page) = (place / BLOCK, self.page_blocks());
        let at = (block % page) as usize * self.block_words();
        ((block / page) as usize, at)
    }

    /// Takes so many ids; the first.
    fn take_ids(&mut self, count: u32) -> Result<u32, Error> {
        let first = self.next;
        self.next = match first.checked_add(count) {
            Some(next) if next < NOBODY => next,
            _ => return Err(invalid("index.add", "an index gives at most 2^32 - 2 ids")),
        };
        Ok(first)
    }

    fn block_words(&self) -> usize {
        block_words(self.config.quads()) as usize
    }

    #[expect(clippy::cast_possible_truncation, reason = "less than a page")]
    fn page_blocks(&self) -> u32 {
        PAGE / self.block_words() as u32
    }
}

/// The scale and the quads of a vector, by the words of its block and its number there.
pub fn read_vector(block: &[u32], number: u32) -> (u32, Vec<u32>) {
    let number = number as usize;
    let quads = block[HEADER..]
        .chunks_exact(4)
        .skip(number)
        .step_by(VECTORS);
    (block[number], quads.flatten().copied().collect())
}
