//! The stages that fusion makes, on the CPU. They read the same entries as the kernels of
//! `kernel::generated`, and the order of their sums depends on sizes alone.
//!
//! A stage works through blocks of `BLOCK` elements, so that what lies between two operations
//! stays in the nearest cache. Where operands lie is the caller's business, and so is who
//! computes which lines of a result.

#![expect(
    clippy::cast_possible_truncation,
    reason = "no shape has more than 2^30 elements"
)]

mod attention;
mod fold;
mod gemm;
mod map;
mod row_ranges;
mod rows;
mod stage_call;
mod stage_run;
mod strided;
mod tile;

pub(super) use self::row_ranges::of as lines_of;
pub use self::row_ranges::{Lines, Output};
pub use self::stage_call::{Numbers, Operands, StageCall};

use std::ops::Range;

use self::stage_run::{RowLines, Run};
use super::expr::Columns;
use crate::error::Error;
use crate::program::{Body, Layout, Stage};

/// Runs one stage for any number of calls, which share the runner's memory.
#[derive(Debug)]
pub struct Runner<'a> {
    stage: &'a Stage,
    layout: Layout,
    columns: Columns,
}

impl<'a> Runner<'a> {
    /// A runner of this stage.
    pub fn new(stage: &'a Stage) -> Runner<'a> {
        let steps = match &stage.body {
            Body::Rows(rows) => rows.steps.len(),
            _ => 0,
        };
        Runner {
            stage,
            layout: Layout::of(stage),
            columns: Columns::new(stage.loads.len() + stage.scalars.len() + steps),
        }
    }

    /// Why a function of a caller's did not compute, if one did not.
    pub(in crate::device::cpu) fn failure(self) -> Option<Error> {
        self.columns.failure
    }

    /// The lines of a call's result.
    pub fn lines(&self, sizes: Numbers<'_>) -> Lines {
        row_ranges::of(self.stage, &self.layout, sizes)
    }

    /// Runs the stage for one call; `output` is the whole buffer that it writes to.
    pub fn run(&mut self, sizes: Numbers<'_>, operands: &Operands<'_>, output: &mut [u32]) {
        let lines = 0..self.lines(sizes).count;
        let output = Output {
            words: output,
            start: 0,
        };
        let call = StageCall {
            numbers: sizes,
            operands,
        };
        self.run_lines(call, lines, output);
    }

    /// Computes some lines of a call's result; `output` holds these lines.
    pub fn run_lines(&mut self, call: StageCall<'_>, lines: Range<usize>, output: Output<'_>) {
        let StageCall { numbers, operands } = call;
        let run = Run {
            stage: self.stage,
            layout: &self.layout,
            sizes: numbers,
            operands,
        };
        let lines = RowLines {
            lines,
            columns: &mut self.columns,
            output,
        };
        match &self.stage.body {
            Body::Map(map) => map::run(&run, map, lines),
            Body::Rows(rows) => rows::run(&run, rows, lines),
            Body::Attention(of) => attention::run(&run, of, lines),
            Body::Named(..) | Body::Search(_) => unreachable!("it has a twin of its own"),
        }
    }
}
