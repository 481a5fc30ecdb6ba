//! How embedding a corpus, and a stream of gradients, gain from more GPUs; and what a text of
//! high priority waits for beside a corpus of low priority, on one.
//!
//!     cargo bench --bench gpus [-- --gpus N] [--same] [--texts N] [--tiny] [--record FOLDER]
//!
//! Texts of 128 tokens, all different, by an encoder of all-MiniLM-L6-v2's sizes
//! with random weights in 16 bits: it takes as long as the real one. On 1, 2, 4 …
//! GPUs in hardware up to `--gpus`, or with `--same` up to four sessions on the
//! usual adapter, which shows what dealing costs and gains nothing. `--tiny` is an
//! encoder that a software adapter computes in time. Vectors are compared before
//! times are shown; those are the medians of three runs after one that does not
//! count. `host` is what one thread takes for a text, with a device that does nothing:
//! to split it into tokens, which a corpus has done on all cores, and to enter it.

#![expect(clippy::print_stdout, reason = "it prints its tables")]
#![expect(clippy::unwrap_used, reason = "what goes wrong ends it")]

#[path = "../clock/mod.rs"]
mod clock;
mod model;
mod priorities;
#[path = "../report/mod.rs"]
mod report;

use clock::{Times, time, times_of};
use framebatch::{
    AdapterKind, BatchConfig, Config, Embedder, EmbedderOptions, EngineChoice, Gpu, Gpus, Policy,
    Preset, State, Storage, adapters,
};
use model::{MINILM, Model, TINY};
use pollster::block_on;
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
    report.add(embeddings(&model, &texts, &sessions));
    report.add(gradients(&options, &sessions));
    let embedder = open_model(&model, &sessions[..1], Storage::F16);
    report.add(priorities::measure(&embedder, &sessions[0], &texts));
    if let Some(folder) = options.record {
        let what = format!("x{}-native-gpus", sessions.len());
        report.write(&folder, &info, &what);
    }
}

/// Texts a second, by how many sessions share them.
fn embeddings(model: &Model, texts: &[String], sessions: &[Gpu]) -> Table {
    println!("\nsessions   texts/s   tokens/s   × one   share of the busiest");
    let mut rows = Vec::new();
    let mut first: Option<(f64, Vec<f32>)> = None;
    for count in counts(sessions.len()) {
        let embedder = open_model(model, &sessions[..count], Storage::F16);
        let (times, sample) = embed(&embedder, texts);
        let ms = times.median();
        let (alone, expected) = first.get_or_insert((ms, sample.clone()));
        assert!(*expected == sample, "vectors differ on {count} sessions");
        let tokens = model.tokens() as f64;
        let stats = embedder.stats().into_iter().map(|one| one.tokens);
        let share = stats.clone().max().unwrap() as f64 / stats.sum::<u64>() as f64;
        let rates = times.map(|ms| texts.len() as f64 * 1e3 / ms);
        let (rate, gain) = (rates.median(), *alone / ms);
        println!(
            "{count:8} {rate:9.0} {:10.0} {gain:7.2} {share:22.2}",
            rate * tokens
        );
        rows.push(row("embeddings", count, rates).with("gain", gain));
    }
    Table {
        about: "texts of 128 tokens, embedded by so many sessions",
        unit: Some(Unit::Rate("texts a second")),
        rows,
    }
}

/// States a second, by how many sessions share a stream of them.
fn gradients(options: &Options, sessions: &[Gpu]) -> Table {
    let states = if options.tiny { STATES / 10 } else { STATES };
    println!("\nsessions   states/s   × one");
    let mut rows = Vec::new();
    let mut alone = None;
    for count in counts(sessions.len()) {
        let gpus = Gpus::new(&sessions[..count]).unwrap();
        let times = stream(&gpus, states);
        let ms = times.median();
        let gain = *alone.get_or_insert(ms) / ms;
        let rates = times.map(|ms| states as f64 * 1e3 / ms);
        println!("{count:8} {:10.0} {gain:7.2}", rates.median());
        rows.push(row("gradients", count, rates).with("gain", gain));
    }
    Table {
        about: "a stream of gradients, dealt to so many sessions",
        unit: Some(Unit::Rate("states a second")),
        rows,
    }
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

fn open_model(model: &Model, gpus: &[Gpu], dtype: Storage) -> Embedder {
    let options = EmbedderOptions {
        dtype,
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

/// Milliseconds for the gradients of so many states.
fn stream(gpus: &Gpus, states: usize) -> Times {
    runs(|| {
        let chunks = (0..states).step_by(CHUNK);
        let chunks = chunks.map(|at| vec![State([0x5a; 16]); CHUNK.min(states - at)]);
        let gradients = gpus.stream_blocking(chunks, |gpu, chunk| gpu.compute_gradients(&chunk));
        let floats: usize = gradients.map(|floats| floats.unwrap().len()).sum();
        assert_eq!(floats, states * 32);
    })
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
    let embedder = open_model(model, std::slice::from_ref(&gpu), Storage::F32);
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

fn runs(mut run: impl FnMut()) -> Times {
    times_of(RUNS, || time(&mut run))
}
