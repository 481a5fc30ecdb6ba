//! The synchronous per-call API, by hand, against calls that share batches.
//!
//!     cargo bench -- [batching] [gradients] [chains] [products] [networks]
//!         [resident] [--quick] [--runs N] [--rounds N] [--largest COUNT] [--record FOLDER]
//!
//! `batching`: many callers with one state each, by batch size, threads and
//! preset. `gradients`: many states in calls of every size. `chains`: several
//! operations on large arrays. `products`: of matrices, without transfers.
//! `networks`: many callers of a small network. `resident`: steps of states that stay on the
//! device. A plain program: the binary that cargo builds runs
//! alone on a machine without cargo. Answers are compared before anything is
//! timed, one way is timed after the other, and medians are shown. With `--rounds`
//! all of that is done so often, and a row is of the round in the middle. `--record`
//! keeps the rows in the folder, dated and with the adapter's name.

#![expect(clippy::print_stdout, reason = "it prints its tables")]

mod chains;
mod clock;
mod large;
mod networks;
mod per_call;
mod products;
mod report;
mod resident;
mod small;

use framebatch::{Config, EngineChoice, Gpu, State};
use per_call::PerCall;
use report::{Report, Table};

/// Every table.
const NAMES: [&str; 6] = [
    small::NAME,
    large::NAME,
    chains::NAME,
    products::NAME,
    networks::NAME,
    resident::NAME,
];

/// What was asked on the command line.
#[derive(Default)]
struct Options {
    /// Tables by name; all of them if none is named.
    tables: Vec<String>,
    quick: bool,
    runs: Option<usize>,
    rounds: Option<usize>,
    largest: Option<usize>,
    record: Option<String>,
}

fn main() {
    let options = options();
    let by_hand = PerCall::open();
    let info = open(Config::default()).info();
    println!("{} {}", info.adapter, info.driver);
    let mut report = Report::begin();
    report.quick = options.quick;
    for _ in 0..options.rounds.unwrap_or(1) {
        for table in measure(&by_hand, &options) {
            report.add(table);
        }
    }
    let Some(folder) = &options.record else {
        return;
    };
    let mut what = vec!["native"];
    what.extend(options.tables.iter().map(String::as_str));
    report.write(folder, &info, &what.join("-"));
}

/// One round of the tables that were asked for.
fn measure(by_hand: &PerCall, options: &Options) -> Vec<Table> {
    let wanted = |name: &str| options.tables.is_empty() || options.tables.iter().any(|t| t == name);
    let mut tables = Vec::new();
    if wanted(small::NAME) {
        tables.push(small::measure(by_hand, options));
    }
    if wanted(large::NAME) {
        tables.push(large::measure(by_hand, options));
    }
    if wanted(chains::NAME) {
        tables.push(chains::measure(options));
    }
    if wanted(products::NAME) {
        tables.push(products::measure(options));
    }
    if wanted(networks::NAME) {
        tables.push(networks::measure(options));
    }
    if wanted(resident::NAME) {
        tables.push(resident::measure(options));
    }
    tables
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
            "--rounds" => options.rounds = Some(value().parse().expect("a number of rounds")),
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
