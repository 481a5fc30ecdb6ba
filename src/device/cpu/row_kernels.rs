//! Dispatches of the kernels that are written by hand and compute rows.
//!
//! What a kernel computes of a row is in `kernels`.

use std::ops::Range;

use super::kernels::{Operands, Values, run};
use super::launch_memory::Memory;
use super::parallel::{Size, Task, Work, share};
use super::program::Output;
use crate::kernel::Named;
use crate::plan::{Dispatch, Operand, Segment};
use crate::tensor::Span;

/// Runs a kernel of rows for every call.
pub(super) fn dispatch(
    work: &Dispatch,
    kernel: &Named,
    memory: &Memory<'_>,
    slots: &mut [Vec<u32>],
) {
    let home = work.output.0 as usize;
    // The output is taken out while it is written, so that other slots can be read.
    let mut output = std::mem::take(&mut slots[home]);
    output.resize(memory.plan.words(work.output) as usize, 0);
    let behind = work.operands.len();
    let operands = |call: usize, rows: &Range<usize>| -> Operands<'_> {
        let entry = &work.entries[call * behind..][..behind];
        std::array::from_fn(|k| match work.operands.get(k) {
            Some(Operand::Rows { slot, words }) => {
                let span = Span {
                    at: entry[k],
                    words: work.segments[call].rows * words,
                };
                let all = memory.read(*slot, span, slots);
                let words = *words as usize;
                Values::Rows(&all[rows.start * words..rows.end * words])
            }
            Some(Operand::Scalar) => Values::Scalar(entry[k]),
            None => Values::Scalar(0),
        })
    };
    let row_words = work.row_words as usize;
    // Work of a word of the result, in passes over one value.
    let passes = match kernel {
        Named::Lerp | Named::Bezier | Named::StateGradients => 4,
        _ => 128,
    };
    let compute = |task: Task, output: Output<'_>| {
        for call in task.calls {
            let segment = &work.segments[call];
            let rows = task.lines.clone().unwrap_or(0..segment.rows as usize);
            // Where a call is cut, this part of the output begins behind the call's result.
            let at = |row: usize| segment.result as usize + row * row_words - output.start;
            run(
                kernel,
                &work.settings,
                &operands(call, &rows),
                &mut output.words[at(rows.start)..at(rows.end)],
            );
        }
    };
    let size = |call: usize| {
        let Segment { rows, result, .. } = work.segments[call];
        Some(Size {
            start: result as usize,
            lines: rows as usize,
            words: row_words,
            work: row_words * passes,
        })
    };
    let all = Work {
        calls: work.segments.len(),
        size: &size,
        run: &compute,
    };
    share(&all, &mut output);
    slots[home] = output;
}
