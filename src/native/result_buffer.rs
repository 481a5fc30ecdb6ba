//! Results as callers get them, and memory that callers gave back for results to come.

use super::copies::{append, copy_result};
use crate::ops::State;

/// Floats of the smallest result whose memory is worth keeping: below that the
/// system's own allocator is as fast.
pub(super) const SMALLEST: usize = 16 << 10;

/// The most results that are kept, which is as many as streams have in flight.
pub(super) const MOST: usize = 64;
pub(super) const MOST_FLOATS: usize = (512 << 20) / size_of::<f32>();

/// A result, or the first parts of one.
#[derive(Debug)]
pub(super) enum Words {
    Floats(Vec<f32>),
    States(Vec<State>),
}

impl Words {
    /// Takes a part of a result of `total` words, which begins at word number `at`. Where parts
    /// follow one another no word is written twice.
    pub(super) fn put(&mut self, words: &[u32], at: u32, total: u32) {
        let [at, total] = [at, total].map(|words| words as usize);
        match self {
            Words::Floats(floats) => put(floats, bytemuck::cast_slice(words), at, total),
            // Results of states are cut between states, of four words each.
            Words::States(states) => {
                put(states, bytemuck::cast_slice(words), at / 4, total / 4);
            }
        }
    }

    /// The floats of a result of floats.
    pub(super) fn floats(self) -> Vec<f32> {
        match self {
            Words::Floats(floats) => floats,
            Words::States(states) => bytemuck::pod_collect_to_vec(&states),
        }
    }

    /// The states of a result of states.
    pub(super) fn states(self) -> Vec<State> {
        match self {
            Words::Floats(floats) => bytemuck::pod_collect_to_vec(&floats),
            Words::States(states) => states,
        }
    }
}

fn put<T>(all: &mut Vec<T>, part: &[T], at: usize, total: usize)
where
    T: Copy + Default + Send + Sync,
{
    if at == 0 {
        // Memory of an earlier result is written over.
        let is_used = all.len() >= total;
        all.truncate(if is_used { total } else { 0 });
        all.reserve_exact(total - all.len());
    }
    if at == all.len() {
        return append(all, part);
    }
    let end = at + part.len();
    if all.len() < end {
        all.resize(end, T::default());
    }
    copy_result(part, &mut all[at..end]);
}

/// Memory of results that callers gave back, for results to come: the system takes as long to hand
/// out fresh memory as a copy takes to fill it.
#[derive(Debug, Default)]
pub(super) struct Spare {
    kept: Vec<Vec<f32>>,
}

impl Spare {
    /// Keeps the memory of a result, or hands the result back where it is small or there is no
    /// room.
    pub(super) fn give(&mut self, result: Vec<f32>) -> Option<Vec<f32>> {
        let is_worth_it = result.capacity() >= SMALLEST;
        let has_room = self.floats() + result.capacity() <= MOST_FLOATS;
        if is_worth_it && self.kept.len() < MOST && has_room {
            self.kept.push(result);
            return None;
        }
        Some(result)
    }

    /// The smallest kept memory that `floats` floats fill by half at least, or an empty list.
    pub(super) fn take(&mut self, floats: usize) -> Vec<f32> {
        if floats < SMALLEST {
            return Vec::new();
        }
        let fits = |memory: &Vec<f32>| (floats..=2 * floats).contains(&memory.capacity());
        let fitting = self.kept.iter().enumerate();
        let fitting = fitting.filter(|(_, memory)| fits(memory));
        match fitting.min_by_key(|(_, memory)| memory.capacity()) {
            Some((at, _)) => self.kept.swap_remove(at),
            None => Vec::new(),
        }
    }

    /// How many floats the kept memory has room for.
    pub(super) fn floats(&self) -> usize {
        self.kept.iter().map(Vec::capacity).sum()
    }

    /// Frees all memory that is kept.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}
