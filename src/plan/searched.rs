//! Recipes of searches: queries of all calls against the vectors of an index.
//!
//! Queries are compared with a vector several at a time, whichever calls they are
//! of. A workgroup keeps the best of a chunk of vectors; what they keep lies in a
//! scratch slot, chunk after chunk, and is merged for each query. An order without
//! equals decides, so that neither chunks nor neighbors change a result.

use super::recipe::Extent;
use super::{Dispatch, Operand, Segment, Slot};
use crate::graph::searching::Searching;
use crate::kernel::{Kernel, LANES, MAX_OPERANDS, Settings};

/// Words of what chunks keep, of all the queries that are compared before the
/// scratch slot is used again: 16 MiB.
const ROUND: u32 = 1 << 22;

/// A call's queries, and its mask.
pub(super) fn operands(searching: &Searching) -> Vec<Extent> {
    vec![
        Extent::rows(searching.query()),
        Extent::fixed(searching.mask.words),
    ]
}

/// The kernels: what compares, and what merges.
pub(super) fn kernels(searching: &Searching) -> [Kernel; 2] {
    [Kernel::Scan(searching.scan), Kernel::Best]
}

/// The queries of a call, whose operands lie at `places`.
pub(super) fn segments(
    searching: &Searching,
    rows: u32,
    ([queries, mask], result): ([u32; 2], u32),
) -> impl Iterator<Item = Segment> {
    let searching = *searching;
    (0..rows).map(move |row| {
        let mut operands = [0; MAX_OPERANDS];
        operands[0] = queries + row * searching.query();
        operands[1] = mask;
        Segment {
            rows: 1,
            result: result.saturating_add(row * 2 * searching.count),
            operands,
        }
    })
}

/// The steps for queries of one index, in rounds that use the same scratch.
pub(super) struct Steps<'a> {
    pub(super) searching: &'a Searching,
    pub(super) queries: &'a [Segment],
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
            let mut chunk = 0;
            for (page, tensor) in (0..).zip(self.set) {
                let slots = [Slot::INPUTS, Slot::resident(*tensor)];
                let (segments, entries) = self.scan(round, page, chunk);
                chunk += self
                    .searching
                    .blocks_of(page)
                    .div_ceil(self.searching.chunk());
                let kernel = Kernel::Scan(self.searching.scan);
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
                Kernel::Best,
                &[scratch],
                Slot::RESULTS,
                round,
                merged,
            ));
        }
        dispatches
    }

    /// Words that chunks keep for a query.
    fn each(&self) -> u32 {
        self.searching.chunks() * self.searching.count * 2
    }

    fn round(&self) -> usize {
        // Whole groups, of which there is always one.
        let group = self.searching.scan.queries();
        ((ROUND / self.each().max(1)).max(1)).next_multiple_of(group) as usize
    }

    /// The queries of a round against one page, a segment for each group of them;
    /// `shaders/scan.wgsl` says what their entries are.
    fn scan(&self, round: &[Segment], page: u32, first: u32) -> (Vec<Segment>, Vec<u32>) {
        let searching = self.searching;
        let blocks = searching.blocks_of(page);
        let threads = blocks.div_ceil(searching.chunk()) * LANES;
        let (mut segments, mut entries) = (Vec::new(), Vec::new());
        let mut start = 0;
        for group in round.chunks(searching.scan.queries() as usize) {
            let count = u32::try_from(group.len()).expect("a group is small");
            let line = count * searching.count * 2;
            segments.push(Segment {
                rows: threads,
                result: start + first * line,
                operands: [0; MAX_OPERANDS],
            });
            start += searching.chunks() * line;
            entries.extend([
                searching.quads,
                searching.count,
                searching.mask.code(),
                blocks,
                searching.chunk(),
                count,
            ]);
            for place in 0..searching.scan.queries() as usize {
                // Places without a query have the first one's; nobody asks for their scores.
                let [query, mask, ..] = group.get(place).unwrap_or(&group[0]).operands;
                entries.extend([query, mask]);
            }
        }
        (segments, entries)
    }

    /// What chunks kept, merged: a segment for each query.
    fn merge(&self, round: &[Segment]) -> (Vec<Segment>, Vec<u32>) {
        let searching = self.searching;
        let (mut segments, mut entries) = (Vec::new(), Vec::new());
        let mut start = 0;
        for group in round.chunks(searching.scan.queries() as usize) {
            let count = u32::try_from(group.len()).expect("a group is small");
            let line = count * searching.count * 2;
            for (place, query) in (0..).zip(group) {
                segments.push(Segment {
                    rows: LANES,
                    ..*query
                });
                entries.extend([
                    start + place * searching.count * 2,
                    line,
                    searching.chunks(),
                    searching.count,
                ]);
            }
            start += searching.chunks() * line;
        }
        (segments, entries)
    }
}

fn dispatch(
    kernel: Kernel,
    slots: &[Slot],
    output: Slot,
    round: &[Segment],
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
