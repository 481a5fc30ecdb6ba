//! Dispatches of what fusion made: finds each call's operands and runs the
//! stage on them.

use super::Memory;
use super::program::{Numbers, Operands, Runner};
use crate::plan::fuse::{Body, Stage};
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
    let mut runner = Runner::new(stage);
    let (constants_at, sizes_at) = (runner.layout().constants, runner.layout().sizes);
    let inputs = memory.words(Slot::INPUTS, slots);
    let loads: Vec<&[u32]> = (stage.loads.iter())
        .map(|load| match work.operands.get(load.binding as usize) {
            Some(Operand::Rows { slot, .. }) => memory.words(*slot, slots),
            // Read from the output.
            Some(Operand::Scalar) | None => &[],
        })
        .collect();
    let behind = work.entries.len() / work.segments.len();
    for (segment, entry) in work.segments.iter().zip(work.entries.chunks(behind)) {
        let constants = match stage.has_constants() {
            true => &inputs[entry[constants_at as usize] as usize..],
            false => &[],
        };
        let numbers = Numbers {
            threads: segment.rows,
            // From the start of the slot: strides may lead back.
            offsets: &entry[..loads.len()],
            result: 0,
            words: &entry[sizes_at as usize..],
        };
        let operands = Operands {
            loads: &loads,
            constants,
        };
        if segment.rows == 0 {
            continue; // Without elements: its place may lie behind the end.
        }
        let start = segment.result as usize;
        let end = match &stage.body {
            // Four elements a thread, padding included.
            Body::Map(map) if !map.is_strided => start + 4 * segment.rows as usize,
            Body::Map(_) | Body::Rows(_) | Body::Attention(_) => output.len(),
        };
        runner.run(numbers, &operands, &mut output[start..end]);
    }
    slots[home] = output;
}
