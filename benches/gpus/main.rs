//! How embedding a corpus, and a stream of gradients, gain from more GPUs.
//!
//!     cargo bench --bench gpus [-- --gpus N] [--same] [--texts N] [--tiny] [--record FILE]
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
#![expect(clippy::disallowed_methods, reason = "a bench has a clock of its own")]
#![expect(clippy::unwrap_used, reason = "what goes wrong ends it")]

mod model;

use std::time::Instant;

use framebatch::{
    AdapterKind, BatchConfig, Config, Embedder, EmbedderOptions, EngineChoice, Gpu, Gpus, Policy,
    Preset, State, Storage, adapters,
};
use model::{MINILM, Model, TINY};
use pollster::block_on;

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
    let name = sessions[0].info().adapter;
    println!("{name}, {} sessions", sessions.len());
    let host = host(&model, &texts);
    let [split, enter] = host;
    println!("host: {split:.1} µs to split a text, {enter:.1} to enter it");
    println!("\nsessions   texts/s   tokens/s   × one   share of the busiest");
    let mut rows = Vec::new();
    let mut first: Option<(f64, Vec<f32>)> = None;
    for count in counts(sessions.len()) {
        let embedder = open_model(&model, &sessions[..count], Storage::F16);
        let (seconds, sample) = embed(&embedder, &texts);
        let (alone, expected) = first.get_or_insert((seconds, sample.clone()));
        assert!(*expected == sample, "vectors differ on {count} sessions");
        let tokens = model.tokens() * texts.len();
        let stats = embedder.stats().into_iter().map(|one| one.tokens);
        let share = stats.clone().max().unwrap() as f64 / stats.sum::<u64>() as f64;
        let (texts_rate, rate) = (texts.len() as f64 / seconds, tokens as f64 / seconds);
        let gain = *alone / seconds;
        println!("{count:8} {texts_rate:9.0} {rate:10.0} {gain:7.2} {share:22.2}");
        rows.push(format!(
            "{{\"table\":\"embeddings\",\"sessions\":{count},\"textsPerSecond\":{texts_rate:.0},\"tokensPerSecond\":{rate:.0},\"gain\":{gain:.3}}}"
        ));
    }
    let states = if options.tiny { STATES / 10 } else { STATES };
    println!("\nsessions   states/s   × one");
    let mut alone = None;
    for count in counts(sessions.len()) {
        let gpus = Gpus::new(&sessions[..count]).unwrap();
        let seconds = stream(&gpus, states);
        let gain = *alone.get_or_insert(seconds) / seconds;
        let rate = states as f64 / seconds;
        println!("{count:8} {rate:10.0} {gain:7.2}");
        rows.push(format!(
            "{{\"table\":\"gradients\",\"sessions\":{count},\"statesPerSecond\":{rate:.0},\"gain\":{gain:.3}}}"
        ));
    }
    if let Some(path) = options.record {
        let rows = rows.join(",\n");
        let text = format!(
            "{{\"adapter\":{name:?},\"texts\":{},\"runs\":{RUNS},\"splitMicroseconds\":{split:.2},\"enterMicroseconds\":{enter:.2},\"rows\":[\n{rows}\n]}}\n",
            texts.len()
        );
        std::fs::write(path, text).unwrap();
    }
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

/// Seconds for the texts, and the first floats of their vectors.
fn embed(embedder: &Embedder, texts: &[String]) -> (f64, Vec<f32>) {
    let mut sample = Vec::new();
    let seconds = median(|| {
        let vectors = embedder.embed_many(texts).wait();
        sample = vectors.map(|vector| vector.unwrap()[0]).collect();
    });
    (seconds, sample)
}

/// Seconds for the gradients of so many states.
fn stream(gpus: &Gpus, states: usize) -> f64 {
    median(|| {
        let chunks = (0..states).step_by(CHUNK);
        let chunks = chunks.map(|at| vec![State([0x5a; 16]); CHUNK.min(states - at)]);
        let gradients = gpus.stream_blocking(chunks, |gpu, chunk| gpu.compute_gradients(&chunk));
        let floats: usize = gradients.map(|floats| floats.unwrap().len()).sum();
        assert_eq!(floats, states * 32);
    })
}

/// Microseconds of this thread for a text, to split and to enter it, whatever the
/// device.
fn host(model: &Model, texts: &[String]) -> [f64; 2] {
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
    let split = median(|| assert!(ids_of().all(|ids| ids.len() == model.tokens())));
    let ids: Vec<Vec<u32>> = ids_of().collect();
    let enter = median(|| {
        let calls: Vec<_> = ids.iter().map(|ids| embedder.embed_ids(ids)).collect();
        assert_eq!(gpu.stats().pending, texts.len() as u64);
        drop(calls); // Given up, not computed.
    });
    [split, enter].map(|seconds| seconds * 1e6 / texts.len() as f64)
}

fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut times = [0.0; RUNS];
    for time in &mut times {
        let start = Instant::now();
        run();
        *time = start.elapsed().as_secs_f64();
    }
    times.sort_unstable_by(f64::total_cmp);
    times[RUNS / 2]
}
