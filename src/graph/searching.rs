//! The structure of a search: what a call of a search reads and gives, without its values.
//!
//! An *index* is vectors in *pages*, which are tensors; `ops::search` says how the vectors lie
//! there. The host fills the *host pages*, and insertions write the *device pages*. A call's rows
//! are its queries. How many vectors an index holds is in the pages and not in the structure, so
//! that calls of one index share dispatches.

use crate::tensor::Packing;

/// Vectors of a block, in which the first quads of all vectors come first, then the second
/// quads, and so on.
pub const BLOCK: u32 = 64;

/// Words in front of a block's quads: the scales of all vectors, then for each vector its id + 1,
/// and 0 in a place without a vector.
pub const BLOCK_HEADER: u32 = 2 * BLOCK;

/// The id in a result behind the last that was found; no vector has it.
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
    /// Blocks of the host pages.
    pub blocks: u32,
    /// The most blocks of a page. Each host page but the last has so many.
    pub page: u32,
    /// Blocks of the device pages, as far as they are searched.
    pub device: DeviceBlocks,
    /// The ids that the search may find.
    pub mask: Mask,
}

/// Blocks of an index's device pages. A device page never grows: each one has twice the blocks of
/// the page before, up to the most of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeviceBlocks {
    /// Blocks in all pages together.
    pub count: u32,
    /// Blocks of the first page; 0 where there is no page.
    pub first: u32,
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

/// Elements of a vector that a quad of words holds. Invariant: no index has vectors of int4
/// ([`Packing::OF_VECTORS`]), which is written beside int8 wherever there must be an answer.
pub const fn elements(packing: Option<Packing>) -> u32 {
    match packing {
        None => 4,
        Some(Packing::F16 | Packing::Bf16) => 8,
        Some(Packing::Int8 | Packing::Int4) => 16,
    }
}

/// Words of a block whose vectors have so many quads.
pub const fn block_words(quads: u32) -> u32 {
    BLOCK_HEADER + 4 * BLOCK * quads
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

impl DeviceBlocks {
    /// Blocks that a page has room for, of which no page has more than `most`.
    pub const fn capacity(first: u32, page: u32, most: u32) -> u32 {
        match most.checked_shr(page) {
            Some(least) if first <= least => first << page,
            _ => most,
        }
    }
}

impl Searching {
    /// Words of a query.
    pub const fn query(&self) -> u32 {
        self.quads * elements(self.scan.packing)
    }

    /// Index pages, which a call names as resident tensors: host pages, then device pages.
    pub fn pages(&self) -> u32 {
        let pages = self.blocks_of_pages().count();
        u32::try_from(pages).expect("pages have blocks")
    }

    /// Blocks of all pages.
    pub const fn all_blocks(&self) -> u32 {
        self.blocks + self.device.count
    }

    /// Floating-point operations of a query: a product and a sum for each number of each vector,
    /// and for distances a difference in front of these. Places without a vector count, too.
    pub fn flops(&self) -> f64 {
        let each = if self.scan.is_distance { 3.0 } else { 2.0 };
        each * f64::from(self.all_blocks()) * f64::from(BLOCK) * f64::from(self.query())
    }

    /// Blocks of a band, which one workgroup scans. A query takes about a thousand workgroups at
    /// most, and fewer the more results each workgroup keeps. The choice changes no result.
    pub fn band(&self) -> u32 {
        let most = (65_536 / self.count).clamp(64, 1024);
        self.all_blocks().div_ceil(most).max(4)
    }

    /// Blocks of each page, host pages first.
    pub fn blocks_of_pages(&self) -> impl Iterator<Item = u32> {
        let Searching {
            blocks,
            page,
            device,
            ..
        } = *self;
        let host = (0..blocks.div_ceil(page)).map(move |at| page.min(blocks - at * page));
        let mut rest = device.count;
        let own = (0..).map_while(move |at| {
            let blocks = DeviceBlocks::capacity(device.first.max(1), at, page).min(rest);
            rest -= blocks;
            (blocks > 0).then_some(blocks)
        });
        host.chain(own)
    }

    /// Bands of a page of so many blocks; the last may have fewer blocks.
    pub fn bands_of(&self, blocks: u32) -> u32 {
        blocks.div_ceil(self.band())
    }

    /// Bands of all pages.
    pub fn bands(&self) -> u32 {
        let pages = self.blocks_of_pages();
        pages.map(|blocks| self.bands_of(blocks)).sum()
    }
}
