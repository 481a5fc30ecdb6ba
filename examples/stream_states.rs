//! The gradients of more states than memory should hold, streamed: how many a
//! second, how many bytes each way, how busy the GPU is, and what memory it
//! takes. By turns with overlap, and without: one chunk of the stream after another,
//! each sent in one chunk of a batch after another.
//!
//!     cargo run --release --example stream_states [states] [states of a chunk] [rounds]
//!
//! 100,000,000 states are 1.6 GB in and 12.8 GB out.

#![expect(clippy::print_stdout, reason = "an example shows what happened")]
#![expect(
    clippy::disallowed_methods,
    reason = "an example may look at the clock"
)]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use framebatch::{BatchConfig, Blocking, Config, EngineChoice, Error, Gpu, Preset, State};

/// Bytes of a state, and of its gradients.
const BYTES: [f64; 2] = [16.0, 128.0];
const BUDGET: u64 = 512 << 20;

struct Work {
    states: usize,
    chunk: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Overlapping,
    OneAtATime,
}

const WAYS: [Way; 2] = [Way::Overlapping, Way::OneAtATime];

/// What a run took.
struct Run {
    seconds: f64,
    gpu_ms: f64,
    chunks: u64,
    peak: u64,
    checksum: f64,
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let mut number = |usual| match arguments.next() {
        Some(Ok(number)) => number.max(1),
        _ => usual,
    };
    let work = Work {
        states: number(1_000_000),
        chunk: number(1 << 17),
    };
    let rounds = number(3);
    let mut seconds = [Vec::new(), Vec::new()];
    let mut checksums = Vec::new();
    for round in 0..=rounds {
        for (at, way) in WAYS.into_iter().enumerate() {
            let run = run(&work, way)?;
            checksums.push(run.checksum);
            if round > 0 {
                report(way, &work, &run);
                seconds[at].push(run.seconds);
            } else if at == 0 {
                println!("the first round warms up");
            }
        }
    }
    assert!(
        checksums
            .iter()
            .all(|sum| sum.to_bits() == checksums[0].to_bits()),
        "the runs differ: {checksums:?}"
    );
    let [on, off] = seconds.map(median);
    println!(
        "{:.2} x as fast with overlap (medians of {rounds})",
        off / on
    );
    Ok(())
}

/// Streams all states through one session.
fn run(work: &Work, way: Way) -> Result<Run, Error> {
    let overlaps = way == Way::Overlapping;
    let gpu = open(way)?;
    let busy = Arc::new(Mutex::new(0.0));
    let sum = Arc::clone(&busy);
    let _watch = gpu.on_batch(move |facts| {
        if let (Ok(mut sum), Some(ms)) = (sum.lock(), facts.gpu_ms) {
            *sum += ms;
        }
    });
    let chunk: Vec<State> = (0..work.chunk).map(state).collect();
    let start = Instant::now();
    let counts = (0..work.states).step_by(work.chunk);
    let chunks = counts.map(|from| &chunk[..work.chunk.min(work.states - from)]);
    let blocking = gpu.blocking();
    let results: Box<dyn Iterator<Item = Result<Vec<f32>, Error>>> = if overlaps {
        Box::new(blocking.stream(chunks, |gpu, states| gpu.compute_gradients(states)))
    } else {
        Box::new(chunks.map(|states| gpu.compute_gradients(states).wait()))
    };
    let mut checksum = 0.0;
    let mut floats = 0;
    for result in results {
        let gradients = result?;
        floats += gradients.len();
        checksum += f64::from(gradients[gradients.len() - 2]);
        gpu.recycle(gradients); // The next one's memory.
    }
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(floats, work.states * 32, "every state has its gradients");
    let stats = gpu.stats();
    let gpu_ms = busy.lock().map_or(0.0, |sum| *sum);
    Ok(Run {
        seconds,
        gpu_ms,
        chunks: stats.pieces,
        peak: stats.device.pool_peak_bytes,
        checksum,
    })
}

fn open(way: Way) -> Result<Gpu, Error> {
    let most = (way == Way::OneAtATime).then_some(1);
    let config = Config {
        engine: EngineChoice::Gpu,
        batch: BatchConfig {
            memory_budget: Some(BUDGET),
            max_pieces_in_flight: most,
            ..Preset::Eager.config()
        },
        ..Config::default()
    };
    let gpu = Blocking::open(config)?;
    Ok(gpu.gpu().clone())
}

/// A state of every magnitude and phase by turns.
fn state(number: usize) -> State {
    State(std::array::from_fn(|layer| {
        (number * 7 + layer * 31).to_le_bytes()[0]
    }))
}

fn report(way: Way, work: &Work, run: &Run) {
    let states = count(work.states);
    let [up, down] = BYTES.map(|bytes| states * bytes / run.seconds / 1e9);
    println!(
        "{way:?}: {:.2} s, {:.1} million states/s, {up:.2} GB/s up, {down:.2} GB/s down, \
         GPU busy {:.0} %, {} chunks, {:.1} MiB at most of {} MiB",
        run.seconds,
        states / run.seconds / 1e6,
        run.gpu_ms / run.seconds / 10.0,
        run.chunks,
        count(usize::try_from(run.peak).unwrap_or(usize::MAX)) / f64::from(1 << 20),
        BUDGET >> 20,
    );
}

fn count(number: usize) -> f64 {
    number as f64
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
