//! Operations on whole arrays: one after the other through the synchronous API,
//! where each result comes back before the next, and recorded as one batch.

use framebatch::{Blocking, Config, Error};

use crate::clock::{Times, time, times_of};
use crate::report::{Row, Table};
use crate::{Options, open};

pub(crate) const NAME: &str = "chains";

/// Floats of each array.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const RUNS: usize = 15;
const QUICK_RUNS: usize = 5;

/// The arrays that go in.
struct Arrays {
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<f32>,
}

type Way = fn(&Blocking, &Arrays) -> Result<Vec<f32>, Error>;

/// A chain's name, and the two ways to compute it.
const CHAINS: [(&str, Way, Way); 2] = [
    (
        "relu scale add",
        |gpu, Arrays { x, y, .. }| {
            let a = gpu.relu(x)?;
            let a = gpu.scale(&a, 2.0)?;
            gpu.add(&a, y)
        },
        |gpu, Arrays { x, y, .. }| {
            let mut batch = gpu.batch();
            let [x, y] = [x, y].map(|data| batch.upload(data));
            let a = batch.relu(x)?;
            let a = batch.scale(a, 2.0)?;
            let a = batch.add(a, y)?;
            batch.execute()?;
            batch.read(a)
        },
    ),
    (
        "relu scale add mul gelu",
        |gpu, Arrays { x, y, z }| {
            let a = gpu.relu(x)?;
            let a = gpu.scale(&a, 2.0)?;
            let a = gpu.add(&a, y)?;
            let a = gpu.mul(&a, z)?;
            gpu.gelu(&a)
        },
        |gpu, Arrays { x, y, z }| {
            let mut batch = gpu.batch();
            let [x, y, z] = [x, y, z].map(|data| batch.upload(data));
            let a = batch.relu(x)?;
            let a = batch.scale(a, 2.0)?;
            let a = batch.add(a, y)?;
            let a = batch.mul(a, z)?;
            let a = batch.gelu(a)?;
            batch.execute()?;
            batch.read(a)
        },
    ),
];

pub(crate) fn measure(options: &Options) -> Table {
    let default_runs = if options.quick { QUICK_RUNS } else { RUNS };
    let runs = options.runs.unwrap_or(default_runs);
    let gpu = open(Config::default()).blocking();
    let largest = options.largest.unwrap_or(usize::MAX);
    println!(
        "\n   floats  chain                     one by one ms  batch ms  less time %  transfers  of them"
    );
    let mut rows = Vec::new();
    for size in SIZES.into_iter().filter(|size| *size <= largest) {
        let arrays = arrays(size);
        for (name, one_by_one, recorded) in CHAINS {
            let answers = [one_by_one, recorded].map(|way| way(&gpu, &arrays).expect("answered"));
            assert!(near(&answers[0], &answers[1]), "{name}: the two differ");
            let old = way(&gpu, one_by_one, &arrays, runs);
            let new = way(&gpu, recorded, &arrays, runs);
            rows.extend(both(size, name, old, new));
        }
    }
    Table {
        about: "a chain over arrays of so many floats, each operation by itself or all in one batch",
        unit: None,
        rows,
    }
}

/// What a way took.
struct Took {
    times: Times,
    /// Uploads and read-backs of one run.
    transfers: u64,
    bytes: u64,
}

fn way(gpu: &Blocking, way: Way, arrays: &Arrays, runs: usize) -> Took {
    let run = || way(gpu, arrays).expect("answered");
    let before = gpu.stats().device;
    run();
    let after = gpu.stats().device;
    Took {
        times: times_of(runs, || time(run)),
        transfers: after.uploads + after.readbacks - before.uploads - before.readbacks,
        bytes: after.bytes_up + after.bytes_down - before.bytes_up - before.bytes_down,
    }
}

fn both(size: usize, name: &str, old: Took, new: Took) -> [Row; 2] {
    let [old_ms, new_ms] = [&old, &new].map(|took| took.times.median());
    let less = 100.0 * (1.0 - new_ms / old_ms);
    println!(
        "{size:9}  {name:24} {old_ms:14.3} {new_ms:9.3} {less:12.0} {:10} {:8}",
        old.transfers, new.transfers
    );
    let workload = format!("chain-{}-{size}", name.replace(' ', "-"));
    [("one-by-one", old), ("batch", new)].map(|(way, took)| {
        Row::new(&workload, &format!("framebatch-{way}"), took.times)
            .with("transfers", took.transfers as f64)
            .with("bytes", took.bytes as f64)
    })
}

/// Floats of both signs, different in each array.
fn arrays(size: usize) -> Arrays {
    let array = |seed: usize| -> Vec<f32> {
        let word = |i: usize| (i.wrapping_mul(2_654_435_769) + seed) >> 7 & 0xffff;
        (0..size).map(|i| word(i) as f32 / 8192.0 - 4.0).collect()
    };
    Arrays {
        x: array(1),
        y: array(40_503),
        z: array(77_777),
    }
}

/// Equal but for a product and a sum that a device may round once less, and
/// what gelu makes of that.
fn near(a: &[f32], b: &[f32]) -> bool {
    let close = |a: f32, b: f32| (a - b).abs() <= 1e-5 * (1.0 + a.abs());
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(*a, *b))
}
