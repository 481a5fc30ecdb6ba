//! Dispatches of what fusion made: finds each call's operands and runs the
//! stage on them.

use super::Memory;
use super::program::{Operands, run};
use crate::plan::fuse::{Body, Layout, Stage, StageSizes};
use crate::plan::{Dispatch, Operand, Slot};

/// Runs a stage for every call.
pub(super) fn dispatch(
    (work, stage): (&Dispatch, &Stage),
    memory: &Memory<'_>,
    slots: &mut [Vec<u32>],
) {
    let home = work.output.0 as usize;
    // Taken out while it is written, so that other slots can be read.
    let mut output = std::mem::take(&mut slots[home]);
    output.resize(memory.plan.words(work.output) as usize, 0);
    let layout = Layout::of(stage);
    let behind = work.entries.len() / work.segments.len();
    for (segment, entry) in work.segments.iter().zip(work.entries.chunks(behind)) {
        let loads: Vec<&[u32]> = (stage.loads.iter())
            .map(|load| match work.operands.get(load.binding as usize) {
                Some(Operand::Rows { slot, .. }) => memory.words(*slot, slots),
                // Read from the output.
                Some(Operand::Scalar) | None => &[],
            })
            .collect();
        let constants = match stage.has_constants() {
            true => &memory.words(Slot::INPUTS, slots)[entry[layout.constants as usize] as usize..],
            false => &[],
        };
        let sizes = StageSizes {
            threads: segment.rows,
            // From the start of the slot: strides may lead back.
            offsets: entry[..loads.len()].to_vec(),
            result: 0,
            words: entry[layout.sizes as usize..].to_vec(),
        };
        let operands = Operands {
            loads: &loads,
            constants,
        };
        let start = segment.result as usize;
        let end = match &stage.body {
            // Four elements a thread, padding included.
            Body::Map(map) if !map.is_strided => start + 4 * segment.rows as usize,
            Body::Map(_) | Body::Rows(_) => output.len(),
        };
        run(stage, &sizes, &operands, &mut output[start..end]);
    }
    slots[home] = output;
}
