//! Kernels of the program's own with random bodies: on every device within the bounds that a
//! float64 oracle has for them, and the same bits alone, merged and cut.
//!
//! `PROPTEST_CASES` says how many bodies of each form are tried. What definitions and single
//! kernels do is tested in `tests/kernels.rs`.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod body;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../engines/mod.rs"]
mod engines;
mod evaluate;
mod random;

use std::cell::RefCell;

use body::{Body, Form, PARAMS, Place};
use engines::{in_time, manual, open, small};
use evaluate::{Bounded, Leaves};
use framebatch::{Config, EngineChoice, Error, Gpu, Kernel, KernelDefinition, Number};
use pollster::block_on;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestCaseError, TestRunner};
use random::Dice;

/// Bodies of each form; `PROPTEST_CASES` says otherwise.
const BODIES: u32 = 48;

/// Calls of a body that are made alone and together.
const CALLS: usize = 6;

/// Elements of a call that no buffer of the small device holds.
const BEYOND_A_BUFFER: usize = 300_000;

/// Bodies before sessions are made anew: one keeps all that it ever compiled.
const BODIES_OF_A_SESSION: usize = 100;

#[test]
fn random_bodies_of_elements_are_what_double_precision_has() {
    in_time_of(BODIES, |bodies| try_bodies(Form::Element, bodies));
}

#[test]
fn random_bodies_of_places_are_what_double_precision_has() {
    in_time_of(BODIES, |bodies| try_bodies(Form::At, bodies));
}

/// Runs a test of so many bodies, or of as many as are asked for.
fn in_time_of(bodies: u32, test: impl FnOnce(u32) + Send + 'static) {
    match std::env::var("PROPTEST_CASES") {
        Ok(asked) => test(asked.parse().unwrap()),
        Err(_) => in_time(move || test(bodies)),
    }
}

fn try_bodies(form: Form, bodies: u32) {
    let trial = RefCell::new(Trial::default());
    let mut runner = TestRunner::new(Cases {
        cases: bodies,
        failure_persistence: None,
        ..Cases::default()
    });
    let words = |count| proptest::collection::vec(any::<u32>(), count);
    let outcome = runner.run(&(words(24..200), words(64..65)), |(body, data)| {
        trial.borrow_mut().holds(form, [&body, &data])
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let Trial { tally, .. } = trial.into_inner();
    assert!(tally.tight > 3 * (tally.loose + tally.open), "{tally:?}");
    if form == Form::Element {
        assert!(tally.cut > bodies as usize / 4, "{tally:?}");
    }
}

/// How many elements were held to a bound, and how many bodies were cut.
#[derive(Debug, Default)]
struct Tally {
    /// Held to a bound of less than a thousandth.
    tight: usize,
    loose: usize,
    /// Nothing was known.
    open: usize,
    cut: usize,
}

#[derive(Default)]
struct Trial {
    sessions: Option<Sessions>,
    tally: Tally,
}

struct Sessions {
    bodies: usize,
    gpu: Gpu,
    cpu: Gpu,
    /// A GPU of 1 MiB a buffer.
    small: Gpu,
}

impl Sessions {
    fn open() -> Sessions {
        let lowered = small(Config {
            engine: EngineChoice::Gpu,
            batch: manual(),
            ..Config::default()
        });
        Sessions {
            bodies: 0,
            gpu: open(EngineChoice::Gpu, manual()),
            cpu: open(EngineChoice::Cpu, manual()),
            small: block_on(Gpu::open(lowered)).unwrap(),
        }
    }
}

/// The data of a call, with shapes.
struct Call {
    arrays: Vec<(Vec<f32>, Vec<u32>)>,
    params: (f32, i32, u32),
}

impl Trial {
    /// Tries a body and data that are made of these words.
    fn holds(&mut self, form: Form, words: [&[u32]; 2]) -> Result<(), TestCaseError> {
        let used_up = |sessions: &mut Sessions| sessions.bodies >= BODIES_OF_A_SESSION;
        drop(self.sessions.take_if(used_up));
        let sessions = self.sessions.get_or_insert_with(Sessions::open);
        sessions.bodies += 1;
        let [of_body, dice] = &mut words.map(Dice::new);
        let body = random::body(of_body, form);
        let code = body.wgsl();
        let failed = |what: &str| TestCaseError::fail(format!("{what}\n{code}"));
        let kernel = kernel(&body, &code).map_err(|error| failed(&error.to_string()))?;
        let calls = calls(dice, &body);
        for gpu in [&sessions.cpu, &sessions.gpu] {
            let engine = gpu.info().engine;
            let run = |calls: &[Call]| {
                run(gpu, &kernel, calls).map_err(|error| failed(&format!("{engine:?}: {error}")))
            };
            let mut alone = Vec::new();
            let before = gpu.stats().device.dispatches;
            for call in &calls {
                alone.extend(run(std::slice::from_ref(call))?);
            }
            let dispatches = gpu.stats().device.dispatches - before;
            for (at, (call, results)) in calls.iter().zip(&alone).enumerate() {
                let check = check(&body, call, results, 1, &mut self.tally);
                check.map_err(|off| failed(&format!("{engine:?}, call {at}, {off}")))?;
            }
            let before = gpu.stats();
            let together = run(&calls)?;
            let after = gpu.stats();
            prop_assert_eq!(after.batches - before.batches, 1);
            let merged = after.device.dispatches - before.device.dispatches;
            // Whether loops were stopped is looked up by one kernel for short calls, and by
            // another for long ones.
            let programs = 1 + u64::from(body.has_loops());
            let most = programs * dispatches / CALLS as u64;
            prop_assert!(merged <= most, "{merged} dispatches\n{code}");
            prop_assert!(is_same(&alone, &together), "{engine:?}: merged\n{code}");
        }
        if form == Form::Element && !body.has_loops() {
            let call = [call(dice, &body, [BEYOND_A_BUFFER as u32, 1])];
            let run = |gpu| run(gpu, &kernel, &call).map_err(|error| failed(&error.to_string()));
            let whole = run(&sessions.gpu)?;
            let before = sessions.small.stats().pieces;
            let cut = run(&sessions.small)?;
            prop_assert!(sessions.small.stats().pieces > before + 1, "{}", code);
            prop_assert!(is_same(&whole, &cut), "cut\n{code}");
            let check = check(&body, &call[0], &cut[0], 1009, &mut self.tally);
            check.map_err(|off| failed(&format!("cut, {off}")))?;
            self.tally.cut += 1;
        }
        Ok(())
    }
}

/// The kernel of a body, whose function for the CPU evaluates the body in floats of 32 bits.
fn kernel(body: &Body, code: &str) -> Result<Kernel, Error> {
    let [(first, _), (second, _), (third, _)] = PARAMS;
    let mut definition = KernelDefinition::new("random", code)
        .param(first, 0.0_f32)
        .param(second, 0)
        .param(third, 0_u32);
    let own = body.clone();
    if body.form == Form::Element {
        let definition = definition.cpu(move |values, params| {
            let read = |at: usize, _| values[at];
            own.evaluate(&Leaves {
                read: &read,
                params: floats(params),
            })
        });
        return definition.build();
    }
    for at in 0..body.inputs {
        definition = definition.input(format!("a{at}"));
    }
    let definition = definition.cpu_at(move |i, inputs, params| {
        let params = floats(params);
        let read = |at: usize, place: Option<Place>| {
            let input = inputs[at];
            match place.unwrap() {
                Place::Along(times, more) => input.get(i * i64::from(times) + i64::from(more)),
                Place::ByParam => input.get(i + params[1] as i64),
                Place::Cell(rows, columns) => {
                    let (row, column) = (i / input.columns(), i % input.columns());
                    input.at(row + i64::from(rows), column + i64::from(columns))
                }
            }
        };
        own.evaluate(&Leaves {
            read: &read,
            params,
        })
    });
    definition.build()
}

fn floats(params: &[Number]) -> [f32; 3] {
    match params {
        [Number::F32(first), Number::I32(second), Number::U32(third)] => {
            [*first, *second as f32, *third as f32]
        }
        _ => panic!("other params: {params:?}"),
    }
}

/// Calls of one structure: other lengths, data and params.
fn calls(dice: &mut Dice<'_>, body: &Body) -> Vec<Call> {
    let lengths = random::lengths(dice, CALLS);
    lengths.map(|shape| call(dice, body, shape)).collect()
}

/// A call whose first input has this shape, or as many elements. The third value of `element` is
/// one for all elements.
fn call(dice: &mut Dice<'_>, body: &Body, [rows, columns]: [u32; 2]) -> Call {
    let shapes = match body.form {
        Form::Element => [vec![rows * columns], vec![rows * columns], vec![1]],
        Form::At => [vec![rows, columns], vec![columns + 2], vec![3, rows]],
    };
    let shapes = shapes.into_iter().take(body.inputs);
    let arrays = shapes.map(|shape| {
        let count = shape.iter().product::<u32>() as usize;
        (random::floats(dice, count), shape)
    });
    Call {
        arrays: arrays.collect(),
        params: random::params(dice),
    }
}

/// What calls give that are made at once.
fn run(gpu: &Gpu, kernel: &Kernel, calls: &[Call]) -> Result<Vec<Vec<f32>>, Error> {
    let mut batches = Vec::new();
    for Call { arrays, params } in calls {
        let mut batch = gpu.batch();
        let values = arrays
            .iter()
            .map(|(floats, shape)| batch.upload_shaped(floats, shape));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let params = [params.0.into(), params.1.into(), params.2.into()];
        let result = batch.apply(kernel, &values, &params)?;
        batches.push((batch, result));
    }
    let running: Vec<_> = batches
        .iter_mut()
        .map(|(batch, _)| batch.execute())
        .collect();
    gpu.flush();
    for execution in running {
        block_on(execution)?;
    }
    let results = batches
        .iter()
        .map(|(batch, result)| block_on(batch.read(*result)));
    results.collect()
}

fn is_same(results: &[Vec<f32>], others: &[Vec<f32>]) -> bool {
    let bits = |results: &[Vec<f32>]| -> Vec<Vec<u32>> {
        let bits = |result: &Vec<f32>| result.iter().map(|x| x.to_bits()).collect();
        results.iter().map(bits).collect()
    };
    bits(results) == bits(others)
}

/// Holds each `step`th element to the oracle's bounds; or says which is off.
fn check(
    body: &Body,
    call: &Call,
    results: &[f32],
    step: usize,
    tally: &mut Tally,
) -> Result<(), String> {
    let (first, second, third) = call.params;
    let params = [first, second as f32, third as f32];
    for (i, got) in results.iter().enumerate().step_by(step) {
        let read = |at: usize, place: Option<Place>| {
            let (floats, shape) = &call.arrays[at];
            let Some(place) = place else {
                return floats[i % floats.len()];
            };
            let columns = i64::from(*shape.last().unwrap());
            let (i, last) = (i as i64, floats.len() as i64 - 1);
            let at = match place {
                Place::Along(times, more) => i * i64::from(times) + i64::from(more),
                Place::ByParam => i + i64::from(second),
                Place::Cell(down, right) => {
                    let row = (i / columns + i64::from(down)).clamp(0, last / columns);
                    let column = (i % columns + i64::from(right)).clamp(0, columns - 1);
                    row * columns + column
                }
            };
            floats[at.clamp(0, last) as usize]
        };
        let read = &read;
        let Bounded { value, error, .. } = body.evaluate(&Leaves { read, params });
        if error.is_infinite() {
            tally.open += 1;
            continue;
        }
        match error <= 1e-3 * value.abs().max(1.0) {
            true => tally.tight += 1,
            false => tally.loose += 1,
        }
        let off = (f64::from(*got) - value).abs();
        if off.is_nan() || off > error {
            return Err(format!("element {i}: {got} instead of {value} ± {error:e}"));
        }
    }
    Ok(())
}
