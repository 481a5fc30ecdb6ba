//! How one structure is computed: a program, and the sizes of one shape of operands.
//!
//! A recipe has no addresses, which differ from call to call and are filled in by `assemble`.
//! How each structure becomes a recipe is said in `lowering`.

use std::sync::Arc;

use super::form::Stored;
use super::schedule::Schedule;
use super::slicing::{GRAIN, Slicing};
use super::{CopyRun, MOST_THREADS, RowSlice};
use crate::kernel::Kernel;
use crate::program::{Body, Effort, Sizes, Source, Stage};
use crate::tensor::{Format, aligned};

/// Words behind the results of a call that is watched.
pub const WATCH: u32 = 4;

/// How a structure is computed. The default computes nothing.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// The scheduled program, which recipes of equal programs share.
    pub(super) schedule: Arc<Schedule>,
    pub(super) sizes: Sizes,
    /// The operands of a call as they lie in the arena: one after the other, each from a
    /// multiple of 16 bytes on.
    pub(super) operands: Vec<Extent>,
    /// The results of a call as they lie in its answer: one after the other, each from a
    /// multiple of four words on.
    pub(super) results: Vec<Extent>,
    /// For each resident tensor that a call names the words that one row of the call reads of
    /// that tensor; 0 where every row reads the whole tensor.
    pub(super) tensors: Vec<u32>,
    /// For each input of the program its number among the operands, or among the tensors.
    pub(super) ordinals: Vec<usize>,
    /// How many numbers come with a call; together the numbers are the last operand.
    pub(super) numbers: u32,
    /// Formats of the operands whose values are encoded when a call is accepted.
    pub(super) formats: Vec<Format>,
    pub(super) scalar: Option<Format>,
    /// Rows of every call, where the structure fixes the count.
    pub(super) rows: Option<u32>,
    pub(super) slicing: Slicing,
    /// What a call writes of a tensor, for calls that store a chain's results.
    pub(super) store: Option<Stored>,
    /// What one row computes.
    pub(super) effort: Effort,
    /// Whether the last result is no result of the call's, but says whether loops of a caller's
    /// function were stopped.
    pub(super) is_watched: bool,
}

/// A count of words that depends on a call's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) per_row: u32,
    pub(super) fixed: u32,
}

impl Extent {
    pub(super) const fn rows(words: u32) -> Extent {
        Extent {
            per_row: words,
            fixed: 0,
        }
    }

    pub(super) const fn fixed(words: u32) -> Extent {
        Extent {
            per_row: 0,
            fixed: words,
        }
    }

    /// Words of so many rows, which fit 32 bits.
    pub(super) const fn words(self, rows: u32) -> u32 {
        self.per_row * rows + self.fixed
    }

    /// Words of so many rows, also of more rows than fit any device.
    fn wide_words(self, rows: u32) -> u64 {
        u64::from(self.per_row) * u64::from(rows) + u64::from(self.fixed)
    }
}

impl Recipe {
    /// Rows of every call, where the structure fixes the count.
    pub fn rows(&self) -> Option<u32> {
        self.rows
    }

    /// What one row computes.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Whether calls write a resident tensor, and give no result.
    pub fn is_stored(&self) -> bool {
        !self.schedule.written.is_empty()
    }

    /// Whether calls apply functions of callers.
    pub fn has_caller_fns(&self) -> bool {
        self.schedule.has_caller_fns
    }

    /// The names of the functions of callers that have loops.
    pub fn looping(&self) -> String {
        let mut names = String::new();
        for stage in &self.schedule.program.stages {
            for function in stage.caller_fns() {
                if function.content.max_passes.is_some() {
                    names += if names.is_empty() { "" } else { ", " };
                    names += &function.content.name;
                }
            }
        }
        names
    }

    /// The numbers of the functions of callers that calls apply.
    pub fn caller_fns(&self) -> Vec<u32> {
        if !self.has_caller_fns() {
            return Vec::new();
        }
        let stages = self.schedule.program.stages.iter();
        let functions = stages.flat_map(|stage| stage.caller_fns());
        functions.map(|function| function.number()).collect()
    }

    /// Whether the last [`WATCH`] words of a call's result are none of the call's: the first of them
    /// is not 0 where loops of a caller's function were stopped.
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// The tensors that a call writes; `set` are the resident tensors that the call names.
    pub fn written<'a>(&'a self, set: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        let inputs = self.schedule.written.iter();
        inputs.filter_map(|input| set.get(self.ordinals[*input as usize]).copied())
    }

    /// How many numbers come with a call, as the last operand.
    pub fn numbers(&self) -> u32 {
        self.numbers
    }

    /// How many resident tensors a call names.
    pub fn residents(&self) -> u32 {
        u32::try_from(self.tensors.len()).expect("a call names few tensors")
    }

    /// Words that the operands of a call of `rows` rows take in the arena: one after the other,
    /// each from a multiple of 16 bytes on.
    pub fn input_words(&self, rows: u32) -> u64 {
        let operands = self.operands.iter();
        operands
            .map(|operand| operand.wide_words(rows).next_multiple_of(4))
            .sum()
    }

    /// Words of the result of a call of `rows` rows.
    pub fn result_words(&self, rows: u32) -> u64 {
        self.results.iter().fold(0, |before, result| {
            u64::next_multiple_of(before, 4) + result.wide_words(rows)
        })
    }

    /// For each result of a call of `rows` rows, the copy from the answer of a slice to the
    /// answer of the whole call.
    pub fn result_runs(&self, slice: RowSlice, rows: u32) -> impl Iterator<Item = CopyRun> {
        let (mut of_slice, mut of_whole) = (0, 0);
        self.results.iter().map(move |result| {
            let run = CopyRun {
                from: aligned(of_slice),
                to: aligned(of_whole) + result.per_row * slice.first,
                words: result.words(slice.rows),
            };
            of_slice = run.from + run.words;
            of_whole = aligned(of_whole) + result.words(rows);
            run
        })
    }

    /// Words that so many rows of a call count for when a batch is cut: the larger of what is
    /// uploaded and what is read back. Two slices together weigh what both weigh as one: an
    /// operand that every slice carries whole counts nothing.
    ///
    /// A chain that cannot be cut by rows counts half of both, and less the more stages
    /// there are: each stage is one more dispatch a chunk, and the copies that overlap are
    /// less of the work.
    pub(super) fn weight(&self, rows: u32) -> u64 {
        let is_cut = self.is_by_row();
        let operands = self.operands.iter();
        let carried = operands.filter(|operand| !is_cut || operand.per_row > 0);
        let up: u64 = carried
            .map(|operand| operand.wide_words(rows).next_multiple_of(4))
            .sum();
        let down = self.result_words(rows);
        match self.rows {
            Some(_) if !is_cut => {
                let stages = self.schedule.runs.len().max(1) as u64;
                (up + down).div_ceil(2 * stages)
            }
            _ => up.max(down),
        }
    }

    /// Whether each row is computed by itself, so that a call may be cut anywhere.
    pub(super) fn is_by_row(&self) -> bool {
        match self.slicing {
            Slicing::Rows => true,
            // A call of one element has nowhere to be cut.
            Slicing::Elements => self.rows.is_some_and(|rows| rows > 1),
            Slicing::Never | Slicing::Axis(_) => false,
        }
    }

    /// The sizes of a slice of so many rows, where these differ from the sizes of the whole.
    pub(super) fn sizes_of(&self, rows: u32) -> Option<Arc<Sizes>> {
        match &self.slicing {
            Slicing::Axis(along) => along.sizes(rows, &self.schedule),
            Slicing::Never | Slicing::Rows | Slicing::Elements => None,
        }
    }

    /// Whether so many rows of a call are computed by the program of the whole call.
    pub(super) fn computes(&self, rows: u32) -> bool {
        let is_whole = || self.rows == Some(rows);
        self.is_by_row() || is_whole() || self.sizes_of(rows).is_some()
    }

    /// Rows of the smallest slice that a call of `rows` rows can be cut to.
    pub fn least(&self, rows: u32) -> u32 {
        match self.rows {
            Some(1) => rows,
            _ if self.is_by_row() => rows.min(GRAIN),
            Some(_) => rows.min(2 * GRAIN),
            None => rows,
        }
    }

    /// Whether the program reads a tensor; `tensor` counts the tensors that a call names.
    pub fn reads(&self, tensor: usize) -> bool {
        let stages = self.schedule.program.stages.iter();
        let mut loads = stages.flat_map(|stage| &stage.loads);
        loads.any(|load| {
            matches!(load.source, Source::Resident(input) if self.ordinals[input as usize] == tensor)
        })
    }

    /// Whether every dispatch of a whole call, or of the smallest slice of one, has no more
    /// than [`MOST_THREADS`].
    pub fn is_countable(&self) -> bool {
        let is_countable = |sizes: &Sizes| {
            let mut stages = sizes.stages.iter();
            stages.all(|sizes| u64::from(sizes.threads) <= MOST_THREADS)
        };
        let least = || self.sizes_of(self.least(self.rows?));
        is_countable(&self.sizes) || least().is_some_and(|least| is_countable(&least))
    }

    /// Items of a call of so many rows. A call whose rows are no rows of its operands, but
    /// places along an axis, is one item.
    pub fn items(&self, rows: u32) -> u64 {
        match self.rows {
            Some(_) if !self.is_by_row() => 1,
            _ => rows.into(),
        }
    }

    /// Formats of the operands whose values are encoded when a call is accepted.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Format of the scalar, if calls have one.
    pub fn scalar(&self) -> Option<Format> {
        self.scalar
    }

    /// Addresses of the operands of a call of `rows` rows, if the first operand is at `at`.
    pub(super) fn addresses(&self, at: u32, rows: u32) -> impl Iterator<Item = u32> {
        self.operands.iter().scan(at, move |next, operand| {
            let address = *next;
            *next += aligned(operand.words(rows));
            Some(address)
        })
    }

    /// The address of one operand of a call of `rows` rows, if the first operand is at `at`.
    pub(super) fn address(&self, operand: usize, at: u32, rows: u32) -> u32 {
        let before = self.operands[..operand].iter();
        before.fold(at, |next, operand| next + aligned(operand.words(rows)))
    }

    /// [`Recipe::result_words`] of rows that were admitted and so fit 32 bits.
    pub fn words_of(&self, rows: u32) -> u32 {
        u32::try_from(self.result_words(rows)).expect("rows that fit")
    }

    /// The kernels that any call of the recipe may need.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let by_scratch = self.store.iter().flat_map(|store| &store.by_scratch);
        let others = by_scratch.flat_map(|form| &form.schedule.kernels);
        self.schedule.kernels.iter().chain(others)
    }

    /// How many dispatches merged calls take.
    pub fn dispatches(&self) -> usize {
        match &self.schedule.program.stages[..] {
            [
                Stage {
                    body: Body::Search(_),
                    ..
                },
            ] => self.tensors.len() + 1,
            _ => self.schedule.runs.len(),
        }
    }
}
