//! The upload of a plan: the operands, and behind them the segment tables and params of the
//! plan's dispatches.

use super::launch::bindings_of;
use super::pipelines::Bindings;
use super::{Gpu, bytes_of};
use crate::error::Error;
use crate::kernel::{Kernel, WORKGROUP};
use crate::plan::{self, CopyRun, Dispatch, Params, Plan, Slot, Table};
use crate::tensor::{Arena, WORD};

/// WebGPU's largest alignment of a dynamic uniform offset, in words.
const PARAMS_STRIDE: u32 = 256 / WORD;

/// A dispatch that is ready to be encoded.
pub(super) struct Ready<'a> {
    pub(super) work: &'a Dispatch,
    /// Byte offset of the dispatch's params in the upload.
    pub(super) params: u32,
    pub(super) grid: (u32, u32),
}

/// The words that a plan uploads, tables included.
pub(super) struct Upload {
    pub(super) runs: Vec<CopyRun>,
    pub(super) bytes: u64,
}

impl Upload {
    /// The operands, and the tables behind them.
    fn new(operands: &[CopyRun], tail: CopyRun) -> Upload {
        let mut runs = operands.to_vec();
        match runs.last_mut() {
            Some(last) if last.from + last.words == tail.from => last.words += tail.words,
            _ => runs.push(tail),
        }
        let bytes = bytes_of(tail.to + tail.words);
        Upload { runs, bytes }
    }
}

impl Gpu {
    /// Writes segment tables and params to the arena, so that they are uploaded behind the
    /// operands.
    pub(super) fn append_tables<'a>(
        &self,
        plan: &'a Plan,
        arena: &mut Arena,
    ) -> Result<(Vec<Ready<'a>>, Upload), Error> {
        let tables: Vec<(&Dispatch, Table)> = plan
            .dispatches()
            .map(|work| (work, Table::of(work)))
            .collect();
        let params_words = u32::try_from(tables.len()).expect("few dispatches") * PARAMS_STRIDE;
        let entries: u64 = tables.iter().map(|(_, table)| table.words).sum();
        let operands = plan.words(Slot::INPUTS);
        let padding = operands.wrapping_neg() % PARAMS_STRIDE;
        let words = u64::from(padding + params_words) + entries;
        let all = u64::from(operands) + words;
        if all * u64::from(WORD) > self.max_buffer_bytes() {
            return Err(self.too_large("what a call uploads", all));
        }
        let words = u32::try_from(words).expect("no more than a buffer has");
        // One run of the arena: where the operands end the arena, operands and tables are
        // one write.
        if !arena.reserve(words) {
            return Err(Error::OutOfMemory(
                "there is none for a batch's tables".into(),
            ));
        }
        let tail = arena.take(words);
        let (target, mut next) = (arena.write(tail), padding + params_words);
        let mut ready = Vec::with_capacity(tables.len());
        for (index, (work, table)) in tables.into_iter().enumerate() {
            let params = Params {
                table: operands + next,
                ..table.params
            };
            let at = padding as usize + index * PARAMS_STRIDE as usize;
            let fields: &[u32] = bytemuck::cast_slice(std::slice::from_ref(&params));
            target[at..at + fields.len()].copy_from_slice(fields);
            let grid = self.grid(work, table.threads)?;
            let end = next + u32::try_from(table.words).expect("counted above");
            let entries = &mut target[next as usize..end as usize];
            table.write(work, entries);
            self.skip_fronts(work, params.blocks, entries);
            next = end;
            let params = (operands + u32::try_from(at).expect("counted above")) * WORD;
            ready.push(Ready { work, params, grid });
        }
        let tail = CopyRun {
            from: tail.at,
            to: operands,
            words,
        };
        Ok((ready, Upload::new(plan.uploads(), tail)))
    }

    /// Adds to the addresses of imported tensors, in so many entries, the elements that lie in
    /// front of these tensors in the parts that are bound.
    fn skip_fronts(&self, work: &Dispatch, blocks: u32, entries: &mut [u32]) {
        let (Kernel::Fused(stage) | Kernel::Product(stage, ..)) = &work.kernel else {
            return; // Kernels that are written by hand read no imported tensor.
        };
        let Bindings { operands, .. } = bindings_of(work);
        for (load, of) in (plan::OPERANDS..).zip(&stage.loads) {
            let slot = operands.get(of.binding as usize);
            let part = slot.and_then(|slot| self.buffers.part(*slot));
            let Some(skipped @ 1..) = part.map(|part| part.skipped) else {
                continue;
            };
            for entry in entries.chunks_exact_mut(entries.len() / blocks as usize) {
                // An address wraps where a stride is negative.
                entry[load] = entry[load].wrapping_add(skipped);
            }
        }
    }

    fn grid(&self, work: &Dispatch, threads: u64) -> Result<(u32, u32), Error> {
        let limit = self.limits.max_compute_workgroups_per_dimension;
        let most = plan::most_threads(limit);
        let grid = plan::grid(threads, limit).filter(|_| threads <= most);
        grid.ok_or(Error::TooManyGroups {
            kernel: work.kernel.name(),
            need: threads.div_ceil(WORKGROUP.into()),
            limit: most / u64::from(WORKGROUP),
        })
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "upload_tables_tests.rs"]
mod tests;
