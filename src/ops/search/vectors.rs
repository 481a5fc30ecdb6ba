//! The vectors of an index, as they lie on its device.
//!
//! This is their source: what changed since a device was told is known, and all of
//! it can be told again.

use std::collections::{BTreeMap, HashMap};

use super::{IndexConfig, invalid, rounded};
use crate::error::Error;
use crate::graph::searching::{BLOCK, BLOCK_HEADER, Mask, NOBODY, Scan, Searching};
use crate::graph::searching::{FEW_RESULTS, elements};
use crate::ops::search::Metric;
use crate::tensor::Packing;

/// Words that a page has at most: half of what every WebGPU device binds at once.
pub const PAGE: u32 = 1 << 24;

/// Words that are told at once, unless a block has more.
const PART: usize = 1 << 18;

const VECTORS: usize = BLOCK as usize;
const HEADER: usize = BLOCK_HEADER as usize;

/// The vectors of an index.
#[derive(Debug)]
pub struct Vectors {
    pub(super) config: IndexConfig,
    /// Words of each page: all but the last are full.
    pages: Vec<Vec<u32>>,
    /// Where each vector lies, by its id.
    places: HashMap<u32, u32>,
    /// Places that were given back.
    free: Vec<u32>,
    /// Places that were ever taken.
    end: u32,
    /// The next id. None is given twice.
    pub(super) next: u32,
    /// Words of each page that the device has.
    told: Vec<usize>,
    /// Blocks that changed since; whether more than their ids did.
    changed: BTreeMap<u32, bool>,
}

/// What a device has to be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// A whole page: it is new, or has grown.
    Page(usize, &'a [u32]),
    /// Words of a page from this one on.
    Part(usize, u32, &'a [u32]),
}

impl Vectors {
    /// An index without any.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for vectors that are too wide, or have no floats.
    pub fn new(config: IndexConfig) -> Result<Vectors, Error> {
        config.check_self()?;
        Ok(Vectors {
            config,
            pages: Vec::new(),
            places: HashMap::new(),
            free: Vec::new(),
            end: 0,
            next: 0,
            told: Vec::new(),
            changed: BTreeMap::new(),
        })
    }

    /// What it holds.
    pub fn config(&self) -> &IndexConfig {
        &self.config
    }

    /// How many vectors there are.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Pages that they lie on.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// How many ids were given.
    pub fn ids(&self) -> u32 {
        self.next
    }

    /// Adds vectors laid end to end; the id of the first. The others have the
    /// numbers behind it.
    ///
    /// # Errors
    ///
    /// Those of [`IndexConfig::check`]; then none is added.
    pub fn add(&mut self, floats: &[f32]) -> Result<u32, Error> {
        let count = self.config.check(["index.add", "vector"], floats)?;
        let first = self.next;
        let count = u32::try_from(count).unwrap_or(NOBODY);
        self.next = match first.checked_add(count) {
            Some(next) if next < NOBODY => next,
            _ => return Err(invalid("index.add", "an index gives at most 2^32 - 2 ids")),
        };
        let vectors = floats.chunks_exact(self.config.dim as usize);
        for (id, vector) in (first..).zip(vectors) {
            let (scale, words) = self.pack(&self.config.scaled(vector));
            self.put(id, scale, &words);
        }
        Ok(first)
    }

    /// Removes vectors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for an id that no vector has; then none is removed.
    pub fn remove(&mut self, ids: &[u32]) -> Result<(), Error> {
        if let Some(id) = ids.iter().find(|id| !self.places.contains_key(id)) {
            return Err(invalid(
                "index.remove",
                &format!("no vector has the id {id}"),
            ));
        }
        for id in ids {
            // An id may be named twice.
            if let Some(place) = self.places.remove(id) {
                let (page, at) = self.locate(place);
                self.pages[page][at + VECTORS + place as usize % VECTORS] = NOBODY;
                self.changed.entry(place / BLOCK).or_insert(false);
                self.free.push(place);
            }
        }
        Ok(())
    }

    /// The structure of a search.
    pub fn searching(&self, count: u32, mask: Mask) -> Searching {
        let used = self.end.div_ceil(BLOCK).max(1);
        let page = self.page_blocks();
        let full = (used - 1) / page * page;
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
            mask,
        }
    }

    /// How a mask gives ids: by a bit for each that was given, unless these are more
    /// words than there are vectors. So a mask grows with vectors, however high ids are.
    pub fn form_of_masks(&self) -> Mask {
        let bits = rounded(self.next.div_ceil(32));
        let ids = rounded(u32::try_from(self.places.len()).unwrap_or(NOBODY));
        Mask {
            words: bits.min(ids),
            is_listed: ids < bits,
        }
    }

    /// A mask of these ids.
    pub fn mask(&self, ids: impl Iterator<Item = u32>) -> Vec<u32> {
        let form = self.form_of_masks();
        if form.is_listed {
            let mut mask: Vec<u32> = ids.filter(|id| self.places.contains_key(id)).collect();
            mask.sort_unstable();
            mask.dedup();
            mask.resize(form.words as usize, NOBODY);
            return mask;
        }
        let mut mask = vec![0; form.words as usize];
        for id in ids {
            if let Some(word) = mask.get_mut(id as usize / 32) {
                *word |= 1 << (id % 32);
            }
        }
        mask
    }

    /// A mask of the ids whose bits are set.
    pub fn mask_of_bits(&self, bits: &[u32]) -> Vec<u32> {
        let form = self.form_of_masks();
        if form.is_listed {
            let is_set = |id: &u32| {
                let word = bits.get(*id as usize / 32);
                word.is_some_and(|word| word >> (id % 32) & 1 != 0)
            };
            return self.mask(self.all().filter(is_set));
        }
        let mut mask = bits[..bits.len().min(form.words as usize)].to_vec();
        mask.resize(form.words as usize, 0);
        mask
    }

    /// The ids of all vectors, in no order.
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.keys().copied()
    }

    /// Whether there is nothing to tell.
    pub fn is_told(&self) -> bool {
        let told = |(page, told): (&Vec<u32>, &usize)| page.len() == *told;
        self.changed.is_empty()
            && self.told.len() == self.pages.len()
            && self.pages.iter().zip(&self.told).all(told)
    }

    /// What changed since the device was told everything, told to it.
    ///
    /// # Errors
    ///
    /// Those of `tell`. What it was not told it is told the next time.
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
            // Neighbors go together; those of another page do not.
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

    /// There is another device: it was told nothing.
    pub fn forget(&mut self) {
        self.told.clear();
    }

    /// A vector's scale and its words.
    pub(super) fn vector(&self, id: u32) -> (u32, Vec<u32>) {
        let place = self.places[&id];
        let (page, at) = self.locate(place);
        let lane = place as usize % VECTORS;
        let block = &self.pages[page][at..at + self.block_words()];
        let quads = block[HEADER..].chunks_exact(4).skip(lane).step_by(VECTORS);
        (block[lane], quads.flatten().copied().collect())
    }

    /// Puts a vector where there is room.
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
        block[VECTORS + lane] = id;
        let quads = block[HEADER..].chunks_exact_mut(4);
        for (to, from) in quads.skip(lane).step_by(VECTORS).zip(words.chunks_exact(4)) {
            to.copy_from_slice(from);
        }
        self.changed.insert(place / BLOCK, true);
        self.places.insert(id, place);
    }

    /// Makes room for a place: the last page doubles until it is full.
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
        for _ in words.len() / block_words..blocks {
            words.resize(words.len() + VECTORS, 0);
            words.resize(words.len() + VECTORS, NOBODY);
            words.resize(words.len() + block_words - HEADER, 0);
        }
    }

    /// The page of a place, and the word where its block begins.
    fn locate(&self, place: u32) -> (usize, usize) {
        let (block, page) = (place / BLOCK, self.page_blocks());
        let at = (block % page) as usize * self.block_words();
        ((block / page) as usize, at)
    }

    fn block_words(&self) -> usize {
        HEADER + 4 * VECTORS * self.config.quads() as usize
    }

    #[expect(clippy::cast_possible_truncation, reason = "less than a page")]
    fn page_blocks(&self) -> u32 {
        PAGE / self.block_words() as u32
    }

    /// A vector's scale and its words.
    fn pack(&self, floats: &[f32]) -> (u32, Vec<u32>) {
        let mut padded: Vec<u32> = floats.iter().map(|x| x.to_bits()).collect();
        let elements = self.config.quads() * elements(self.config.packing);
        padded.resize(elements as usize, 0);
        match self.config.packing {
            None => (0, padded),
            Some(Packing::Int8) => {
                let largest = floats.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
                let scale = scale_of(largest);
                let words = padded.chunks_exact(4).map(|four| {
                    let bytes = [0, 1, 2, 3].map(|k| whole(f32::from_bits(four[k]), scale));
                    u32::from_le_bytes(bytes)
                });
                (scale.to_bits(), words.collect())
            }
            // Halves are never refused.
            Some(halves) => (0, halves.pack(&padded).unwrap_or_default()),
        }
    }
}

/// The scale of a vector of whole numbers whose largest magnitude is this.
#[expect(clippy::cast_possible_truncation, reason = "rounded to a float")]
pub(super) fn scale_of(largest: f32) -> f32 {
    (f64::from(largest) / 127.0) as f32
}

#[expect(clippy::cast_possible_truncation, reason = "at most 127 either way")]
fn whole(x: f32, scale: f32) -> u8 {
    if scale == 0.0 {
        return 0;
    }
    let q = (f64::from(x) / f64::from(scale)).round_ties_even();
    (q.clamp(-127.0, 127.0) as i8).cast_unsigned()
}
