//! How fast tokenizers are, on one core, beside Hugging Face's crate.
//!
//!     cargo bench -p framebatch-tokenizer-peer -- [--file FILE] [--record FILE]
//!
//! Measures the `tokenizer.json` of `make model`, which is a WordPiece, and of each folder in
//! `models/tokenizers`, or the file that is named. Texts are the sentences of `tests/data`, a novel
//! in English, and lines of `models/texts` in many scripts; `tools/tokenizer-bench.sh` fetches the
//! last two folders. Ids are compared with the crate's before anything is timed. Times are the best
//! of several rounds, since whatever else runs can only add to them.

#![expect(clippy::print_stdout, reason = "it prints its table")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock of its own")]

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs, io};

use framebatch::embed::tokenizer::Tokenizer;
use serde_json::{Value, json};

const ROUNDS: usize = 15;
/// The crate takes several times as long.
const PEER_ROUNDS: usize = 3;
/// Bytes of a file that are read at once.
const SLICE: usize = 1 << 16;

const WORDPIECE: &str = "models/minilm/tokenizer.json";
const TOKENIZERS: &str = "models/tokenizers";
const TEXTS: &str = "models/texts";

fn main() {
    env::set_current_dir(framebatch_tokenizer_peer::root()).expect("the folder of the library");
    let files = option("--file").map_or_else(files, |file| vec![file.into()]);
    let sets = sets();
    println!(
        "{:12} {:9} {:>8} {:>7} {:>9} {:9} {:>7} {:>9} {:>7} {:>8}",
        "tokenizer",
        "kind",
        "ids",
        "load ms",
        "slice ms",
        "texts",
        "tokens",
        "M tok/s",
        "MB/s",
        "crate"
    );
    let rows: Vec<Value> = files.iter().flat_map(|file| measure(file, &sets)).collect();
    if let Some(path) = option("--record") {
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(path, lines).expect("a file to write the record to");
    }
}

/// What stands behind an option.
fn option(name: &str) -> Option<String> {
    env::args().skip_while(|argument| argument != name).nth(1)
}

/// Texts of one kind.
struct Set {
    name: &'static str,
    texts: Vec<String>,
    /// Whether no text comes twice: what was split lately is split again in less time.
    is_unrepeated: bool,
}

fn sets() -> Vec<Set> {
    let sentences = fs::read_to_string("tests/data/minilm-reference.jsonl").expect("sentences");
    let sentences: Vec<String> = sentences
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("lines of JSON");
            line["text"].as_str().expect("a text").to_owned()
        })
        .collect();
    // Some times over, so that a round takes milliseconds.
    let count = 20 * sentences.len();
    let sentences = sentences.into_iter().cycle().take(count).collect();
    let scripts = entries(TEXTS).iter().flat_map(|path| lines(path)).collect();
    let sets = [
        ("sentences", sentences, false),
        ("novel", lines(Path::new("www/search/text.txt")), true),
        ("scripts", scripts, true),
    ];
    let sets = sets.map(|(name, texts, is_unrepeated)| Set {
        name,
        texts,
        is_unrepeated,
    });
    sets.into_iter()
        .filter(|set| !set.texts.is_empty())
        .collect()
}

fn files() -> Vec<PathBuf> {
    let folders = entries(TOKENIZERS);
    let fetched = folders
        .iter()
        .map(|folder| folder.join("tokenizer.json"))
        .filter(|file| file.exists());
    let own = PathBuf::from(WORDPIECE);
    assert!(own.exists(), "{WORDPIECE} is missing: run make model");
    [own].into_iter().chain(fetched).collect()
}

/// What is in a folder that is fetched, by name; says so where the folder is not there.
fn entries(folder: &str) -> Vec<PathBuf> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            let entries: io::Result<Vec<_>> = entries.collect();
            let mut paths: Vec<PathBuf> = entries
                .expect("entries that can be read")
                .iter()
                .map(|entry| entry.path())
                .collect();
            paths.sort();
            paths
        }
        Err(error) => {
            println!("left out: {folder}: {error}; tools/tokenizer-bench.sh fetches it");
            Vec::new()
        }
    }
}

/// The lines of a file that are not empty.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a text");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(str::to_owned).collect()
}

/// Prints a row for each set of texts, and one for all texts that come once.
fn measure(path: &Path, sets: &[Set]) -> Vec<Value> {
    let file = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut peer: tokenizers::Tokenizer = serde_json::from_slice(&file).expect("a tokenizer");
    peer.with_padding(None);
    peer.with_truncation(None).expect("no limit");
    let (ours, slowest) = load(&file);
    let (load_seconds, _) = best(ROUNDS, || load(&file).0.vocabulary_len());
    let json: Value = serde_json::from_slice(&file).expect("JSON");
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    let about = json!({
        "file": path.display().to_string(),
        "tokenizer": folder.to_string_lossy(),
        "kind": json["model"]["type"].as_str().unwrap_or("?"),
        "ids": ours.vocabulary_len(),
        "loadMs": load_seconds * 1e3,
        "slowestSliceMs": slowest * 1e3,
    });
    let mut rows = Vec::new();
    let mut mix = Pace::default();
    for set in sets {
        compare(&ours, &peer, &set.texts);
        let pace = Pace::of(&ours, &peer, &set.texts);
        if set.is_unrepeated {
            mix.add(&pace);
        }
        rows.push(row(&about, set.name, &pace));
    }
    rows.push(row(&about, "mix", &mix));
    rows
}

/// The tokenizer of a file that arrives in slices, and the seconds of the slowest slice.
fn load(file: &[u8]) -> (Tokenizer, f64) {
    let mut reader = Tokenizer::reader();
    let mut slowest = 0.0_f64;
    for slice in file.chunks(SLICE) {
        let start = Instant::now();
        reader.feed(slice).expect("a slice");
        slowest = slowest.max(start.elapsed().as_secs_f64());
    }
    let start = Instant::now();
    let tokenizer = reader.finish().expect("a tokenizer that is known");
    (tokenizer, slowest.max(start.elapsed().as_secs_f64()))
}

/// Holds that both tokenizers give the same ids.
fn compare(ours: &Tokenizer, peer: &tokenizers::Tokenizer, texts: &[String]) {
    let mut ids = Vec::new();
    for text in texts {
        ids.clear();
        ours.encode(text, usize::MAX, &mut ids);
        let expected = peer.encode_fast(text.as_str(), true).expect("ids");
        assert_eq!(ids, expected.get_ids(), "{text}");
    }
}

/// What texts take.
#[derive(Default)]
struct Pace {
    bytes: usize,
    tokens: usize,
    seconds: f64,
    peer_seconds: f64,
}

impl Pace {
    fn of(ours: &Tokenizer, peer: &tokenizers::Tokenizer, texts: &[String]) -> Pace {
        let mut ids = Vec::new();
        let (seconds, tokens) = best(ROUNDS, || {
            ids.clear();
            for text in texts {
                ours.encode(text, usize::MAX, &mut ids);
            }
            ids.len()
        });
        let encode = |text: &String| peer.encode_fast(text.as_str(), true).expect("ids").len();
        let (peer_seconds, _) = best(PEER_ROUNDS, || texts.iter().map(encode).sum());
        Pace {
            bytes: texts.iter().map(String::len).sum(),
            tokens,
            seconds,
            peer_seconds,
        }
    }

    fn add(&mut self, other: &Pace) {
        self.bytes += other.bytes;
        self.tokens += other.tokens;
        self.seconds += other.seconds;
        self.peer_seconds += other.peer_seconds;
    }
}

/// Prints a row of the table, and returns what is recorded of it.
fn row(about: &Value, texts: &str, pace: &Pace) -> Value {
    let millions = |count: usize, seconds: f64| count as f64 / seconds / 1e6;
    let rate = millions(pace.tokens, pace.seconds);
    let bytes = millions(pace.bytes, pace.seconds);
    let peer = millions(pace.tokens, pace.peer_seconds);
    println!(
        "{:12} {:9} {:>8} {:>7.1} {:>9.2} {texts:9} {:>7} {rate:>9.2} {bytes:>7.1} {peer:>8.2}",
        about["tokenizer"].as_str().unwrap_or_default(),
        about["kind"].as_str().unwrap_or_default(),
        about["ids"],
        about["loadMs"].as_f64().unwrap_or_default(),
        about["slowestSliceMs"].as_f64().unwrap_or_default(),
        pace.tokens,
    );
    let mut row = about.clone();
    row["texts"] = texts.into();
    row["bytes"] = pace.bytes.into();
    row["tokens"] = pace.tokens.into();
    row["millionTokensPerSecond"] = rate.into();
    row["tokenizersCrate"] = peer.into();
    row
}

/// Seconds of the fastest round, and what a round returns.
fn best(rounds: usize, mut round: impl FnMut() -> usize) -> (f64, usize) {
    let mut fastest = f64::INFINITY;
    let mut answer = 0;
    for _ in 0..rounds {
        let start = Instant::now();
        answer = std::hint::black_box(round());
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    (fastest, answer)
}
