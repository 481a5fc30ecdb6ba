//! Random steps of several callers whose results stay on the device: what is read equals the
//! oracle, and has the same bits whether steps share batches or are awaited one by one.

mod caller;
mod step;
mod wire;

use std::cell::{Cell, RefCell};

use framebatch::{EngineChoice, Gpu};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use self::caller::{Caller, Expectation, Pace};
use self::step::{Step, steps};
use crate::engines::{manual, open};
use crate::oracle::Tensor;
use crate::random::Words;
use crate::under_random::{Tally, runner};

/// Sides of the squares that callers have.
const SIDES: [u32; 8] = [3, 8, 1, 5, 4, 17, 2, 33];

/// What one caller does.
struct Plan {
    side: u32,
    tensors: Vec<Vec<f32>>,
    steps: Vec<Step>,
}

/// Callers of the same steps on squares of different sides, and some of other steps.
fn plans(words: &[u32]) -> Vec<Plan> {
    let count = 1 + words[0] as usize % 4;
    let plan = |at: usize| {
        let mut own = words.to_vec();
        if at % 3 == 2 {
            own.rotate_left(at);
        }
        let mut own = Words(own[1..].iter());
        let side = SIDES[(words[1] as usize + at * (words[2] as usize % 3)) % SIDES.len()];
        let elements = side * side;
        let known = 2 + own.below(2);
        let tensors = (0..known).map(|tensor| {
            let value = |i: u32| ((i * 7 + 3 * tensor as u32 + at as u32) as f32 * 0.61).sin();
            (0..elements).map(value).collect()
        });
        Plan {
            side,
            tensors: tensors.collect(),
            steps: steps(&mut own, known, elements),
        }
    };
    (0..count).map(plan).collect()
}

/// What each caller reads when all take their steps by turns.
fn run(gpu: &Gpu, plans: &[Plan], pace: Pace) -> Vec<Vec<Vec<f32>>> {
    let callers = plans.iter();
    let callers = callers.map(|plan| Caller::new(gpu, plan.side, &plan.tensors));
    let mut callers: Vec<Caller> = callers.collect();
    let send = |callers: &mut [Caller]| {
        gpu.flush();
        callers.iter_mut().for_each(Caller::hear);
    };
    let longest = plans.iter().map(|plan| plan.steps.len()).max();
    for at in 0..longest.unwrap_or(0) {
        for (caller, plan) in callers.iter_mut().zip(plans) {
            match plan.steps.get(at) {
                Some(Step::Flush) if pace == Pace::Together => gpu.flush(),
                Some(step) => caller.take(step, pace),
                None => {}
            }
        }
        if at % 4 == 3 {
            send(&mut callers);
        }
    }
    callers.iter_mut().for_each(Caller::read_all);
    send(&mut callers);
    callers.into_iter().map(|caller| caller.read).collect()
}

fn expected(plan: &Plan) -> Vec<Tensor> {
    let mut own = Expectation::new(plan.side, &plan.tensors);
    plan.steps.iter().for_each(|step| own.take(step));
    own.read_all();
    own.read
}

/// Holds floats to the oracle's bounds.
fn check(expected: &Tensor, floats: &[f32], tally: &mut Tally) -> Result<(), TestCaseError> {
    prop_assert_eq!(expected.values.len(), floats.len());
    for (i, (q, float)) in expected.values.iter().zip(floats).enumerate() {
        tally.count(q.e);
        prop_assert!(
            q.e.is_infinite() || (f64::from(*float) - q.v).abs() <= q.e,
            "element {i}: {float} instead of {} ± {:e}",
            q.v,
            q.e
        );
    }
    Ok(())
}

fn explore(engine: EngineChoice, cases: u32) {
    let gpu = open(engine, manual());
    let is_one_device = engine != EngineChoice::Auto;
    let tally = RefCell::new(Tally::default());
    let spared = Cell::new(0);
    let words = proptest::collection::vec(any::<u32>(), 4..120);
    let result = runner(cases).run(&words, |words| {
        let plans = plans(&words);
        let before = gpu.stats().batches;
        let alone = run(&gpu, &plans, Pace::OneByOne);
        let between = gpu.stats().batches;
        let together = run(&gpu, &plans, Pace::Together);
        let batches = [between - before, gpu.stats().batches - between];
        spared.set(spared.get() + batches[0].saturating_sub(batches[1]));
        for (caller, plan) in plans.iter().enumerate() {
            let expected = expected(plan);
            let read = [&alone[caller], &together[caller]];
            prop_assert_eq!(read.map(Vec::len), [expected.len(); 2]);
            for (at, expected) in expected.iter().enumerate() {
                for (name, read) in ["alone", "together"].iter().zip(read) {
                    let tally = &mut tally.borrow_mut();
                    check(expected, &read[at], tally).map_err(|error| {
                        let steps = &plan.steps;
                        TestCaseError::fail(format!(
                            "{name}, caller {caller}, reading {at}: {error}\nside {}\n{steps:#?}",
                            plan.side
                        ))
                    })?;
                }
                let bits = read.map(|read| read[at].iter().map(|float| float.to_bits()));
                let [one, other] = bits;
                let differs = |((a, b), q): ((u32, u32), &crate::bounded::Q)| {
                    is_one_device && q.e.is_finite() && a != b
                };
                let place = one.zip(other).zip(&expected.values).position(differs);
                prop_assert_eq!(
                    place,
                    None,
                    "bits of caller {}, reading {}: {:#?}",
                    caller,
                    at,
                    &plan.steps
                );
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(tally.into_inner().is_mostly_held());
    assert!(spared.get() > 0, "steps share batches");
    let stats = gpu.stats();
    assert_eq!((stats.pending, stats.rejected), (0, 0));
}

#[test]
fn random_steps_are_right_alone_and_the_same_merged_on_the_cpu() {
    explore(EngineChoice::Cpu, 60);
}

#[test]
fn random_steps_are_right_alone_and_the_same_merged_on_the_gpu() {
    explore(EngineChoice::Gpu, 24);
}

#[test]
fn random_steps_are_right_where_the_session_chooses_the_device() {
    explore(EngineChoice::Auto, 24);
}
