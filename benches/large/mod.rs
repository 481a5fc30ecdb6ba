//! Many states, in calls of a hundred or all at once.

use framebatch::{Call, Config, Gpu};

use crate::clock::{time, times_of};
use crate::per_call::PerCall;
use crate::report::{BY_HAND, Row, Table};
use crate::{Options, open, states};

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
    println!(
        "\n    states   calls   per call ms   by hand ms   batched ms   ratio   own memory ms   ratio   submissions"
    );
    let cases = CASES.into_iter().filter(|(states, _)| *states <= largest);
    let rows: Vec<Row> = cases
        .flat_map(|(count, each)| rows(old, &gpu, count, each, runs))
        .collect();
    if CASES.iter().any(|(states, _)| *states > largest) {
        println!("sizes above {largest} were left out");
    }
    Table {
        about: "gradients of so many states in calls of some, all made before the first answer",
        unit: None,
        rows,
    }
}

fn rows(old: &PerCall, gpu: &Gpu, count: usize, each: usize, runs: usize) -> Vec<Row> {
    let workload = format!("gradients-{count}-by-{each}");
    let states = states(count);
    let one_by_one = || -> Vec<Vec<f32>> {
        let calls = states.chunks(each);
        calls.map(|call| old.compute_gradients(call)).collect()
    };
    let by_hand = || old.compute_gradients_of(states.chunks(each));
    let together = || -> Vec<Vec<f32>> {
        let calls: Vec<Call<f32>> = states
            .chunks(each)
            .map(|call| gpu.compute_gradients(call))
            .collect();
        let answers = calls.into_iter().map(Call::wait);
        answers.collect::<Result<_, _>>().expect("answered")
    };
    // Each result lies where the same call's result of the run before lay.
    let mut memory: Vec<Vec<f32>> = Vec::new();
    let mut into_own_memory = || {
        let mut lent = std::mem::take(&mut memory).into_iter();
        let calls: Vec<Call<f32>> = states
            .chunks(each)
            .map(|call| {
                let lent = lent.next().unwrap_or_default();
                gpu.compute_gradients(call).with_memory(lent)
            })
            .collect();
        let answers = calls.into_iter().map(Call::wait);
        memory = answers.collect::<Result<_, _>>().expect("answered");
    };
    let expected = one_by_one();
    assert!(expected == together(), "the two ways differ");
    assert!(expected == by_hand(), "one batch answers otherwise");
    drop(expected);
    let per_call = times_of(runs, || time(one_by_one));
    let one_batch = times_of(runs, || time(by_hand));
    let before = gpu.stats();
    let batched = times_of(runs, || time(together));
    let after = gpu.stats();
    into_own_memory();
    let owned = times_of(runs, || time(&mut into_own_memory));
    assert!(one_by_one() == memory, "lent memory holds something else");
    let calls = count.div_ceil(each);
    let submits = (after.device.submits - before.device.submits) as f64;
    let submits = submits * calls as f64 / (after.calls - before.calls) as f64;
    let medians = [&per_call, &one_batch, &batched, &owned].map(|times| times.median());
    let [alone, hand, ours, own] = medians;
    let ratios = [alone / ours, alone / own];
    println!(
        "{count:10} {calls:7} {alone:13.3} {hand:12.3} {ours:12.3} {:7.1} {own:15.3} {:7.1} {submits:13.1}",
        ratios[0], ratios[1]
    );
    vec![
        Row::new(&workload, "per-call", per_call),
        Row::new(&workload, BY_HAND, one_batch),
        Row::new(&workload, "framebatch", batched).with("submits", submits),
        Row::new(&workload, "framebatch-own-memory", owned),
    ]
}
