//! All cores share a dispatch: in tasks of about equal work, each with the words that it writes.

use std::ops::Range;

use rayon::ThreadPool;

use super::{Size, Task, Work};
use crate::device::cores;
use crate::device::cpu::program::Output;

/// The least work that another core is woken for, in passes over one value. A pass takes a
/// sixteenth of a nanosecond, so this is a quarter of a millisecond.
const SHARE: usize = 1 << 22;

/// Tasks for each core, so that a slow core does not hold up the others.
const TASKS: usize = 4;

/// Computes a dispatch, on all cores where that is faster.
pub(crate) fn share(work: &Work<'_>, output: &mut [u32]) {
    let shared = cores().and_then(|pool| {
        let tasks = tasks(work, pool.current_num_threads(), output.len())?;
        Some((pool, tasks))
    });
    match shared {
        Some((pool, tasks)) => run(pool, work, tasks, output),
        None => work.alone(output),
    }
}

/// A task, and the words of the output that it alone writes.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) task: Task,
    pub(super) words: Range<usize>,
}

/// Divides the work; `None` if one core is as fast, or if lines do not lie one after the other.
pub(super) fn tasks(work: &Work<'_>, cores: usize, words: usize) -> Option<Vec<Placed>> {
    if cores < 2 {
        return None;
    }
    let sizes: Option<Vec<Size>> = (0..work.calls).map(work.size).collect();
    let sizes = sizes?;
    let total: usize = sizes.iter().map(|size| size.lines * size.work).sum();
    let each = (total / (cores * TASKS)).max(SHARE);
    if total < 2 * each {
        return None;
    }
    let mut tasks: Vec<Placed> = Vec::new();
    let mut taken = 0; // The work of the last task, if that is one of whole calls.
    let mut end = 0;
    for (call, size) in sizes.iter().enumerate().filter(|(_, size)| size.lines > 0) {
        let own = size.start..size.start + size.lines * size.words;
        if own.start < end || own.end > words {
            return None;
        }
        end = own.end;
        if size.lines * size.work >= 2 * each {
            taken = 0;
            cut(&mut tasks, call, size, each);
            continue;
        }
        match tasks.last_mut() {
            Some(Placed { task, words }) if taken > 0 && taken < each => {
                task.calls.end = call + 1;
                words.end = end;
            }
            _ => {
                taken = 0;
                let task = Task {
                    calls: call..call + 1,
                    lines: None,
                };
                tasks.push(Placed { task, words: own });
            }
        }
        taken += size.lines * size.work.max(1);
    }
    Some(tasks)
}

/// Cuts a large call in tasks of about `each` work.
fn cut(tasks: &mut Vec<Placed>, call: usize, size: &Size, each: usize) {
    let count = (size.lines * size.work).div_ceil(each);
    // Tasks are multiples of four lines, so that vectors stay whole.
    let step = size.lines.div_ceil(count).next_multiple_of(4);
    for first in (0..size.lines).step_by(step) {
        let lines = first..size.lines.min(first + step);
        let at = |line: usize| size.start + line * size.words;
        let words = at(lines.start)..at(lines.end);
        let task = Task {
            calls: call..call + 1,
            lines: Some(lines),
        };
        tasks.push(Placed { task, words });
    }
}

fn run(pool: &ThreadPool, work: &Work<'_>, tasks: Vec<Placed>, output: &mut [u32]) {
    let compute = work.run;
    pool.scope(|scope| {
        let (mut rest, mut start) = (output, 0);
        for Placed { task, words } in tasks {
            let (_, from) = rest.split_at_mut(words.start - start);
            let (own, behind) = from.split_at_mut(words.len());
            (rest, start) = (behind, words.end);
            let output = Output {
                words: own,
                start: words.start,
            };
            scope.spawn(move |_| compute(task, output));
        }
    });
}
