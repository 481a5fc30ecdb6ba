//! Phases: the order of the calls of a chunk where one writes a tensor that another names.
//!
//! Calls of one phase may run in any order, and so merge; each phase finds what those before it
//! wrote. A call is in the first phase in which it finds, and leaves, what it would alone.

use crate::tensor::Span;

/// The phases of the calls so far.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// How calls use each tensor, by the tensor's number.
    uses: Vec<TensorUse>,
    /// How many phases there are.
    pub(super) count: u32,
}

/// How the calls so far use a tensor.
#[derive(Clone, Debug, Default)]
struct TensorUse {
    /// The first phase behind all that read the tensor.
    behind_reads: u32,
    /// The first phase behind all that write it.
    behind_writes: u32,
    /// What the last phase that writes the tensor writes: runs that do not overlap, in rising
    /// order, each with the word behind it.
    written: Vec<(u32, u32)>,
}

impl Phases {
    /// The phase of the next call, which names tensors, and of those that it writes writes these
    /// words.
    pub(super) fn add(
        &mut self,
        named: &[u32],
        is_written: &dyn Fn(u32) -> bool,
        words: Span,
    ) -> u32 {
        let most = named.iter().max().map_or(0, |tensor| *tensor as usize + 1);
        if self.uses.len() < most {
            self.uses.resize(most, TensorUse::default());
        }
        let mut phase = 0;
        for tensor in named {
            let known = &self.uses[*tensor as usize];
            phase = phase.max(match is_written(*tensor) {
                true => known.first_to_write(words),
                false => known.behind_writes,
            });
        }
        for tensor in named {
            let known = &mut self.uses[*tensor as usize];
            match is_written(*tensor) {
                true => known.write(words, phase),
                false => known.behind_reads = known.behind_reads.max(phase + 1),
            }
        }
        self.count = self.count.max(phase + 1);
        phase
    }
}

impl TensorUse {
    /// The first phase in which a call may write these words. Words that nobody else writes may
    /// be written together with others.
    fn first_to_write(&self, span: Span) -> u32 {
        let at = self.place(span.at);
        let overlaps = |run: &(u32, u32)| run.0 < end(span) && span.at < run.1;
        let is_taken = self.written[at..].iter().take(2).any(overlaps);
        let behind_others = self.behind_writes - u32::from(self.behind_writes > 0 && !is_taken);
        behind_others.max(self.behind_reads)
    }

    fn write(&mut self, span: Span, phase: u32) {
        if phase >= self.behind_writes {
            self.written.clear();
            self.behind_writes = phase + 1;
        }
        let at = self.place(span.at);
        let behind = end(span);
        // Places that are written one after the other become one run.
        match self.written.get_mut(at) {
            Some(run) if run.1 == span.at => run.1 = behind,
            _ => self.written.insert(at, (span.at, behind)),
        }
    }

    /// The number of the first run that does not end before a word.
    fn place(&self, word: u32) -> usize {
        self.written.partition_point(|run| run.1 < word)
    }
}

/// The word behind a span. Words that no address has are in no tensor.
fn end(span: Span) -> u32 {
    span.at.saturating_add(span.words)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "phases_tests.rs"]
mod tests;
