//! Merging never changes a result: on one device a call gives the same bits
//! alone and beside any neighbors, and they share one submission.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use std::array::from_fn;
use std::cell::Cell;
use std::collections::BTreeSet;

use framebatch::device::Engine;
use framebatch::{Call, EngineChoice, Gpu, Mode, State, Stats};
use pollster::block_on;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use samples::Samples;

/// A call to be made, small enough to print.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ask {
    op: Op,
    rows: usize,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Op {
    Lerp,
    LerpEach { width: u32 },
    Slerp,
    SlerpEach,
    NlerpEach,
    Gradients,
    StatesLerp,
    StatesSlerpEach,
    Bezier,
    BezierEach { width: u32 },
    Sequence { steps: u32 },
    StatesBezier,
    StatesBezierEach,
    Distance,
    GeodesicDistance,
    Descend,
    DescendEach,
    Field,
}

const OPS: [Op; 21] = [
    Op::Lerp,
    Op::LerpEach { width: 1 },
    Op::LerpEach { width: 3 },
    Op::LerpEach { width: 7 },
    Op::Slerp,
    Op::SlerpEach,
    Op::NlerpEach,
    Op::Gradients,
    Op::StatesLerp,
    Op::StatesSlerpEach,
    Op::Bezier,
    Op::BezierEach { width: 3 },
    Op::Sequence { steps: 2 },
    Op::Sequence { steps: 5 },
    Op::StatesBezier,
    Op::StatesBezierEach,
    Op::Distance,
    Op::GeodesicDistance,
    Op::Descend,
    Op::DescendEach,
    Op::Field,
];

enum Asked {
    Floats(Call<f32>),
    States(Call<State>),
}

impl Ask {
    fn make(self, gpu: &Gpu) -> Asked {
        let mut samples = Samples(self.seed);
        let rows = self.rows;
        let t = samples.unit();
        let each = samples.units(rows);
        match self.op {
            Op::Lerp => {
                let (a, b) = (samples.floats(rows), samples.floats(rows));
                Asked::Floats(gpu.lerp(&a, &b, t))
            }
            Op::LerpEach { width } => {
                let length = rows * width as usize;
                let (a, b) = (samples.floats(length), samples.floats(length));
                Asked::Floats(gpu.lerp_items(&a, &b, &each, width))
            }
            Op::Slerp => {
                let (a, b) = (samples.quaternions(rows), samples.quaternions(rows));
                Asked::Floats(gpu.slerp(&a, &b, t))
            }
            Op::SlerpEach => {
                let (a, b) = (samples.quaternions(rows), samples.quaternions(rows));
                Asked::Floats(gpu.slerp(&a, &b, &each))
            }
            Op::NlerpEach => {
                let (a, b) = (samples.quaternions(rows), samples.quaternions(rows));
                Asked::Floats(gpu.nlerp(&a, &b, &each))
            }
            Op::Gradients => Asked::Floats(gpu.compute_gradients(&samples.states(rows))),
            Op::StatesLerp => {
                let (a, b) = (samples.states(rows), samples.states(rows));
                Asked::States(gpu.interpolate(&a, &b, t, Mode::Lerp))
            }
            Op::StatesSlerpEach => {
                let (a, b) = (samples.states(rows), samples.states(rows));
                Asked::States(gpu.interpolate(&a, &b, &each, Mode::Slerp))
            }
            Op::Bezier => {
                let points: [_; 4] = from_fn(|_| samples.floats(rows));
                Asked::Floats(gpu.bezier(points.each_ref().map(Vec::as_slice), t))
            }
            Op::BezierEach { width } => {
                let points: [_; 4] = from_fn(|_| samples.floats(rows * width as usize));
                let slices = points.each_ref().map(Vec::as_slice);
                Asked::Floats(gpu.bezier_items(slices, &each, width))
            }
            Op::Sequence { steps } => {
                let (a, b) = (samples.states(rows), samples.states(rows));
                Asked::States(gpu.sequence(&a, &b, steps, Mode::Slerp))
            }
            Op::StatesBezier => {
                let points: [_; 4] = from_fn(|_| samples.states(rows));
                let slices = points.each_ref().map(Vec::as_slice);
                Asked::States(gpu.interpolate_bezier(slices, t))
            }
            Op::StatesBezierEach => {
                let points: [_; 4] = from_fn(|_| samples.states(rows));
                let slices = points.each_ref().map(Vec::as_slice);
                Asked::States(gpu.interpolate_bezier(slices, &each))
            }
            Op::Distance => {
                Asked::Floats(gpu.distance(&samples.states(rows), &samples.states(rows)))
            }
            Op::GeodesicDistance => {
                Asked::Floats(gpu.geodesic_distance(&samples.states(rows), &samples.states(rows)))
            }
            Op::Descend => Asked::States(gpu.descend(&samples.states(rows), t * 9.0)),
            Op::Field => {
                let field = "rho * sin(theta) + layer".parse().expect("a formula");
                Asked::Floats(gpu.compute_field_gradients(&samples.states(rows), &field))
            }
            Op::DescendEach => Asked::States(gpu.descend(&samples.states(rows), &each)),
        }
    }
}

impl Asked {
    /// The bits of the result.
    fn bits(self) -> Vec<u8> {
        match self {
            Asked::Floats(call) => bytemuck::cast_slice(&call.wait().expect("answered")).to_vec(),
            Asked::States(call) => bytemuck::cast_slice(&call.wait().expect("answered")).to_vec(),
        }
    }
}

/// Makes the calls in one batch.
fn batch(gpu: &Gpu, asks: &[Ask]) -> Vec<Vec<u8>> {
    let asked: Vec<Asked> = asks.iter().map(|ask| ask.make(gpu)).collect();
    gpu.flush();
    asked.into_iter().map(Asked::bits).collect()
}

fn ask(op: impl Strategy<Value = Op>) -> impl Strategy<Value = Ask> {
    // Short and long: within a workgroup, at its edges, over several.
    let rows = prop_oneof![1..20_usize, 60..70_usize, 1..600_usize];
    (op, rows, any::<u64>()).prop_map(|(op, rows, seed)| Ask { op, rows, seed })
}

fn any_op() -> impl Strategy<Value = Op> {
    prop::sample::select(OPS.to_vec())
}

/// Batches whose first call is `op`: every call of each against itself alone.
fn check(gpu: &Gpu, op: Op) {
    let mut runner = TestRunner::new(Config {
        cases: 4,
        failure_persistence: None,
        ..Config::default()
    });
    let batches = (ask(Just(op)), prop::collection::vec(ask(any_op()), 1..=7));
    let result = runner.run(&batches, |(first, neighbors)| {
        let asks: Vec<Ask> = std::iter::once(first).chain(neighbors).collect();
        // What is compiled first would go by itself.
        let cold = |gpu: &Gpu| asks.iter().for_each(|ask| drop(ask.make(gpu)));
        block_on(gpu.warmup(cold)).expect("every kernel compiles");
        let before = gpu.stats();
        let beside = batch(gpu, &asks);
        let counts = since(&before, &gpu.stats());
        for (ask, beside) in asks.iter().zip(beside) {
            let alone = batch(gpu, &[*ask]).remove(0);
            prop_assert!(alone == beside, "the bits of {ask:?} differ");
        }
        let structures: BTreeSet<Op> = asks.iter().map(|ask| ask.op).collect();
        let expected = match gpu.info().engine {
            Engine::Gpu => (1, 1, 1, structures.len() as u64),
            // The CPU has nothing to submit or to read back.
            Engine::Cpu => (1, 0, 0, 0),
        };
        prop_assert_eq!(counts, expected);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{op:?} on {:?}: {error}", gpu.info().engine));
}

/// Batches, submissions, read-backs and dispatches between two moments.
fn since(before: &Stats, after: &Stats) -> (u64, u64, u64, u64) {
    (
        after.batches - before.batches,
        after.device.submits - before.device.submits,
        after.device.readbacks - before.device.readbacks,
        after.device.dispatches - before.device.dispatches,
    )
}

#[test]
fn every_op_gives_the_same_bits_alone_and_beside_neighbors() {
    for gpu in engines::both_manual() {
        for op in OPS {
            check(&gpu, op);
        }
    }
}

#[test]
fn a_call_gives_the_bits_of_the_device_that_it_asks_for() {
    let [cpu, gpu] = engines::both_manual();
    let mut runner = TestRunner::new(Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    });
    let asks = prop::collection::vec((ask(any_op()), any::<bool>()), 2..12);
    let result = runner.run(&asks, |asks| {
        let before = gpu.stats();
        let beside: Vec<Asked> = asks
            .iter()
            .map(|(ask, leaves)| match leaves {
                true => ask.make(&gpu.on(EngineChoice::Cpu)),
                false => ask.make(&gpu),
            })
            .collect();
        gpu.flush();
        let left = asks.iter().filter(|(_, leaves)| *leaves).count() as u64;
        for ((ask, leaves), beside) in asks.iter().zip(beside) {
            let alone = if *leaves { &cpu } else { &gpu };
            let alone = batch(alone, &[*ask]).remove(0);
            prop_assert!(alone == beside.bits(), "the bits of {ask:?} differ");
        }
        prop_assert_eq!(gpu.stats().ran_on_cpu - before.ran_on_cpu, left);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_second_batch_no_larger_creates_nothing() {
    let [_, gpu] = engines::both_manual();
    let seed = Cell::new(0);
    let mix = |largest: usize| -> Vec<Ask> {
        let asks = (0..200).map(|k| {
            seed.set(seed.get() + 1);
            let (op, rows) = (OPS[k % OPS.len()], 1 + (k * 37) % largest);
            Ask {
                op,
                rows,
                seed: seed.get(),
            }
        });
        asks.collect()
    };
    // Batches of one chunk, short enough for the queue: how many kept buffers are mapped
    // again when the next long one is sent is a matter of time.
    const SIZES: [usize; 5] = [20, 8, 19, 1, 20];
    // Twice, because calls are written to one arena while another is in flight.
    for largest in [SIZES; 2].as_flattened() {
        batch(&gpu, &mix(*largest));
    }
    let (first, chunks) = (gpu.stats().device, gpu.stats().pieces);
    for largest in SIZES {
        batch(&gpu, &mix(largest));
        let now = gpu.stats().device;
        assert_eq!(
            (now.pool_buffers, now.pool_bytes, now.pool_peak_bytes),
            (first.pool_buffers, first.pool_bytes, first.pool_peak_bytes)
        );
        assert_eq!(now.pipelines_compiled, first.pipelines_compiled);
    }
    assert_eq!(first.pipelines_compiled, 11, "one a kernel, not one an op");
    let uploads = gpu.stats().device.uploads - first.uploads;
    assert_eq!(uploads, gpu.stats().pieces - chunks, "one a chunk");
}

#[test]
fn a_call_cut_in_chunks_gives_the_bits_of_its_rows_asked_for_apart() {
    const ROWS: usize = 1_500_000;
    const APART: usize = 10_000;
    // Results of 24, 18 and 19 MB: natively a GPU's chunks have 16.
    const ROWS_OF_GRADIENTS: usize = 150_000;
    for gpu in engines::both_manual() {
        let samples = &mut Samples(7);
        let (a, b) = (samples.quaternions(ROWS), samples.quaternions(ROWS));
        let (states, each) = (samples.states(ROWS_OF_GRADIENTS), samples.units(ROWS));
        let calls: [&dyn Fn(usize, usize) -> Call<f32>; 3] = [
            &|from, to| gpu.slerp(&a[4 * from..4 * to], &b[4 * from..4 * to], &each[from..to]),
            &|from, to| {
                let (a, b) = (&a[3 * from..3 * to], &b[3 * from..3 * to]);
                gpu.lerp_items(a, b, &each[from..to], 3)
            },
            &|from, to| gpu.compute_gradients(&states[from..to]),
        ];
        let rows = [ROWS, ROWS, ROWS_OF_GRADIENTS];
        for (op, (call, rows)) in calls.iter().zip(rows).enumerate() {
            let before = gpu.stats();
            let whole = call(0, rows);
            gpu.flush();
            let whole = whole.wait().expect("answered");
            let after = gpu.stats();
            let chunks = after.pieces - before.pieces;
            let is_gpu = gpu.info().engine == Engine::Gpu;
            // The CPU keeps a call whole, if its memory holds it.
            let cut = is_gpu || engines::is_small();
            assert_eq!(chunks > 1, cut, "op {op}: {chunks} chunks");
            if is_gpu {
                assert_eq!(after.device.uploads - before.device.uploads, chunks);
                assert_eq!(since(&before, &after), (1, chunks, chunks, chunks));
            }
            let parts: Vec<Call<f32>> = (0..rows)
                .step_by(APART)
                .map(|from| call(from, from + APART))
                .collect();
            gpu.flush();
            let apart = parts
                .into_iter()
                .flat_map(|part| part.wait().expect("answered"));
            let same = whole.iter().map(|float| float.to_bits());
            assert!(
                same.eq(apart.map(f32::to_bits)),
                "the bits of op {op} differ"
            );
        }
    }
}

#[test]
fn every_op_gives_the_same_bits_where_nothing_has_room() {
    let usual = engines::both_manual();
    let config = |engine| {
        engines::small(framebatch::Config {
            engine,
            batch: engines::manual(),
            ..framebatch::Config::default()
        })
    };
    let small = [EngineChoice::Cpu, EngineChoice::Gpu];
    let small = small.map(|engine| block_on(Gpu::open(config(engine))).expect("opened"));
    for (usual, small) in usual.iter().zip(&small) {
        for (seed, op) in (1..).zip(OPS) {
            let rows = match op {
                Op::Gradients | Op::Field => 9000,
                Op::Lerp | Op::LerpEach { width: 1 } | Op::Bezier => 140_000,
                _ => 35_000, // A mebibyte of operands.
            };
            let asks = [rows, 3, 300].map(|rows| Ask { op, rows, seed });
            let before = small.stats().pieces;
            let got = batch(small, &asks);
            let chunks = small.stats().pieces - before;
            let engine = usual.info().engine;
            assert!(
                got == batch(usual, &asks),
                "the bits of {op:?} on {engine:?} differ"
            );
            let is_cut = chunks > 1 || engine == Engine::Cpu;
            assert!(is_cut, "{op:?} on {engine:?}: {chunks} chunks");
        }
        assert_eq!(small.stats().rejected, 0);
    }
}
