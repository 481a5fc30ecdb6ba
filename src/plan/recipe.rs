//! How one structure is computed: a program, and the numbers of one shape of its inputs.
//!
//! Free of addresses, which differ from call to call and are filled in by `assemble`.
//! How each structure becomes a recipe is said in `lowering`.

use std::sync::Arc;

use super::schedule::Schedule;
use super::slicing::{GRAIN, Slicing};
use super::{MOST_THREADS, Part};
use crate::kernel::Kernel;
use crate::program::{Body, Effort, Sizes, Source, Stage};
use crate::tensor::{Format, aligned};

/// How a structure is computed. The default is the recipe of nothing.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// The program, shared by the recipes of equal ones.
    pub(super) schedule: Arc<Schedule>,
    pub(super) sizes: Sizes,
    /// Its operands as they lie in the arena: one after the other, each
    /// starting at a multiple of 16 bytes.
    pub(super) operands: Vec<Extent>,
    /// The words of each result, of which all but the last are followed by the
    /// next from a multiple of four words on.
    pub(super) results: Vec<Extent>,
    /// For each tensor on the device that a call names behind its operands the words of
    /// a row; 0 where all rows read it.
    pub(super) tensors: Vec<u32>,
    /// For each of the program's inputs its number among the operands or the tensors.
    pub(super) places: Vec<usize>,
    /// Numbers that come with a call, as the last of its operands.
    pub(super) numbers: u32,
    /// Formats of the operands that callers give values for.
    pub(super) inputs: Vec<Format>,
    pub(super) scalar: Option<Format>,
    /// Rows of every call, where the structure says so.
    pub(super) rows: Option<u32>,
    pub(super) slicing: Slicing,
    /// What a row computes.
    pub(super) effort: Effort,
}

/// Words that depend on a call's rows.
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

    /// Words for so many rows.
    pub(super) const fn words(self, rows: u32) -> u32 {
        self.per_row * rows + self.fixed
    }

    fn wide(self, rows: u32) -> u64 {
        u64::from(self.per_row) * u64::from(rows) + u64::from(self.fixed)
    }
}

impl Recipe {
    /// Rows of every call, where the structure says so.
    pub fn rows(&self) -> Option<u32> {
        self.rows
    }

    /// What a row computes.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Whether its result stays on the device, in a tensor that a call names.
    pub fn is_stored(&self) -> bool {
        self.schedule.written.is_some()
    }

    /// The tensor that a call writes, of those that it names.
    pub fn written(&self, set: &[u32]) -> Option<u32> {
        let input = self.schedule.written?;
        set.get(self.places[input as usize]).copied()
    }

    /// Numbers that come with a call: the last of its operands.
    pub fn numbers(&self) -> u32 {
        self.numbers
    }

    /// Tensors on the device that a call names behind its operands.
    pub fn residents(&self) -> u32 {
        u32::try_from(self.tensors.len()).expect("a call names few tensors")
    }

    /// Words that the operands of a call of `rows` rows take in the arena:
    /// one after the other, each starting at a multiple of 16 bytes.
    pub fn input_words(&self, rows: u32) -> u64 {
        let operands = self.operands.iter();
        operands
            .map(|operand| operand.wide(rows).next_multiple_of(4))
            .sum()
    }

    /// Words of the result of a call of `rows` rows.
    pub fn result_words(&self, rows: u32) -> u64 {
        self.results.iter().fold(0, |before, result| {
            u64::next_multiple_of(before, 4) + result.wide(rows)
        })
    }

    /// The parts of a call's result that a part of its rows gives, for each
    /// result of the call: where in what these rows give, where in the whole,
    /// and how many words.
    pub fn parts(&self, part: Part, rows: u32) -> impl Iterator<Item = (u32, u32, u32)> {
        let mut next = (0, 0);
        self.results.iter().map(move |result| {
            let (at, home) = (aligned(next.0), aligned(next.1));
            let words = result.words(part.rows);
            next = (at + words, home + result.words(rows));
            (at, home + result.per_row * part.first, words)
        })
    }

    /// Words that rows of a call cost one way or the other. Those of two parts
    /// are together those of both: what each part carries again counts nothing.
    ///
    /// Of a chain that needs its calls whole the words of both ways count half,
    /// and less the more stages there are: each is one more dispatch a chunk, for
    /// copies that are less of the work.
    pub(super) fn weight(&self, rows: u32) -> u64 {
        let is_cut = self.is_by_row();
        let operands = self.operands.iter();
        let carried = operands.filter(|operand| !is_cut || operand.per_row > 0);
        let up: u64 = carried
            .map(|operand| operand.wide(rows).next_multiple_of(4))
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
            // One element at a time is each call's own affair.
            Slicing::Elements => self.rows.is_some_and(|rows| rows > 1),
            Slicing::Never | Slicing::Axis(_) => false,
        }
    }

    /// The sizes of a part of so many rows, where these are not those of the whole.
    pub(super) fn sizes_of(&self, rows: u32) -> Option<Arc<Sizes>> {
        match &self.slicing {
            Slicing::Axis(along) => along.sizes(rows, &self.schedule),
            Slicing::Never | Slicing::Rows | Slicing::Elements => None,
        }
    }

    /// Whether so many rows of a call are computed as all of them are.
    pub(super) fn computes(&self, rows: u32) -> bool {
        let is_whole = || self.rows == Some(rows);
        self.is_by_row() || is_whole() || self.sizes_of(rows).is_some()
    }

    /// Rows of a part that is no larger than it must be.
    pub fn least(&self, rows: u32) -> u32 {
        match self.rows {
            Some(1) => rows,
            _ if self.is_by_row() => rows.min(GRAIN),
            Some(_) => rows.min(2 * GRAIN),
            None => rows,
        }
    }

    /// Whether the program reads a tensor of calls.
    pub(super) fn reads(&self, place: usize) -> bool {
        let stages = self.schedule.program.stages.iter();
        let mut loads = stages.flat_map(|stage| &stage.loads);
        loads.any(|load| {
            matches!(load.source, Source::Resident(input) if self.places[input as usize] == place)
        })
    }

    /// Words of a row of a tensor that calls name; 0 where it has none.
    pub(super) fn resident_row(&self, place: usize) -> u32 {
        self.tensors.get(place).copied().unwrap_or(0)
    }

    /// Whether no dispatch has more threads than there may be, in a part that is no
    /// larger than it must be.
    pub fn is_countable(&self) -> bool {
        let is_countable = |sizes: &Sizes| {
            let mut stages = sizes.stages.iter();
            stages.all(|sizes| u64::from(sizes.threads) <= MOST_THREADS)
        };
        let least = || self.sizes_of(self.least(self.rows?));
        is_countable(&self.sizes) || least().is_some_and(|least| is_countable(&least))
    }

    /// What a call of so many rows counts for in a batch: what is computed row by
    /// row along an axis is one item.
    pub fn items(&self, rows: u32) -> u64 {
        match self.rows {
            Some(_) if !self.is_by_row() => 1,
            _ => rows.into(),
        }
    }

    /// Formats of the operands.
    pub fn inputs(&self) -> &[Format] {
        &self.inputs
    }

    /// Format of the scalar, if calls have one.
    pub fn scalar(&self) -> Option<Format> {
        self.scalar
    }

    /// Addresses of the operands of a call that begins at `at`.
    pub(super) fn addresses(&self, at: u32, rows: u32) -> impl Iterator<Item = u32> {
        self.operands.iter().scan(at, move |next, operand| {
            let address = *next;
            *next += aligned(operand.words(rows));
            Some(address)
        })
    }

    /// The address of one of them.
    pub(super) fn address(&self, operand: usize, at: u32, rows: u32) -> u32 {
        let before = self.operands[..operand].iter();
        before.fold(at, |next, operand| next + aligned(operand.words(rows)))
    }

    /// The same, of rows that are known to fit.
    pub fn words_of(&self, rows: u32) -> u32 {
        u32::try_from(self.result_words(rows)).expect("rows that fit")
    }

    /// The kernels that compute it.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.schedule.kernels.iter()
    }

    /// Dispatches that a group of its calls takes.
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
