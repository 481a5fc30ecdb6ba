//! Embeds the paragraphs of a text file and finds those that mean what you ask for.
//!
//!     cargo run --release --example embed_file MODEL FILE QUESTION [gpu|cpu|all]
//!
//! MODEL is a Hugging Face folder, such as `models/minilm` after `make model`. `all`
//! is every GPU of the machine.

#![expect(clippy::print_stdout, reason = "an example shows what happened")]

use std::time::Instant;

use framebatch::{
    Config, Embedder, EmbedderOptions, EngineChoice, Error, Filter, Gpu, Gpus, IndexConfig,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, file, question, engine @ ..] = &arguments[..] else {
        return Err("give a model's folder, a text file and a question".into());
    };
    let text = std::fs::read_to_string(file)?;
    let paragraphs: Vec<&str> = text.split("\n\n").map(str::trim).collect();
    let paragraphs: Vec<&str> = paragraphs.into_iter().filter(|p| !p.is_empty()).collect();
    if paragraphs.is_empty() {
        return Err(format!("{file} has no paragraphs; give a file with text").into());
    }

    let gpus = open(engine.first())?;
    let embedder = Embedder::open(&gpus, model.as_str(), EmbedderOptions::default())?;
    let gpu = &gpus.as_ref()[0];
    let count = gpus.as_ref().len();
    println!("running on {count} of {}, {embedder:?}", gpu.info().adapter);

    let passages = embedder.with_prompt(embedder.prompt("passage").unwrap_or_default());
    let start = start();
    let mut vectors = Vec::new();
    for vector in passages.embed_many(&paragraphs).wait() {
        vectors.extend(vector?); // Many paragraphs are on their way at once.
    }
    let ms = start.elapsed().as_millis();
    let batches: u64 = gpus.stats().iter().map(|stats| stats.batches).sum();
    println!(
        "{} paragraphs in {ms} ms and {batches} batches",
        paragraphs.len()
    );

    let config = IndexConfig::new(embedder.config().dimensions());
    let index = gpu.index(&vectors, config)?;
    let queries = embedder.with_prompt(embedder.prompt("query").unwrap_or_default());
    let query = queries.embed(question).wait()?;
    let most = paragraphs.len().min(3);
    let hits = index.search(&query, most, Filter::All).wait()?;
    for hit in hits.iter().flatten() {
        let paragraph = paragraphs[usize::try_from(hit.id)?];
        println!("\n{:.3}  {paragraph}", hit.score);
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a program may look at the clock")]
fn start() -> Instant {
    Instant::now()
}

/// By default a GPU in hardware if there is one; a software adapter if asked.
fn open(engine: Option<&String>) -> Result<Gpus, Error> {
    let engine = match engine.map(String::as_str) {
        Some("all") => return Gpus::open_blocking(Config::default()),
        Some("gpu") => EngineChoice::Gpu,
        Some("cpu") => EngineChoice::Cpu,
        _ => EngineChoice::Auto,
    };
    let config = Config {
        engine,
        ..Config::default()
    };
    Gpus::new([pollster::block_on(Gpu::open(config))?])
}
