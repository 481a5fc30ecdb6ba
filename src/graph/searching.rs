//! Searches of an index: what a call of one reads and gives, without its values.
//!
//! An *index* is vectors in *pages*, tensors of equal size but for the last one;
//! `ops::search` says how they lie there. A call's rows are its queries, and how
//! many vectors an index has now is the pages' data, so calls of one index are
//! searched for together.

use crate::tensor::Packing;

/// Vectors of a block, which lie quad beside quad.
pub const BLOCK: u32 = 64;

/// Words in front of a block's quads: the scale of each vector, then its id.
pub const BLOCK_HEADER: u32 = 2 * BLOCK;

/// The id of a vector that is none, and of a result that is none.
pub const NOBODY: u32 = u32::MAX;

/// Most results of a query.
pub const MOST_RESULTS: u32 = 256;

/// Up to so many results, eight queries are compared with a vector at a time;
/// beyond, two.
pub const FEW_RESULTS: u32 = 32;

/// What decides about the kernel of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// How vectors are packed; floats where they are not.
    pub packing: Option<Packing>,
    /// Whether scores are negative squared distances, and not products.
    pub is_distance: bool,
    /// Whether there are no more than [`FEW_RESULTS`].
    pub is_short: bool,
}

/// The structure of a search.
///
/// A call's operands are its queries, padded to a vector's quads, and its mask, or
/// nothing where all ids are allowed. The pages follow. A row of
/// the result is `count` ids and as many scores, best first, of equals the lower
/// id; [`NOBODY`] behind the last that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Searching {
    /// How it is computed.
    pub scan: Scan,
    /// Quads of a vector.
    pub quads: u32,
    /// Results of a query.
    pub count: u32,
    /// Blocks of the index.
    pub blocks: u32,
    /// Blocks of each page but the last.
    pub page: u32,
    /// How the ids that are allowed are given.
    pub mask: Mask,
}

/// How a call gives the ids that are allowed; without words all are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mask {
    /// Words of a call; fewer than 2^31.
    pub words: u32,
    /// Whether these are the ids, rising, and [`NOBODY`] behind the last; otherwise they
    /// hold a bit for each id, the lowest first.
    pub is_listed: bool,
}

impl Mask {
    const LISTED: u32 = 1 << 31;

    /// Both in one word, as entries and TypeScript have it.
    pub const fn code(self) -> u32 {
        self.words | if self.is_listed { Mask::LISTED } else { 0 }
    }

    /// The mask of a code.
    pub const fn decode(code: u32) -> Mask {
        Mask {
            words: code & !Mask::LISTED,
            is_listed: code & Mask::LISTED != 0,
        }
    }
}

/// Elements of a vector in a quad of words.
pub const fn elements(packing: Option<Packing>) -> u32 {
    match packing {
        None => 4,
        Some(Packing::F16 | Packing::Bf16) => 8,
        Some(Packing::Int8) => 16,
    }
}

impl Scan {
    /// Queries that are compared with a vector at a time.
    pub const fn queries(&self) -> u32 {
        if self.is_short { 8 } else { 2 }
    }

    /// Places in a list of the best: those that are kept, and room for newcomers.
    pub const fn list(&self) -> u32 {
        if self.is_short { 128 } else { 512 }
    }
}

impl Searching {
    /// Words of a query.
    pub const fn query(&self) -> u32 {
        self.quads * elements(self.scan.packing)
    }

    /// Words of a block.
    pub const fn block_words(&self) -> u32 {
        BLOCK_HEADER + 4 * BLOCK * self.quads
    }

    /// Tensors that a call names behind its operands.
    pub const fn pages(&self) -> u32 {
        self.blocks.div_ceil(self.page)
    }

    /// Blocks of a band, which one workgroup scans: about a thousand workgroups a query
    /// at most, and fewer the more results each of them has. It changes no result.
    pub fn band(&self) -> u32 {
        let most = (65_536 / self.count).clamp(64, 1024);
        self.blocks.div_ceil(most).max(4)
    }

    /// Blocks of a page.
    pub fn blocks_of(&self, page: u32) -> u32 {
        self.page.min(self.blocks - page * self.page)
    }

    /// Bands of all pages: none lies on two.
    pub fn bands(&self) -> u32 {
        let pages = 0..self.pages();
        let bands = pages.map(|page| self.blocks_of(page).div_ceil(self.band()));
        bands.sum()
    }
}
