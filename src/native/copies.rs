//! Copies of large operands and results, by several cores at once.
//!
//! `submission` and `delivery` decide what is copied.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Bytes that one core copies at least: less is copied sooner than another core wakes.
const SHARE: usize = 256 << 10;

/// The same where the memory is fresh. The first write to it takes several times as long.
const FRESH_SHARE: usize = 64 << 10;

/// Cores that share the copy of a result, and of an operand, at most.
const RESULT_COPIERS: usize = 16;
const OPERAND_COPIERS: usize = 4;

/// Cores that copy results at all. More of them wait for memory and look for work of one another:
/// on a machine of 64, results of 16 MB came at 9 GB/s by all cores, and at 24 GB/s by sixteen of
/// thirty-two.
const MOST_CORES: usize = 32;

type Pool = LazyLock<Option<ThreadPool>>;

static RESULTS: Pool = LazyLock::new(|| threads("results", MOST_CORES));

/// Operands have threads of their own: who makes calls would wait behind the results of others.
static OPERANDS: Pool = LazyLock::new(|| threads("operands", OPERAND_COPIERS));

fn threads(what: &'static str, most: usize) -> Option<ThreadPool> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let pool = ThreadPoolBuilder::new().num_threads(cores.min(most));
    pool.thread_name(move |core| format!("framebatch-{what}-{core}"))
        .build()
        .ok()
}

/// The threads for copies of results; `None` where the system has none to give.
pub(super) fn result_threads() -> Option<&'static ThreadPool> {
    RESULTS.as_ref()
}

/// Copies an operand to where a batch has room for it.
pub(super) fn copy_operand(operand: &[u8], place: &mut [u8]) {
    copy(operand, place, &OPERANDS, OPERAND_COPIERS);
}

/// Copies a part of a result to where the result has it.
pub(super) fn copy_result<T: Copy + Send + Sync>(part: &[T], place: &mut [T]) {
    copy(part, place, &RESULTS, RESULT_COPIERS);
}

fn copy<T: Copy + Send + Sync>(part: &[T], place: &mut [T], pool: &'static Pool, copiers: usize) {
    let share = (SHARE / size_of::<T>()).max(part.len().div_ceil(copiers));
    if part.len() <= share {
        return place.copy_from_slice(part);
    }
    let Some(pool) = pool.as_ref() else {
        return place.copy_from_slice(part);
    };
    let shares = part.par_chunks(share);
    let shares = shares.zip(place.par_chunks_mut(share));
    pool.install(|| shares.for_each(|(from, to)| to.copy_from_slice(from)));
}

/// Appends a part of a result, mostly to fresh memory.
pub(super) fn append<T: Copy + Send + Sync>(all: &mut Vec<T>, part: &[T]) {
    let share = (FRESH_SHARE / size_of::<T>()).max(part.len().div_ceil(RESULT_COPIERS));
    match RESULTS.as_ref().filter(|_| part.len() > share) {
        Some(pool) => pool.install(|| all.par_extend(part.par_iter().with_min_len(share))),
        None => all.extend_from_slice(part),
    }
}

/// Of so many copies of `average` bytes, how many one core makes at least.
pub(super) fn copies_of_a_core(copies: usize, average: usize) -> usize {
    (FRESH_SHARE / average.max(1))
        .max(copies.div_ceil(RESULT_COPIERS))
        .max(1)
}
