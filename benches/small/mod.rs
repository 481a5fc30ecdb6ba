//! Many callers with one state each: by how many come together, from how many
//! threads, and under which preset.

use std::sync::Barrier;
use std::thread;

use framebatch::{Call, Error, Gpu, Preset, State};

use crate::clock::{Times, time, times_of};
use crate::per_call::PerCall;
use crate::report::{BY_HAND, Row, Table};
use crate::{Options, open, states};

pub(crate) const NAME: &str = "batching";

/// Calls that come together.
const SIZES: [usize; 5] = [64, 256, 1024, 4096, 8192];
const QUICK_SIZES: [usize; 2] = [64, 1024];
const THREADS: [usize; 2] = [1, 8];
const RUNS: usize = 15;
const QUICK_RUNS: usize = 5;

const PRESETS: [(&str, Preset); 7] = [
    ("auto", Preset::Auto),
    ("frame", Preset::Frame),
    ("eager", Preset::Eager),
    ("latency", Preset::Latency),
    ("balanced", Preset::Balanced),
    ("throughput", Preset::Throughput),
    ("embeddings", Preset::Embeddings),
];

type Answers = Vec<Vec<f32>>;

pub(crate) fn measure(old: &PerCall, options: &Options) -> Table {
    let default_runs = if options.quick { QUICK_RUNS } else { RUNS };
    let runs = options.runs.unwrap_or(default_runs);
    let sizes = if options.quick {
        &QUICK_SIZES[..]
    } else {
        &SIZES
    };
    let largest = options.largest.unwrap_or(usize::MAX);
    println!("\n  calls  threads  way              ms  times faster  calls a batch");
    let mut rows = Vec::new();
    for size in sizes.iter().filter(|size| **size <= largest) {
        for threads in THREADS {
            rows.extend(ways(old, *size, threads, runs));
        }
    }
    Table {
        about: "so many calls of one state each, from one thread or several at a time",
        unit: None,
        rows,
    }
}

/// One number of calls from so many threads: by hand, and under each preset.
fn ways(old: &PerCall, size: usize, threads: usize, runs: usize) -> Vec<Row> {
    let states = states(size);
    let alone = |part: &[State]| -> Answers {
        let calls = part.chunks(1);
        calls.map(|call| old.compute_gradients(call)).collect()
    };
    let workload = format!("batching-{size}x{threads}");
    let expected = alone(&states);
    let per_call = times_of(runs, || from_threads(&states, threads, &alone).0);
    let all = || old.compute_gradients_of(states.chunks(1));
    assert!(all() == expected, "one batch answers otherwise");
    let one_batch = times_of(runs, || time(all));
    let mut rows = Vec::new();
    let mut add = |way: &str, system: &str, times: Times, mean: f64| {
        let (ms, ratio) = (times.median(), per_call.median() / times.median());
        println!("{size:7} {threads:8}  {way:10} {ms:9.3} {ratio:13.1} {mean:14.1}");
        rows.push(Row::new(&workload, system, times).with("callsABatch", mean));
    };
    add("per-call", "per-call", per_call.clone(), 1.0);
    add("by hand", BY_HAND, one_batch, size as f64);
    for (name, preset) in PRESETS {
        let gpu = open(preset.into());
        let together = |part: &[State]| batched(&gpu, preset, part);
        let (_, answers) = from_threads(&states, threads, &together);
        assert!(answers == expected, "{name} answers otherwise");
        let before = gpu.stats();
        let took = times_of(runs, || from_threads(&states, threads, &together).0);
        let after = gpu.stats();
        let batches = (after.batches - before.batches) as f64;
        let mean = (after.calls - before.calls) as f64 / batches;
        add(name, &format!("framebatch-{name}"), took, mean);
        gpu.dispose();
    }
    rows
}

/// Milliseconds from all threads' start to their ends, and what they got, in order.
fn from_threads(
    states: &[State],
    threads: usize,
    work: &(impl Fn(&[State]) -> Answers + Sync),
) -> (f64, Answers) {
    let start = Barrier::new(threads + 1);
    let mut answers = Vec::new();
    let took = thread::scope(|scope| {
        let parts = states.chunks(states.len() / threads);
        let running: Vec<_> = parts
            .map(|part| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    work(part)
                })
            })
            .collect();
        start.wait();
        time(|| {
            for thread in running {
                answers.extend(thread.join().expect("no thread panics"));
            }
        })
    });
    (took, answers)
}

/// Makes calls as a program does: without waiting for one before the next, but for
/// room in the queue.
fn batched(gpu: &Gpu, preset: Preset, part: &[State]) -> Answers {
    let calls: Vec<Call<f32>> = part.chunks(1).map(|call| admitted(gpu, call)).collect();
    if preset == Preset::Frame {
        gpu.flush();
    }
    let answers = part.chunks(1).zip(calls);
    answers
        .map(|(state, call)| answer(gpu, state, call))
        .collect()
}

/// Between a look at the queue and a call, other threads may have filled it: what
/// was refused is asked again.
fn answer(gpu: &Gpu, state: &[State], call: Call<f32>) -> Vec<f32> {
    match call.wait() {
        Err(Error::QueueFull { .. }) => answer(gpu, state, admitted(gpu, state)),
        answer => answer.expect("answered"),
    }
}

/// One call, made when the queue has room.
fn admitted(gpu: &Gpu, state: &[State]) -> Call<f32> {
    pollster::block_on(gpu.ready()).expect("the session goes on");
    gpu.compute_gradients(state)
}
