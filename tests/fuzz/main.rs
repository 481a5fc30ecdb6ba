//! Files and formulas as strangers might write them, given to the native face.
//!
//! Each is refused with an error of the crate or taken: no panic, no hang, and no more
//! memory than the bytes explain. What becomes of a kept input stands in
//! `tests/corpora/verdicts.json`, which the browser's face is held to as well
//! (`pkg-template/test/fuzz.test.mjs`).
//!
//! Inputs are mutated by their structure. There is no coverage to go by, so an input is
//! kept for further mutation if the face says something new of it. `FUZZ_SECONDS` is how
//! long each target goes on, `FUZZ_SEED` where it begins, and with `FUZZ_KEEP=1` inputs
//! of which something new was said go to the corpora.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]
#![allow(
    clippy::disallowed_methods,
    reason = "targets go on for a time, and an input that hangs is found by one"
)]
#![allow(clippy::print_stdout, reason = "`make long` records what was tried")]

mod corpora;
mod memory;
mod mutation;
mod targets;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use corpora::{Corpus, Sample};
use mutation::Mutator;
use targets::{Bench, TARGETS, Target};

/// Inputs of a target, unless there is a time to fill.
const FEW: usize = 300;

/// The seed of an ordinary run, so that it is the same each time.
const SEED: u64 = 20_261_123;

/// An input may take so long before the run counts as hanging.
const HANGS: Duration = Duration::from_secs(60);

/// Inputs that lie beside others and that mutation begins with, at most.
const MOST_KEPT: usize = 1024;

/// Bytes of those: long inputs say little that short ones do not, and take their time.
const MOST_BYTES: usize = 8192;

/// Every how many inputs one is a sample for the browser's face.
const SAMPLED: usize = 64;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn kept_inputs_get_their_verdicts() {
    let bench = Bench::new();
    let corpora: Vec<Corpus> = TARGETS.iter().map(Corpus::read).collect();
    let mut verdicts = corpora::Verdicts::default();
    for (target, corpus) in TARGETS.iter().zip(&corpora) {
        assert!(!corpus.inputs.is_empty(), "{} has no corpus", target.name);
        for (name, input) in &corpus.inputs {
            let (verdict, _) = judge(&bench, target, input);
            verdicts.set(target, name, verdict);
        }
    }
    if setting("FUZZ_KEEP") == Some(1) {
        verdicts.write();
    }
    let known = corpora::Verdicts::read();
    assert_eq!(verdicts, known, "FUZZ_KEEP=1 writes them anew");
}

#[test]
fn mutated_inputs_are_taken_or_refused() {
    let bench = Bench::new();
    let only = std::env::var("FUZZ_TARGETS").unwrap_or_default();
    for target in &TARGETS {
        if only.is_empty() || only.split(',').any(|name| name == target.name) {
            fuzz(&bench, target);
        }
    }
}

/// What the face says of an input, in a word and in a sentence.
fn judge(bench: &Bench, target: &Target, input: &[u8]) -> (&'static str, String) {
    let before = memory::reset();
    let judged = catch_unwind(AssertUnwindSafe(|| (target.judge)(bench, input)));
    let taken = memory::peak() - before;
    let most = (48 << 20) + 512 * input.len();
    let problem = match judged {
        Ok(said) if taken <= most => return said,
        Ok(_) => format!("it took {taken} bytes"),
        Err(_) => "it panicked".into(),
    };
    let path = corpora::keep_finding(target, input);
    panic!("{}: {problem}: {path}", target.name);
}

fn fuzz(bench: &Bench, target: &'static Target) {
    let seconds = setting("FUZZ_SECONDS");
    let seed = setting("FUZZ_SEED").unwrap_or(SEED);
    let mut mutator = Mutator::new(seed ^ u64::from(target.name.as_bytes()[0]), target.form);
    let mut corpus = Corpus::read(target);
    let mut inputs: Vec<Vec<u8>> = corpus.inputs.values().cloned().collect();
    let mut heard: HashSet<String> = HashSet::new();
    for input in &inputs {
        heard.insert(class(&judge(bench, target, input).1));
    }
    let watched = watch(target);
    let start = Instant::now();
    let mut samples = Vec::new();
    let (mut tried, mut new) = (0, 0);
    let goes_on = |tried: usize| match seconds {
        Some(seconds) => start.elapsed() < Duration::from_secs(seconds),
        None => tried < FEW,
    };
    while goes_on(tried) {
        let input = mutator.mutate(&inputs);
        *watched.lock().unwrap() = Some((Instant::now(), input.clone()));
        let (verdict, said) = judge(bench, target, &input);
        tried += 1;
        let is_new = heard.insert(class(&said));
        if is_new || tried % SAMPLED == 0 {
            samples.push(Sample {
                verdict,
                input: input.clone(),
            });
        }
        if is_new && inputs.len() < MOST_KEPT && input.len() <= MOST_BYTES {
            new += 1;
            if setting("FUZZ_KEEP") == Some(1) {
                corpus.add(&input);
            }
            inputs.push(input);
        }
    }
    *watched.lock().unwrap() = None;
    println!("fuzzed {}: {tried} inputs, {new} new answers", target.name);
    if seconds.is_some() {
        corpora::write_samples(target, &samples);
    }
}

/// A sentence without what it quotes: two of one class say the same of two inputs.
fn class(said: &str) -> String {
    let mut class = String::new();
    let mut depth = 0_u32;
    let mut is_quoted = false;
    for letter in said.chars().take(400) {
        match letter {
            '"' => is_quoted = !is_quoted,
            '{' | '[' if !is_quoted => depth += 1,
            '}' | ']' if !is_quoted => depth = depth.saturating_sub(1),
            _ if is_quoted || depth > 0 => {}
            '0'..='9' | '-' | '.' if class.ends_with('0') => {}
            '0'..='9' => class.push('0'),
            letter => class.push(letter),
        }
    }
    class
}

type Watched = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// Ends the process if an input takes too long, and says which.
fn watch(target: &'static Target) -> Watched {
    let watched = Watched::default();
    let weak = Arc::downgrade(&watched);
    std::thread::spawn(move || {
        while let Some(watched) = weak.upgrade() {
            let late = match &*watched.lock().unwrap() {
                Some((since, input)) if since.elapsed() > HANGS => Some(input.clone()),
                _ => None,
            };
            drop(watched);
            if let Some(input) = late {
                let path = corpora::keep_finding(target, &input);
                eprintln!("{}: it hangs: {path}", target.name);
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    watched
}
