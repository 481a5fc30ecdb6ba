//! Many states, in calls of a hundred or all at once.

use framebatch::{Call, Config, Gpu};

use crate::clock::{median_of, time};
use crate::per_call::PerCall;
use crate::{Options, Table, open, states};

pub(crate) const NAME: &str = "gradients";

/// States in all, states a call.
const CASES: [(usize, usize); 5] = [
    (10_000, 100),
    (1_000_000, 10_000),
    (1_000_000, 1_000_000),
    (10_000_000, 10_000),
    (10_000_000, 10_000_000),
];
const RUNS: usize = 15;
const QUICK_RUNS: usize = 5;

/// Measures; on a software adapter only the smallest case, unless `--largest`
/// says otherwise.
pub(crate) fn measure(old: &PerCall, options: &Options) -> Table {
    let default_runs = if options.quick { QUICK_RUNS } else { RUNS };
    let runs = options.runs.unwrap_or(default_runs);
    let gpu = open(Config::default());
    let default = if gpu.info().software {
        CASES[0].0
    } else {
        usize::MAX
    };
    let largest = options.largest.unwrap_or(default);
    println!("\n    states   calls   per call ms   batched ms   ratio   submissions");
    let cases = CASES.into_iter().filter(|(states, _)| *states <= largest);
    let rows: Vec<String> = cases.map(|case| row(old, &gpu, case, runs)).collect();
    if rows.len() < CASES.len() {
        println!("sizes above {largest} were left out");
    }
    Table {
        name: NAME,
        runs,
        rows,
    }
}

fn row(old: &PerCall, gpu: &Gpu, (count, each): (usize, usize), runs: usize) -> String {
    let states = states(count);
    let one_by_one = || -> Vec<Vec<f32>> {
        let calls = states.chunks(each);
        calls.map(|call| old.compute_gradients(call)).collect()
    };
    let together = || -> Vec<Vec<f32>> {
        let calls: Vec<Call<f32>> = states
            .chunks(each)
            .map(|call| gpu.compute_gradients(call))
            .collect();
        let answers = calls.into_iter().map(Call::wait);
        answers.collect::<Result<_, _>>().expect("answered")
    };
    assert!(one_by_one() == together(), "the two ways differ");
    let per_call = median_of(runs, || time(one_by_one));
    let before = gpu.stats();
    let batched = median_of(runs, || time(together));
    let after = gpu.stats();
    let calls = count.div_ceil(each);
    let submits = (after.device.submits - before.device.submits) as f64;
    let submits = submits * calls as f64 / (after.calls - before.calls) as f64;
    let ratio = per_call / batched;
    println!("{count:10} {calls:7} {per_call:13.3} {batched:12.3} {ratio:7.1} {submits:13.1}");
    format!(
        "{{\"states\":{count},\"calls\":{calls},\"perCallMs\":{per_call},\"batchedMs\":{batched},\"ratio\":{ratio},\"submits\":{submits}}}"
    )
}
