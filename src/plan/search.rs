//! The dispatches of searches: queries of all calls against the vectors of an index.
//!
//! Queries are compared with a vector several at a time, whichever calls they are
//! of. A workgroup keeps the best of a band of vectors; what they keep lies in a
//! scratch slot, band after band, and is merged for each query. An order without
//! equals decides, so that neither bands nor neighbors change a result.

use super::call::Shares;
use super::{Dispatch, Operand, Segment, Slot};
use crate::graph::searching::Searching;
use crate::kernel::{Kernel, LANES, Named, Settings};

/// Words of what bands keep, of all the queries that are compared before the
/// scratch slot is used again: 16 MiB.
const ROUND: u32 = 1 << 22;

/// A query of a call.
#[derive(Clone, Copy)]
pub(super) struct Query {
    /// Where it lies.
    at: u32,
    /// Where the mask of its call lies.
    mask: u32,
    /// Where its results go.
    result: u32,
}

/// The queries of calls with these entries: where each call's queries and its mask lie.
pub(super) fn queries(searching: &Searching, calls: &Shares) -> Vec<Query> {
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

/// The steps for queries of one index, in rounds that use the same scratch.
pub(super) struct Steps<'a> {
    pub(super) searching: &'a Searching,
    pub(super) queries: &'a [Query],
    /// The tensors of the pages.
    pub(super) set: &'a [u32],
}

impl Steps<'_> {
    /// Words of scratch.
    pub(super) fn scratch(&self) -> u32 {
        let queries = self.queries.len().min(self.round());
        self.each() * u32::try_from(queries).expect("a round has few queries")
    }

    /// What is dispatched, in order.
    pub(super) fn dispatches(&self, scratch: Slot) -> Vec<Dispatch> {
        let mut dispatches = Vec::new();
        for round in self.queries.chunks(self.round()) {
            let mut band = 0;
            for (page, tensor) in (0..).zip(self.set) {
                let slots = [Slot::INPUTS, Slot::resident(*tensor)];
                let (segments, entries) = self.scan(round, page, band);
                band += self
                    .searching
                    .blocks_of(page)
                    .div_ceil(self.searching.band());
                let kernel = Kernel::Named(Named::TopKScan(self.searching.scan));
                dispatches.push(dispatch(
                    kernel,
                    &slots,
                    scratch,
                    round,
                    (segments, entries),
                ));
            }
            let merged = self.merge(round);
            dispatches.push(dispatch(
                Kernel::Named(Named::TopKMerge),
                &[scratch],
                Slot::RESULTS,
                round,
                merged,
            ));
        }
        dispatches
    }

    /// Words that bands keep for a query.
    fn each(&self) -> u32 {
        self.searching.bands() * self.searching.count * 2
    }

    fn round(&self) -> usize {
        // Whole groups, of which there is always one.
        let group = self.searching.scan.queries();
        ((ROUND / self.each().max(1)).max(1)).next_multiple_of(group) as usize
    }

    /// The queries of a round against one page, a segment for each group of them;
    /// `shaders/top_k_scan.wgsl` says what their entries are.
    fn scan(&self, round: &[Query], page: u32, first: u32) -> (Vec<Segment>, Vec<u32>) {
        let searching = self.searching;
        let blocks = searching.blocks_of(page);
        let threads = blocks.div_ceil(searching.band()) * LANES;
        let (mut segments, mut entries) = (Vec::new(), Vec::new());
        let mut start = 0;
        for group in round.chunks(searching.scan.queries() as usize) {
            let count = u32::try_from(group.len()).expect("a group is small");
            let line = count * searching.count * 2;
            segments.push(Segment {
                rows: threads,
                result: start + first * line,
            });
            start += searching.bands() * line;
            entries.extend([
                searching.quads,
                searching.count,
                searching.mask.code(),
                blocks,
                searching.band(),
                count,
            ]);
            for place in 0..searching.scan.queries() as usize {
                // Places without a query have the first one's; nobody asks for their scores.
                let Query { at, mask, .. } = group.get(place).unwrap_or(&group[0]);
                entries.extend([*at, *mask]);
            }
        }
        (segments, entries)
    }

    /// What bands kept, merged: a segment for each query.
    fn merge(&self, round: &[Query]) -> (Vec<Segment>, Vec<u32>) {
        let searching = self.searching;
        let (mut segments, mut entries) = (Vec::new(), Vec::new());
        let mut start = 0;
        for group in round.chunks(searching.scan.queries() as usize) {
            let count = u32::try_from(group.len()).expect("a group is small");
            let line = count * searching.count * 2;
            for (place, query) in (0..).zip(group) {
                segments.push(Segment {
                    rows: LANES,
                    result: query.result,
                });
                entries.extend([
                    start + place * searching.count * 2,
                    line,
                    searching.bands(),
                    searching.count,
                ]);
            }
            start += searching.bands() * line;
        }
        (segments, entries)
    }
}

fn dispatch(
    kernel: Kernel,
    slots: &[Slot],
    output: Slot,
    round: &[Query],
    (segments, entries): (Vec<Segment>, Vec<u32>),
) -> Dispatch {
    let rows = |slot: &Slot| Operand::Rows {
        slot: *slot,
        words: 0,
    };
    Dispatch {
        kernel,
        settings: Settings::default(),
        operands: slots.iter().map(rows).collect(),
        output,
        row_words: 0,
        calls: u32::try_from(round.len()).expect("a round has few queries"),
        segments,
        entries,
    }
}
