//! Searches of an index, beside a plain loop on one core.
//!
//!     cargo bench --bench search -- [--vectors N] [--dim N] [--dtype f32|f16|int8] [--engine gpu|cpu]
//!         [--rounds N] [--record FOLDER]
//!
//! Random vectors, the 10 most like a query by cosine. What is found for some of
//! the queries is held to a sort of all scores in float64, within what rounding and
//! packing cost: 10⁻⁵ for f32, 0.002 for f16, 0.02 for int8. Then one query
//! is timed, and 64 that wait together; medians, with the queries' way to the device
//! and the results' way back. The plain loop has 32-bit floats. `--record` keeps the times
//! in the folder.

#![expect(clippy::print_stdout, reason = "it prints its table")]

mod clock;
mod report;

use std::env;

use clock::{Times, time, times_of};
use framebatch::tensor::Packing;
use framebatch::{Blocking, Config, EngineChoice, Filter, Index, IndexConfig};
use report::{Report, Row, Table};

/// Results of a query.
const K: usize = 10;
/// Queries that wait together.
const MANY: usize = 64;
/// Queries whose results are held to a sort.
const CHECKED: usize = 3;
/// Vectors added at once, as one does that reads them from a file.
const PART: usize = 50_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dim = option("--dim").map_or(Ok(384), |dim| dim.parse::<u32>())?;
    let count = option("--vectors").map_or(Ok(100_000), |count| count.parse::<usize>())?;
    let rounds = option("--rounds").map_or(Ok(20), |rounds| rounds.parse::<usize>())?;
    let dtype = option("--dtype").unwrap_or_else(|| "f32".into());
    let (packing, off) = match dtype.as_str() {
        "f32" => (None, 1e-5),
        "f16" => (Some(Packing::F16), 2e-3),
        "int8" => (Some(Packing::Int8), 2e-2),
        other => return Err(format!("--dtype is {other}; give f32, f16 or int8").into()),
    };
    let (engine, system) = match option("--engine").as_deref() {
        Some("cpu") => (EngineChoice::Cpu, "framebatch-cpu"),
        _ => (EngineChoice::Gpu, "framebatch"),
    };
    let mut report = Report::begin();
    let gpu = Blocking::open(Config {
        engine,
        ..Config::default()
    })?;
    let mut random = Random(1);
    let width = dim as usize;
    let vectors = random.unit_vectors(count, width);
    let queries = random.unit_vectors(MANY, width);
    let config = IndexConfig {
        packing,
        ..IndexConfig::new(dim)
    };

    let index = gpu.index(&[], config)?;
    let added = time(|| {
        for part in vectors.chunks(PART * width) {
            index.add(part).expect("there is room");
        }
    });
    let mut found = Vec::new();
    let first = time(|| {
        found = index
            .search(&queries, K, Filter::All)
            .wait()
            .expect("found")
    });
    let checked = queries.chunks_exact(width).zip(&found).take(CHECKED);
    for (query, hits) in checked {
        let scores = scores(&vectors, query);
        let mut best: Vec<f64> = scores.clone();
        best.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(hits.len(), K);
        for (hit, best) in hits.iter().zip(&best) {
            // Vectors whose scores are that close may change places.
            let own = scores[hit.id as usize];
            assert!((own - best).abs() <= off, "{hit:?}: {own}, not {best}");
            assert!((own - f64::from(hit.score)).abs() <= off, "{hit:?}: {own}");
        }
    }

    let one = times_of(rounds, || time(|| search(&index, &queries[..width])));
    let many = times_of(rounds, || time(|| search(&index, &queries)));
    let plain = times_of(3, || time(|| plain(&vectors, &queries[..width])));
    println!(
        "{}: {count} vectors of {dim}, {dtype}, the {K} best: added in {added:.0} ms, first search {first:.1} ms, one query {:.3} ms, {MANY} queries {:.3} ms, plain loop {:.2} ms",
        gpu.info().adapter,
        one.median(),
        many.median(),
        plain.median(),
    );
    if let Some(folder) = option("--record") {
        let rows = |queries: usize, ways: Vec<(&str, Times)>| -> Vec<Row> {
            let workload = format!("search-{count}x{dim}-{dtype}-{queries}");
            let rows = ways.into_iter();
            rows.map(|(system, times)| Row::new(&workload, system, times))
                .collect()
        };
        let mut all = rows(1, vec![(system, one), ("plain-loop", plain)]);
        all.extend(rows(MANY, vec![(system, many)]));
        report.add(Table {
            about: "so many queries for the 10 vectors with the largest cosine",
            unit: None,
            rows: all,
        });
        report.write(&folder, &gpu.info(), &format!("native-search-{dtype}"));
    }
    Ok(())
}

fn search(index: &Index, queries: &[f32]) -> u32 {
    let found = index.search(queries, K, Filter::All).wait();
    found.expect("answered")[0][0].id
}

/// Every score in float64.
fn scores(vectors: &[f32], query: &[f32]) -> Vec<f64> {
    let score = |vector: &[f32]| -> f64 {
        let products = vector.iter().zip(query);
        products.map(|(x, q)| f64::from(*x) * f64::from(*q)).sum()
    };
    vectors.chunks_exact(query.len()).map(score).collect()
}

/// What one writes first: a dot product a vector, and the best so far in a short list.
fn plain(vectors: &[f32], query: &[f32]) -> u32 {
    let mut best: Vec<(f32, u32)> = Vec::with_capacity(K + 1);
    for (id, vector) in (0..).zip(vectors.chunks_exact(query.len())) {
        let mut sums = [0.0_f32; 16];
        for (x, q) in vector.chunks(16).zip(query.chunks(16)) {
            for (sum, (x, q)) in sums.iter_mut().zip(x.iter().zip(q)) {
                *sum += x * q;
            }
        }
        let score: f32 = sums.iter().sum();
        if best.len() == K && best[K - 1].0 >= score {
            continue;
        }
        let at = best.partition_point(|(other, _)| *other >= score);
        best.insert(at, (score, id));
        best.truncate(K);
    }
    best[0].1
}

/// What follows a name on the command line.
fn option(name: &str) -> Option<String> {
    let mut arguments = env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

/// Numbers that look random (xorshift64*).
struct Random(u64);

impl Random {
    /// From −1 to 1.
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40;
        bits as f32 / (1 << 23) as f32 - 1.0
    }

    fn unit_vectors(&mut self, count: usize, width: usize) -> Vec<f32> {
        let mut floats: Vec<f32> = (0..count * width).map(|_| self.next()).collect();
        for vector in floats.chunks_exact_mut(width) {
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= length);
        }
        floats
    }
}
