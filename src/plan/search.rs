//! The dispatches of searches: a scan of each index page for the queries of all calls, then a
//! merge for each query.
//!
//! A vector is compared with several queries at a time, of whichever calls. Each workgroup of
//! a scan keeps the nearest vectors of its band of blocks in a scratch slot, band after band.
//! No two vectors are equal in the order that decides, so that neither bands nor neighboring
//! queries change a result. What is compared and how is the kernels' business.

use super::call::SegmentList;
use super::{Dispatch, Operand, Segment, Slot};
use crate::graph::searching::Searching;
use crate::kernel::{Kernel, LANES, Named, Settings};

/// Words of the scratch slot, 16 MiB: queries whose bands need more are searched for in several
/// rounds.
const SCRATCH_WORDS: u32 = 1 << 22;

/// A query of a call.
#[derive(Clone, Copy)]
pub(super) struct Query {
    /// The word where the query begins.
    at: u32,
    /// The word where the mask of the query's call begins.
    mask: u32,
    /// The word where the query's results begin.
    result: u32,
}

/// The queries of all calls. An entry holds the addresses of a call's queries and of its mask.
pub(super) fn queries(searching: &Searching, calls: &SegmentList) -> Vec<Query> {
    let mut queries = Vec::new();
    for (call, entry) in calls.segments.iter().zip(calls.entries.chunks_exact(2)) {
        queries.extend((0..call.rows).map(|row| Query {
            at: entry[0] + row * searching.query(),
            mask: entry[1],
            result: call.result.saturating_add(row * 2 * searching.count),
        }));
    }
    queries
}

/// Searches of one index, in rounds that use the same scratch slot.
pub(super) struct SearchSteps<'a> {
    pub(super) searching: &'a Searching,
    pub(super) queries: &'a [Query],
    /// The tensors of the index pages.
    pub(super) set: &'a [u32],
}

impl SearchSteps<'_> {
    /// Words that the scratch slot needs.
    pub(super) fn scratch(&self) -> u32 {
        let queries = self.queries.len().min(self.round());
        self.each() * u32::try_from(queries).expect("a round has few queries")
    }

    /// The dispatches, in order.
    pub(super) fn dispatches(&self, scratch: Slot) -> Vec<Dispatch> {
        let mut dispatches = Vec::new();
        for round in self.queries.chunks(self.round()) {
            let mut band = 0;
            for (blocks, tensor) in self.searching.blocks_of_pages().zip(self.set) {
                let slots = [Slot::INPUTS, Slot::resident(*tensor)];
                let kernel = Named::TopKScan(self.searching.scan);
                let list = self.scan(round, blocks, band);
                dispatches.push(dispatch(kernel, &slots, scratch, round, list));
                band += self.searching.bands_of(blocks);
            }
            let (kernel, list) = (Named::TopKMerge, self.merge(round));
            dispatches.push(dispatch(kernel, &[scratch], Slot::RESULTS, round, list));
        }
        dispatches
    }

    /// Words of scratch for one query.
    fn each(&self) -> u32 {
        self.searching.bands() * self.searching.count * 2
    }

    /// Queries of a round: whole groups, and at least one group.
    fn round(&self) -> usize {
        let group = self.searching.scan.queries();
        ((SCRATCH_WORDS / self.each().max(1)).max(1)).next_multiple_of(group) as usize
    }

    /// The scan of a page of so many blocks for the queries of a round, a segment for each group of queries.
    /// `shaders/top_k_scan.wgsl` says what the entries hold.
    fn scan(&self, round: &[Query], blocks: u32, first_band: u32) -> SegmentList {
        let searching = self.searching;
        let threads = searching.bands_of(blocks) * LANES;
        let mut list = SegmentList::default();
        let mut start = 0;
        for group in round.chunks(searching.scan.queries() as usize) {
            let count = u32::try_from(group.len()).expect("a group is small");
            let line = count * searching.count * 2;
            list.segments.push(Segment {
                rows: threads,
                result: start + first_band * line,
            });
            start += searching.bands() * line;
            list.entries.extend([
                searching.quads,
                searching.count,
                searching.mask.code(),
                blocks,
                searching.band(),
                count,
            ]);
            for place in 0..searching.scan.queries() as usize {
                // A group of fewer queries repeats its first one, whose scores nobody reads.
                let Query { at, mask, .. } = group.get(place).unwrap_or(&group[0]);
                list.entries.extend([*at, *mask]);
            }
        }
        list
    }

    /// The merge of what bands kept, a segment for each query.
    fn merge(&self, round: &[Query]) -> SegmentList {
        let searching = self.searching;
        let mut list = SegmentList::default();
        let mut start = 0;
        for group in round.chunks(searching.scan.queries() as usize) {
            let count = u32::try_from(group.len()).expect("a group is small");
            let line = count * searching.count * 2;
            for (place, query) in (0..).zip(group) {
                list.segments.push(Segment {
                    rows: LANES,
                    result: query.result,
                });
                list.entries.extend([
                    start + place * searching.count * 2,
                    line,
                    searching.bands(),
                    searching.count,
                ]);
            }
            start += searching.bands() * line;
        }
        list
    }
}

/// A dispatch of a kernel that reads `slots`, for a round of queries.
fn dispatch(
    kernel: Named,
    slots: &[Slot],
    output: Slot,
    round: &[Query],
    list: SegmentList,
) -> Dispatch {
    let rows = |slot: &Slot| Operand::Rows {
        slot: *slot,
        words: 0,
    };
    Dispatch {
        kernel: Kernel::Named(kernel),
        settings: Settings::default(),
        operands: slots.iter().map(rows).collect(),
        output,
        row_words: 0,
        calls: u32::try_from(round.len()).expect("a round has few queries"),
        segments: list.segments,
        entries: list.entries,
    }
}
