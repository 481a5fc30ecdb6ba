//! States that stay on the device and are stepped there: many steps of one large state, or a step
//! of each of many small ones, which have a caller each, and one read at the end.
//!
//! The steps are those of the bench page of resident states. The same is written by hand.

mod by_hand;

use framebatch::{BatchConfig, Call, Config, Error, Gpu, Policy, Preset, Tensor};

use self::by_hand::ByHand;
use crate::clock::{time, times_of};
use crate::report::{BY_HAND, Row, Table};
use crate::{Options, open};

pub(crate) const NAME: &str = "resident";

/// How many states of how many floats take how many steps before the first is read.
struct Steps {
    name: &'static str,
    states: usize,
    floats: usize,
    steps: usize,
}

const WORKLOADS: [Steps; 2] = [
    Steps {
        name: "native-steps-100-of-1m",
        states: 1,
        floats: 1_000_000,
        steps: 100,
    },
    Steps {
        name: "native-steps-of-1000x64",
        states: 1000,
        floats: 64,
        steps: 1,
    },
];
const RUNS: usize = 50;
const QUICK_RUNS: usize = 3;

pub(crate) fn measure(options: &Options) -> Table {
    let default_runs = if options.quick { QUICK_RUNS } else { RUNS };
    let runs = options.runs.unwrap_or(default_runs);
    let largest = options.largest.unwrap_or(usize::MAX);
    let by_hand = ByHand::open();
    let gpu = open(Config {
        batch: BatchConfig {
            policy: Policy::Manual,
            max_wait: None,
            ..Preset::Throughput.config()
        },
        ..Config::default()
    });
    println!("\nworkload                   by hand ms  framebatch ms   times  dispatches");
    let workloads = WORKLOADS.iter().filter(|steps| steps.floats <= largest);
    let rows = workloads.flat_map(|steps| both(steps, &gpu, &by_hand, runs));
    Table {
        about: "steps of relu(s · 0.99 + 0.01) on states that stay on the device: 100 of one large state, or one of each small state by a caller of its own, and one read of one state",
        unit: None,
        rows: rows.collect(),
    }
}

/// Both ways of one workload, which start from equal states and take as many steps.
fn both(workload: &Steps, gpu: &Gpu, by_hand: &ByHand, runs: usize) -> [Row; 2] {
    let floats = floats(workload.states * workload.floats);
    let own = by_hand.keep(&floats, workload.floats);
    let each = floats.chunks(workload.floats);
    let states: Vec<Tensor> = each.map(|floats| tensor(gpu, floats)).collect();
    let run = || stepped(gpu, &states, workload.steps).expect("answered");
    assert!(
        near(&by_hand.run(&own, workload.steps), &run()),
        "they differ"
    );
    let before = gpu.stats().device.dispatches;
    run();
    let dispatches = gpu.stats().device.dispatches - before;
    let least = times_of(runs, || time(|| by_hand.run(&own, workload.steps)));
    let ours = times_of(runs, || time(run));
    let [least_ms, our_ms] = [&least, &ours].map(|times| times.median());
    println!(
        "{:24} {least_ms:12.4} {our_ms:14.4} {:7.2} {dispatches:11}",
        workload.name,
        our_ms / least_ms
    );
    [
        Row::new(workload.name, BY_HAND, least),
        Row::new(workload.name, "framebatch", ours).with("dispatches", dispatches as f64),
    ]
}

/// The first state once all have taken so many steps, sent by one flush.
fn stepped(gpu: &Gpu, states: &[Tensor], steps: usize) -> Result<Vec<f32>, Error> {
    let all = (0..steps).flat_map(|_| states);
    let asked: Vec<Call<f32>> = all.map(|state| step(gpu, state)).collect();
    let first = gpu.read(&states[0]);
    gpu.flush();
    for step in asked {
        step.wait()?;
    }
    first.wait()
}

/// Asks for one step of a state.
fn step(gpu: &Gpu, state: &Tensor) -> Call<f32> {
    gpu.compute_into(state, |batch| {
        let x = batch.tensor(state)?;
        let inflow = batch.number(0.01)?;
        let x = batch.scale(x, 0.99)?;
        let x = batch.add(x, inflow)?;
        batch.relu(x)
    })
}

fn tensor(gpu: &Gpu, floats: &[f32]) -> Tensor {
    let length = u32::try_from(floats.len()).expect("small");
    gpu.tensor(floats, &[length]).expect("there is room")
}

/// Floats from 0 to 2.
fn floats(count: usize) -> Vec<f32> {
    let word = |i: usize| i.wrapping_mul(2_654_435_769) >> 7 & 0xffff;
    (0..count).map(|i| word(i) as f32 / 32_768.0).collect()
}

/// Equal but for a product and a sum that a device may round once less.
fn near(a: &[f32], b: &[f32]) -> bool {
    let close = |a: f32, b: f32| (a - b).abs() <= 1e-4;
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(*a, *b))
}
