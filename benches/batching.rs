//! `compute_gradients` in many calls: one at a time, by hand, against batched.
//!
//!     cargo bench --bench batching -- [--largest STATES] [--runs N] [--json FILE]
//!
//! A plain program: the binary that cargo builds runs alone on a machine
//! without cargo. Outputs are compared before anything is timed, and medians are
//! shown. On a software adapter only the smallest size runs unless `--largest`
//! says otherwise.

#![expect(clippy::print_stdout, reason = "it prints its table")]

mod per_call;

use std::fmt::Write as _;
use std::time::Instant;

use framebatch::{Call, Config, EngineChoice, Gpu, State};
use per_call::PerCall;

/// States in all, states a call.
const CASES: [(usize, usize); 5] = [
    (10_000, 100),
    (1_000_000, 10_000),
    (1_000_000, 1_000_000),
    (10_000_000, 10_000),
    (10_000_000, 10_000_000),
];

/// What was asked on the command line.
struct Options {
    largest: Option<usize>,
    runs: usize,
    json: Option<String>,
}

/// What one case took, in milliseconds, and how many submissions a run.
struct Row {
    states: usize,
    calls: usize,
    per_call: f64,
    batched: f64,
    submits: f64,
}

fn main() {
    let options = options();
    let old = PerCall::open();
    let config = Config {
        engine: EngineChoice::Gpu,
        ..Config::default()
    };
    let gpu = pollster::block_on(Gpu::open(config)).expect("a GPU");
    let info = gpu.info();
    let default = if info.software {
        CASES[0].0
    } else {
        usize::MAX
    };
    let largest = options.largest.unwrap_or(default);
    println!(
        "{} {}, median of {} runs",
        info.adapter, info.driver, options.runs
    );
    println!("    states   calls   per call ms   batched ms   ratio   submissions");
    let mut rows = Vec::new();
    for (states, each) in CASES.into_iter().filter(|(states, _)| *states <= largest) {
        let row = measure(&old, &gpu, (states, each), options.runs);
        println!(
            "{:10} {:7} {:13.3} {:12.3} {:7.1} {:13.1}",
            row.states,
            row.calls,
            row.per_call,
            row.batched,
            row.per_call / row.batched,
            row.submits
        );
        rows.push(row);
    }
    if rows.len() < CASES.len() {
        println!("sizes above {largest} were left out");
    }
    if let Some(path) = options.json {
        let text = json(&info.adapter, options.runs, &rows);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

fn options() -> Options {
    let mut options = Options {
        largest: None,
        runs: 15,
        json: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let mut value = || {
            args.next()
                .unwrap_or_else(|| panic!("{name} needs a value"))
        };
        match name.as_str() {
            "--largest" => options.largest = Some(value().parse().expect("a number of states")),
            "--runs" => options.runs = value().parse().expect("a number of runs"),
            "--json" => options.json = Some(value()),
            "--bench" => {} // Cargo says so to every benchmark.
            other => panic!("unknown option {other}"),
        }
    }
    options
}

fn measure(old: &PerCall, gpu: &Gpu, (count, each): (usize, usize), runs: usize) -> Row {
    let states = states(count);
    let one_by_one = || -> Vec<Vec<f32>> {
        let calls = states.chunks(each);
        calls.map(|call| old.compute_gradients(call)).collect()
    };
    let together = || -> Vec<Vec<f32>> {
        let calls: Vec<Call<f32>> = states
            .chunks(each)
            .map(|call| gpu.compute_gradients(call))
            .collect();
        let answers = calls.into_iter().map(Call::wait);
        answers.collect::<Result<_, _>>().expect("answered")
    };
    assert!(one_by_one() == together(), "the two ways differ");
    // One way after the other: a program has one of them, and a GPU that changes
    // between the devices of both takes longer for either.
    let per_call = (0..=runs).map(|_| time(one_by_one)).skip(1).collect();
    drop(together()); // Both arenas have their size now.
    let before = gpu.stats().device.submits;
    let batched = (0..runs).map(|_| time(together)).collect();
    let submits = gpu.stats().device.submits - before;
    Row {
        states: count,
        calls: count.div_ceil(each),
        per_call: median(per_call),
        batched: median(batched),
        submits: submits as f64 / runs as f64,
    }
}

/// States with every byte in them.
fn states(count: usize) -> Vec<State> {
    let layer = |i: usize| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()[0];
    (0..count)
        .map(|row| State(std::array::from_fn(|k| layer(16 * row + k))))
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark is about what the clock says"
)]
fn time<T>(work: impl Fn() -> T) -> f64 {
    let start = Instant::now();
    let result = work();
    let took = start.elapsed().as_secs_f64() * 1e3;
    drop(result); // Giving memory back is not part of either way.
    took
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn json(adapter: &str, runs: usize, rows: &[Row]) -> String {
    let mut text = format!("{{\"adapter\":{adapter:?},\"runs\":{runs},\"rows\":[");
    for (i, row) in rows.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(
            text,
            "{comma}\n{{\"states\":{},\"calls\":{},\"perCallMs\":{},\"batchedMs\":{},\"ratio\":{},\"submits\":{}}}",
            row.states,
            row.calls,
            row.per_call,
            row.batched,
            row.per_call / row.batched,
            row.submits
        )
        .expect("text grows");
    }
    text + "\n]}\n"
}
