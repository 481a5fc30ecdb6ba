//! The structure of a search: what a call of a search reads and gives, without its values.
//!
//! An *index* is vectors in *pages*, tensors of equal size but for the last one; `ops::search`
//! says how the vectors lie there. A call's rows are its queries. How many vectors an index
//! holds is in the pages and not in the structure, so that calls of one index share
//! dispatches.

use crate::tensor::Packing;

/// Vectors of a block, in which the first quads of all vectors come first, then the second
/// quads, and so on.
pub const BLOCK: u32 = 64;

/// Words in front of a block's quads: the scales of all vectors, then the ids.
pub const BLOCK_HEADER: u32 = 2 * BLOCK;

/// The id in a place without a vector, and in a result behind the last that was found.
pub const NOBODY: u32 = u32::MAX;

/// The most results of a query.
pub const MOST_RESULTS: u32 = 256;

/// The most results of a query for which eight queries are compared with a vector at a time;
/// beyond, two queries are.
pub const FEW_RESULTS: u32 = 32;

/// What distinguishes the kernels that scan indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// How vectors are packed; `None` for floats.
    pub packing: Option<Packing>,
    /// Whether scores are negated squared distances, and not products.
    pub is_distance: bool,
    /// Whether a query has no more than [`FEW_RESULTS`].
    pub is_short: bool,
}

/// The structure of a search.
///
/// A call's operands are its queries, padded to whole quads, and its mask; the call names the
/// pages as resident tensors. A row of the result is `count` ids and as many scores, the best
/// first, of equal scores the lower id first, with [`NOBODY`] behind the last that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Searching {
    /// The kernel that scans pages.
    pub scan: Scan,
    /// Quads of a vector.
    pub quads: u32,
    /// Results of a query.
    pub count: u32,
    /// Blocks of the index.
    pub blocks: u32,
    /// Blocks of each page but the last.
    pub page: u32,
    /// The ids that the search may find.
    pub mask: Mask,
}

/// How a call says which ids a search may find; without words it may find all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mask {
    /// Words of the mask in a call; fewer than 2^31.
    pub words: u32,
    /// Whether the words are ids in rising order, with [`NOBODY`] behind the last, rather than
    /// a bit for each id, the lowest first.
    pub is_listed: bool,
}

impl Mask {
    const LISTED: u32 = 1 << 31;

    /// The mask in one word, as entries and TypeScript hold it.
    pub const fn code(self) -> u32 {
        self.words | if self.is_listed { Mask::LISTED } else { 0 }
    }

    /// The mask whose code this is.
    pub const fn decode(code: u32) -> Mask {
        Mask {
            words: code & !Mask::LISTED,
            is_listed: code & Mask::LISTED != 0,
        }
    }
}

/// Elements of a vector that a quad of words holds.
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

    /// Places in a workgroup's list: the best items so far, and room for newcomers.
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

    /// Index pages, which a call names as resident tensors.
    pub const fn pages(&self) -> u32 {
        self.blocks.div_ceil(self.page)
    }

    /// Blocks of a band, which one workgroup scans. A query takes about a thousand workgroups at
    /// most, and fewer the more results each workgroup keeps. The choice changes no result.
    pub fn band(&self) -> u32 {
        let most = (65_536 / self.count).clamp(64, 1024);
        self.blocks.div_ceil(most).max(4)
    }

    /// Blocks of a page.
    pub fn blocks_of(&self, page: u32) -> u32 {
        self.page.min(self.blocks - page * self.page)
    }

    /// Bands of a page; the last may have fewer blocks.
    pub fn bands_of(&self, page: u32) -> u32 {
        self.blocks_of(page).div_ceil(self.band())
    }

    /// Bands of all pages.
    pub fn bands(&self) -> u32 {
        (0..self.pages()).map(|page| self.bands_of(page)).sum()
    }
}
