//! The synchronous per-call API, by hand, against calls that share batches.
//!
//!     cargo bench -- [batching] [gradients] [chains] [products] [networks] [--quick] [--runs N] [--largest COUNT] [--record FOLDER]
//!
//! `batching`: many callers with one state each, by batch size, threads and
//! preset. `gradients`: many states in calls of every size. `chains`: several
//! operations on large arrays. `products`: of matrices, without transfers.
//! `networks`: many callers of a small network. A plain program: the binary that cargo builds runs
//! alone on a machine without cargo. Answers are compared before anything is
//! timed, one way is timed after the other, and medians are shown. `--record`
//! keeps them in the folder, dated and with the adapter's name.

#![expect(clippy::print_stdout, reason = "it prints its tables")]

mod chains;
mod clock;
mod large;
mod networks;
mod per_call;
mod products;
mod small;

use framebatch::{Config, EngineChoice, Gpu, State};
use per_call::PerCall;

/// Every table.
const NAMES: [&str; 5] = [
    small::NAME,
    large::NAME,
    chains::NAME,
    products::NAME,
    networks::NAME,
];

/// What was asked on the command line.
#[derive(Default)]
struct Options {
    /// Tables by name; all of them if none is named.
    tables: Vec<String>,
    quick: bool,
    runs: Option<usize>,
    largest: Option<usize>,
    record: Option<String>,
}

/// A table's name, its rows as JSON, and how many runs each is the median of.
struct Table {
    name: &'static str,
    runs: usize,
    rows: Vec<String>,
}

fn main() {
    let options = options();
    let old = PerCall::open();
    let info = open(Config::default()).info();
    println!("{} {}", info.adapter, info.driver);
    let wanted = |name: &str| options.tables.is_empty() || options.tables.iter().any(|t| t == name);
    let mut tables = Vec::new();
    if wanted(small::NAME) {
        tables.push(small::measure(&old, &options));
    }
    if wanted(large::NAME) {
        tables.push(large::measure(&old, &options));
    }
    if wanted(chains::NAME) {
        tables.push(chains::measure(&options));
    }
    if wanted(products::NAME) {
        tables.push(products::measure(&options));
    }
    if wanted(networks::NAME) {
        tables.push(networks::measure(&options));
    }
    let Some(folder) = options.record else {
        return;
    };
    for table in tables {
        let path = format!(
            "{folder}/{}-{}-native-{}.json",
            clock::today(),
            slug(&info.adapter),
            table.name
        );
        let text = format!(
            "{{\"adapter\":{:?},\"driver\":{:?},\"runs\":{},\"rows\":[\n{}\n]}}\n",
            info.adapter,
            info.driver,
            table.runs,
            table.rows.join(",\n")
        );
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
        println!("record: {path}");
    }
}

fn options() -> Options {
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let mut value = || {
            args.next()
                .unwrap_or_else(|| panic!("{name} needs a value"))
        };
        match name.as_str() {
            "--quick" => options.quick = true,
            "--largest" => options.largest = Some(value().parse().expect("a number")),
            "--runs" => options.runs = Some(value().parse().expect("a number of runs")),
            "--record" => options.record = Some(value()),
            "--bench" => {} // Cargo says so to every benchmark.
            table if NAMES.contains(&table) => options.tables.push(name),
            other => panic!("unknown option {other}"),
        }
    }
    options
}

/// A session on the GPU.
fn open(config: Config) -> Gpu {
    let config = Config {
        engine: EngineChoice::Gpu,
        ..config
    };
    pollster::block_on(Gpu::open(config)).expect("a GPU")
}

/// States with every byte in them.
fn states(count: usize) -> Vec<State> {
    let layer = |i: usize| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()[0];
    (0..count)
        .map(|row| State(std::array::from_fn(|k| layer(16 * row + k))))
        .collect()
}

/// Letters and digits of a name, the rest as single dashes.
fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}
