//! How embedding a corpus, and a stream of gradients, gain from more GPUs; and what a text of
//! high priority waits for beside a corpus of low priority, on one.
//!
//!     cargo bench --bench gpus [-- --gpus N] [--same] [--texts N] [--tiny] [--f16]
//!         [--record FOLDER]
//!
//! Texts of 128 tokens, all different, by an encoder of all-MiniLM-L6-v2's sizes
//! with random weights in 16 bits: it takes as long as the real one. On 1, 2, 4 …
//! GPUs in hardware up to `--gpus`, or with `--same` up to four sessions on the
//! usual adapter, which shows what dealing costs and gains nothing. `--tiny` is an
//! encoder that a software adapter computes in time. `--f16` is 16-bit arithmetic. Vectors are compared before
//! times are shown; those are the medians of three runs after one that does not
//! count, and one more run is profiled. `host` is what one thread takes for a text, with a
//! device that does nothing: to split it into tokens, which a corpus has done on all cores,
//! and to enter it.

#![expect(clippy::print_stdout, reason = "it prints its tables")]
#![expect(clippy::unwrap_used, reason = "what goes wrong ends it")]

#[path = "../clock/mod.rs"]
mod clock;
mod model;
mod priorities;
mod profile;
#[path = "../report/mod.rs"]
mod report;

use std::hint::black_box;
use std::num::NonZero;
use std::thread::{self, available_parallelism};

use clock::{Times, time, times_of};
use framebatch::{
    AdapterKind, Arithmetic, BatchConfig, Config, Embedder, EmbedderOptions, EngineChoice, Gpu,
    Gpus, Policy, Preset, State, Storage, adapters,
};
use model::{MINILM, Model, TINY};
use pollster::block_on;
use profile::Profile;
use report::{Report, Row, Table, Unit};

/// States of a stream, and of a chunk of it.
const STATES: usize = 20_000_000;
const CHUNK: usize = 1 << 17;
const RUNS: usize = 3;

struct Options {
    gpus: usize,
    same: bool,
    texts: usize,
    tiny: bool,
    arithmetic: Arithmetic,
    record: Option<String>,
}

fn main() {
    let is_for_others = |word: String| !word.starts_with("--");
    if std::env::args().nth(1).is_some_and(is_for_others) {
        return; // `cargo bench -- batching`, which tells every benchmark.
    }
    let options = options();
    let model = Model::new(if options.tiny { TINY } else { MINILM });
    let texts = model.texts(options.texts);
    let sessions = open(&options);
    if sessions.is_empty() {
        return println!("there is no GPU in hardware; try --same --tiny");
    }
    let mut report = Report::begin();
    report.quick = options.tiny;
    let info = sessions[0].info();
    println!("{}, {} sessions", info.adapter, sessions.len());
    report.add(host(&model, &texts));
    report.add(host_copies());
    report.add(embeddings(&model, &texts, &sessions, options.arithmetic));
    for results in [Results::Freed, Results::Recycled] {
        report.add(gradients(&options, &sessions, results));
    }
    let embedder = open_model(&model, &sessions[..1], Storage::F16, options.arithmetic);
    report.add(priorities::measure(&embedder, &sessions[0], &texts));
    if let Some(folder) = options.record {
        let what = format!("x{}-native-gpus", sessions.len());
        report.write(&folder, &info, &what);
    }
}

/// Texts a second, by how many sessions share them.
fn embeddings(model: &Model, texts: &[String], sessions: &[Gpu], arithmetic: Arithmetic) -> Table {
    println!("\nsessions   texts/s   tokens/s   × one   share of the busiest   GPU busy");
    let mut rows = Vec::new();
    let mut first: Option<(f64, Vec<f32>)> = None;
    for count in counts(sessions.len()) {
        let embedder = open_model(model, &sessions[..count], Storage::F16, arithmetic);
        let (times, sample) = embed(&embedder, texts);
        let ms = times.median();
        let (alone, expected) = first.get_or_insert((ms, sample.clone()));
        assert!(*expected == sample, "vectors differ on {count} sessions");
        let tokens = model.tokens() as f64;
        let stats = embedder.stats().into_iter().map(|one| one.tokens);
        let share = stats.clone().max().unwrap() as f64 / stats.sum::<u64>() as f64;
        let profile = Profile::of(&sessions[..count], || {
            embedder.embed_many(texts).wait().for_each(drop);
        });
        let rates = times.map(|ms| texts.len() as f64 * 1e3 / ms);
        let (rate, gain) = (rates.median(), *alone / ms);
        println!(
            "{count:8} {rate:9.0} {:10.0} {gain:7.2} {share:22.2} {:>10}",
            rate * tokens,
            percent(profile.utilization)
        );
        let row = row("embeddings", count, rates).with("gain", gain);
        rows.push(profile.added_to(row));
    }
    Table {
        about: "texts of 128 tokens, embedded by so many sessions",
        unit: Some(Unit::Rate("texts a second")),
        rows,
    }
}

/// What becomes of the memory of a stream's results.
#[derive(Clone, Copy)]
enum Results {
    /// The memory is freed, and the system hands out fresh memory for each result.
    Freed,
    /// The memory is lent to results to come.
    Recycled,
}

/// States a second, by how many sessions share a stream of them.
fn gradients(options: &Options, sessions: &[Gpu], results: Results) -> Table {
    let states = if options.tiny { STATES / 10 } else { STATES };
    let (what, about) = match results {
        Results::Freed => (
            "gradients",
            "a stream of gradients, dealt to so many sessions",
        ),
        Results::Recycled => (
            "gradients-recycled",
            "a stream of gradients, dealt to so many sessions, whose results are recycled",
        ),
    };
    let states = vec![State([0x5a; 16]); states];
    println!("\n{what}\nsessions   states/s   × one   GPU busy");
    let mut rows = Vec::new();
    let mut alone = None;
    for count in counts(sessions.len()) {
        let gpus = Gpus::new(&sessions[..count]).unwrap();
        let times = runs(|| stream(&gpus, &states, results));
        let ms = times.median();
        let gain = *alone.get_or_insert(ms) / ms;
        let profile = Profile::of(&sessions[..count], || stream(&gpus, &states, results));
        let rates = times.map(|ms| states.len() as f64 * 1e3 / ms);
        println!(
            "{count:8} {:10.0} {gain:7.2} {:>10}",
            rates.median(),
            percent(profile.utilization)
        );
        let row = row(what, count, rates).with("gain", gain);
        rows.push(profile.added_to(row));
    }
    Table {
        about,
        unit: Some(Unit::Rate("states a second")),
        rows,
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".into(), |share| format!("{:.0} %", share * 1e2))
}

fn row(what: &str, sessions: usize, rates: Times) -> Row {
    Row::new(&format!("gpus-{what}-{sessions}"), "framebatch", rates)
}

fn options() -> Options {
    let mut options = Options {
        gpus: 64,
        same: false,
        texts: 8192,
        tiny: false,
        arithmetic: Arithmetic::F32,
        record: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().expect("a value behind its name");
        match name.as_str() {
            "--gpus" => options.gpus = value().parse().expect("a number of GPUs"),
            "--texts" => options.texts = value().parse().expect("a number of texts"),
            "--record" => options.record = Some(value()),
            "--same" => options.same = true,
            "--tiny" => options.tiny = true,
            "--f16" => options.arithmetic = Arithmetic::F16,
            "--bench" => {} // Cargo says so to every benchmark.
            other => panic!("unknown option {other}"),
        }
    }
    options
}

/// 1, 2, 4 … and all.
fn counts(all: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..).map(|k| 1 << k).take_while(|k| *k < all).collect();
    counts.push(all);
    counts
}

fn open(options: &Options) -> Vec<Gpu> {
    let config = |adapter| Config {
        engine: EngineChoice::Gpu,
        adapter,
        ..Config::default()
    };
    let chosen = match options.same {
        true => vec![None; options.gpus.min(4)],
        false => {
            let all = block_on(adapters()).into_iter();
            let hardware = all.filter(|one| one.kind != AdapterKind::Software);
            hardware.take(options.gpus).map(Some).collect()
        }
    };
    let opened = chosen
        .into_iter()
        .map(|one| block_on(Gpu::open(config(one))));
    opened.map(|gpu| gpu.expect("an adapter opens")).collect()
}

fn open_model(model: &Model, gpus: &[Gpu], dtype: Storage, arithmetic: Arithmetic) -> Embedder {
    let options = EmbedderOptions {
        dtype,
        arithmetic,
        ..EmbedderOptions::default()
    };
    Embedder::open(gpus, &model.files()[..], options).unwrap()
}

/// Milliseconds for the texts, and the first floats of their vectors.
fn embed(embedder: &Embedder, texts: &[String]) -> (Times, Vec<f32>) {
    let mut sample = Vec::new();
    let times = runs(|| {
        let vectors = embedder.embed_many(texts).wait();
        sample = vectors.map(|vector| vector.unwrap()[0]).collect();
    });
    (times, sample)
}

/// The gradients of these states, in chunks.
fn stream(gpus: &Gpus, states: &[State], results: Results) {
    let chunks = states.chunks(CHUNK);
    let mut floats = 0;
    for gradients in gpus.stream_blocking(chunks, |gpu, chunk| gpu.compute_gradients(chunk)) {
        let gradients = gradients.unwrap();
        floats += gradients.len();
        match results {
            Results::Freed => drop(gradients),
            Results::Recycled => gpus.recycle(gradients),
        }
    }
    assert_eq!(floats, states.len() * 32);
}

/// Microseconds of this thread for a text, to split and to enter it, whatever the
/// device.
fn host(model: &Model, texts: &[String]) -> Table {
    let gpu = block_on(Gpu::open(Config {
        engine: EngineChoice::Cpu,
        batch: BatchConfig {
            policy: Policy::Manual,
            max_wait: None,
            max_batch_cost: u64::MAX,
            ..Preset::Eager.config()
        },
        ..Config::default()
    }));
    let gpu = gpu.unwrap();
    let embedder = open_model(
        model,
        std::slice::from_ref(&gpu),
        Storage::F32,
        Arithmetic::F32,
    );
    let texts = &texts[..texts.len().min(1024)];
    let ids_of = || texts.iter().map(|text| embedder.ids(text).unwrap());
    let split = runs(|| assert!(ids_of().all(|ids| ids.len() == model.tokens())));
    let ids: Vec<Vec<u32>> = ids_of().collect();
    let enter = runs(|| {
        let calls: Vec<_> = ids.iter().map(|ids| embedder.embed_ids(ids)).collect();
        assert_eq!(gpu.stats().pending, texts.len() as u64);
        drop(calls); // Given up, not computed.
    });
    let a_text = |ms: f64| ms * 1e3 / texts.len() as f64;
    let [split, enter] = [split, enter].map(|times| times.map(a_text));
    println!(
        "host: {:.1} µs to split a text, {:.1} to enter it",
        split.median(),
        enter.median()
    );
    Table {
        about: "what one thread takes for a text, whatever the device",
        unit: Some(Unit::Time("µs a text")),
        rows: vec![
            Row::new("gpus-host-split", "framebatch", split),
            Row::new("gpus-host-enter", "framebatch", enter),
        ],
    }
}

/// GB/s that the host's memory gives to copies as large as a chunk's results, by as many threads
/// as copy these: no stream is faster.
fn host_copies() -> Table {
    const BYTES: usize = 4 << 20;
    const COPIES: usize = 64;
    let threads = available_parallelism().map_or(1, NonZero::get).min(32);
    let times = runs(|| {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let (from, mut to) = (vec![1_u8; BYTES], vec![0_u8; BYTES]);
                    for _ in 0..COPIES {
                        to.copy_from_slice(black_box(&from));
                        black_box(&mut to);
                    }
                });
            }
        });
    });
    let bytes = (threads * BYTES * COPIES) as f64;
    let rates = times.map(|ms| bytes / ms / 1e6);
    println!(
        "host: {:.0} GB/s copied by {threads} threads",
        rates.median()
    );
    Table {
        about: "copies of 4 MB by up to 32 threads, whatever the device",
        unit: Some(Unit::Rate("GB a second")),
        rows: vec![Row::new("gpus-host-copies", "framebatch", rates)],
    }
}

fn runs(mut run: impl FnMut()) -> Times {
    times_of(RUNS, || time(&mut run))
}
