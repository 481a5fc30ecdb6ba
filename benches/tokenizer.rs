//! How fast the tokenizer is, on one core, beside Hugging Face's crate.
//!
//!     cargo bench --bench tokenizer [-- --record FOLDER]
//!     cargo bench --bench tokenizer -- --file models/unigram/tokenizer.json
//!
//! Over the texts of `tests/data` with the vocabulary that `make model` fetches, or with a
//! `tokenizer.json`, which is read in slices of 64 KB; the slowest of them is told.
//! Ids are compared before anything is timed. Times are the best of several
//! rounds, since whatever else runs can only add to them.

#![expect(clippy::print_stdout, reason = "it prints its table")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock of its own")]

use std::time::Instant;
use std::{env, fs};

use framebatch::embed::tokenizer::{Options, Tokenizer};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;

const ROUNDS: usize = 15;

fn main() {
    let mut arguments = env::args().skip_while(|argument| argument != "--file");
    match arguments.nth(1) {
        Some(path) => whole_file(&path),
        None => wordpiece(),
    }
}

/// Any tokenizer, as a file describes it.
fn whole_file(path: &str) {
    let file = fs::read(path).expect("a tokenizer.json");
    let mut peer: tokenizers::Tokenizer = serde_json::from_slice(&file).expect("a tokenizer");
    peer.with_padding(None);
    peer.with_truncation(None).expect("no limit");
    let texts = texts();
    let mut slowest = 0.0_f64;
    let mut load = || {
        let mut reader = Tokenizer::reader();
        for slice in file.chunks(1 << 16) {
            let start = Instant::now();
            reader.feed(slice).expect("a slice");
            slowest = slowest.max(start.elapsed().as_secs_f64());
        }
        let start = Instant::now();
        let tokenizer = reader.finish().expect("a tokenizer that is known");
        slowest = slowest.max(start.elapsed().as_secs_f64());
        tokenizer
    };
    let ours = load();
    let mut ids = Vec::new();
    for text in &texts {
        ids.clear();
        ours.encode(text, usize::MAX, &mut ids);
        let expected = peer.encode_fast(text.as_str(), true).expect("ids");
        assert_eq!(ids, expected.get_ids(), "{text}");
    }
    let mut all = || {
        ids.clear();
        for text in &texts {
            ours.encode(text, usize::MAX, &mut ids);
        }
        ids.len()
    };
    let tokens = all();
    let rate = tokens as f64 / best(&mut all) / 1e6;
    let encode = |text: &String| peer.encode_fast(text.as_str(), true).expect("ids").len();
    let rival = tokens as f64 / best(|| texts.iter().map(encode).sum()) / 1e6;
    let loading = best(|| load().vocabulary_len());
    println!(
        "{{ \"file\": \"{path}\", \"ids\": {}, \"texts\": {}, \"tokens\": {tokens}, \"loadMs\": {:.1}, \"slowestSliceMs\": {:.1}, \"millionTokensPerSecond\": {rate:.2}, \"tokenizersCrate\": {rival:.2} }}",
        ours.vocabulary_len(),
        texts.len(),
        loading * 1e3,
        slowest * 1e3,
    );
}

/// WordPiece with the vocabulary of all-MiniLM-L6-v2.
fn wordpiece() {
    let vocab = fs::read_to_string("models/minilm/vocab.txt").expect("make model was run");
    let texts = texts();
    let ours = Tokenizer::new(&vocab, Options::default()).expect("a vocabulary of BERT's");
    let peer = peer(&vocab);
    let mut ids = Vec::new();
    let mut all = || {
        ids.clear();
        for text in &texts {
            ours.encode(text, usize::MAX, &mut ids);
        }
        ids.len()
    };
    let tokens = all();
    let encode = |text: &String| peer.encode_fast(text.as_str(), false).expect("ids").len();
    let expected: usize = texts.iter().map(|text| encode(text) + 2).sum();
    assert_eq!(tokens, expected, "the crate splits into as many");

    let loading =
        best(|| Tokenizer::new(&vocab, Options::default()).map_or(0, |t| t.vocabulary_len()));
    let rate = tokens as f64 / best(all) / 1e6;
    let rival = tokens as f64 / best(|| texts.iter().map(encode).sum()) / 1e6;
    let table = format!(
        "{{ \"texts\": {}, \"tokens\": {tokens}, \"rounds\": {ROUNDS}, \"loadMs\": {:.2}, \"millionTokensPerSecond\": {rate:.2}, \"tokenizersCrate\": {rival:.2} }}",
        texts.len(),
        loading * 1e3,
    );
    println!("{table}");
    let mut arguments = env::args().skip_while(|argument| argument != "--record");
    if let Some(path) = arguments.nth(1) {
        fs::write(path, table + "\n").expect("a file to write the record to");
    }
}

/// The reference texts, each some times over, so that a round takes milliseconds.
fn texts() -> Vec<String> {
    let lines = fs::read_to_string("tests/data/minilm-reference.jsonl").expect("the texts");
    let texts = lines.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("lines of JSON");
        line["text"].as_str().expect("a text").to_owned()
    });
    let texts: Vec<String> = texts.collect();
    let len = texts.len();
    texts.into_iter().cycle().take(20 * len).collect()
}

fn peer(vocab: &str) -> tokenizers::Tokenizer {
    let vocab = WordPiece::read_bytes(vocab.as_bytes()).expect("lines");
    let model = WordPiece::builder().vocab(vocab).build().expect("a model");
    let mut peer = tokenizers::Tokenizer::new(model);
    peer.with_normalizer(Some(BertNormalizer::default()))
        .expect("a normalizer");
    peer.with_pre_tokenizer(Some(BertPreTokenizer));
    let names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    let names = names.map(|name| tokenizers::AddedToken::from(name, true));
    peer.add_special_tokens(names).expect("special tokens");
    peer
}

/// Seconds of the fastest round.
fn best(mut round: impl FnMut() -> usize) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        std::hint::black_box(round());
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}
