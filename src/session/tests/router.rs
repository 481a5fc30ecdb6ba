//! The router: groups take the least time together, routes are kept for a while, and follow
//! what was measured.
//!
//! `PROPTEST_CASES` is how many sets of groups are tried.

use proptest::prelude::*;

use super::*;
use crate::plan::KINDS;
use crate::session::FACTS;

/// The recipe of a structure does not matter here.
fn group(recipe: u32, sum: Sum) -> Group {
    Group {
        sum,
        ..Group::new(RecipeId(recipe), None)
    }
}

/// A model of which a test reads the sums: milliseconds of the GPU's flush, of
/// a byte up, and of a million products on the CPU.
fn model(flush: f64) -> Model {
    let mut model = Model([0.0; FACTS.len()]);
    model.0[0] = flush;
    model.0[2] = 1e6;
    model.0[FACTS.len() - 1] = 1e6;
    model
}

/// A group that takes so long on each device, by that model.
fn work(cpu: f64, gpu: f64) -> Sum {
    let mut effort = [0.0; KINDS];
    effort[KINDS - 1] = cpu;
    Sum {
        effort: Effort(effort),
        up: gpu,
        ..Sum::default()
    }
}

fn router(flush: f64, patience: f64) -> Router {
    Router::new(Routing {
        model: model(flush),
        patience_ms: patience,
    })
}

/// The routes of a flush.
fn routes(router: &mut Router, works: &[(f64, f64)]) -> Vec<Engine> {
    let groups = (0..).zip(works);
    let mut groups: Vec<Group> = groups
        .map(|(recipe, (cpu, gpu))| group(recipe, work(*cpu, *gpu)))
        .collect();
    router.choose(&mut groups);
    router.keep(&groups);
    groups.iter().map(|group| group.engine).collect()
}

/// What a flush takes whose groups go these ways.
fn cost(flush: f64, works: &[(f64, f64)], is_gpu: impl Fn(usize) -> bool) -> f64 {
    let each = works
        .iter()
        .enumerate()
        .map(|(at, (cpu, gpu))| if is_gpu(at) { *gpu } else { *cpu });
    let due = (0..works.len()).any(&is_gpu);
    each.sum::<f64>() + if due { flush } else { 0.0 }
}

/// What a flush costs, what its groups take, and where they go.
type Case = (&'static str, f64, &'static [(f64, f64)], &'static [Engine]);

const CASES: [Case; 6] = [
    ("light work stays", 1.0, &[(0.2, 0.0)], &[Engine::Cpu]),
    ("heavy work goes", 1.0, &[(3.0, 0.5)], &[Engine::Gpu]),
    (
        "who finds a flush due joins it for less than its own time",
        1.0,
        &[(3.0, 0.5), (0.2, 0.01), (0.2, 0.3)],
        &[Engine::Gpu, Engine::Gpu, Engine::Cpu],
    ),
    (
        "what no group is worth by itself all are together",
        1.0,
        &[(0.6, 0.1), (0.6, 0.1), (0.6, 0.1)],
        &[Engine::Gpu; 3],
    ),
    (
        "and two of them are not",
        1.0,
        &[(0.6, 0.1); 2],
        &[Engine::Cpu; 2],
    ),
    ("bytes weigh", 1.0, &[(3.0, 2.5)], &[Engine::Cpu]),
];

#[test]
fn groups_go_where_they_are_answered_sooner() {
    for (name, flush, works, expected) in CASES {
        let found = routes(&mut router(flush, f64::INFINITY), works);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn the_gpu_is_preferred_to_a_frame_that_waits_for_the_cpu() {
    // Ten milliseconds on the CPU count as sixteen, and twelve on the GPU as twelve.
    let works = [(10.0, 11.0)];
    assert_eq!(
        routes(&mut router(1.0, f64::INFINITY), &works),
        [Engine::Cpu]
    );
    assert_eq!(routes(&mut router(1.0, 4.0), &works), [Engine::Gpu]);
    // A group is not moved at any price.
    let works = [(10.0, 20.0)];
    assert_eq!(routes(&mut router(1.0, 4.0), &works), [Engine::Cpu]);
}

#[test]
fn what_must_go_to_the_gpu_takes_others_along() {
    let mut router = router(1.0, f64::INFINITY);
    let mut groups = [
        Group::new(RecipeId(0), Some(Engine::Gpu)),
        group(1, work(0.2, 0.1)),
    ];
    router.choose(&mut groups);
    assert_eq!(groups[1].engine, Engine::Gpu);
    router.keep(&groups);
    // Nobody chose the first group's route, so nothing of it is kept.
    let alone = [(0.1, 0.1)];
    assert_eq!(routes(&mut router, &alone), [Engine::Cpu]);
}

#[test]
fn while_the_gpu_is_not_ready_the_cpu_takes_what_is_short() {
    let mut router = router(1.0, f64::INFINITY);
    let sizes = [5.0, 100.0, 2.0, 2.0];
    let mut groups: Vec<Group> = (0..)
        .zip(sizes)
        .map(|(recipe, cpu)| Group {
            is_ready: false,
            ..group(recipe, work(cpu, 0.0))
        })
        .collect();
    router.choose(&mut groups);
    router.keep(&groups);
    let found = groups.iter().map(|group| group.engine);
    let expected = [Engine::Cpu, Engine::Gpu, Engine::Cpu, Engine::Gpu];
    assert!(found.eq(expected), "8 ms in all");
    // When the GPU is ready again, each group is routed as if nothing had been.
    assert_eq!(routes(&mut router, &[(5.0, 0.0)]), [Engine::Gpu]);
}

#[test]
fn a_number_that_is_given_again_is_another_structure() {
    let mut router = router(1.0, f64::INFINITY);
    assert_eq!(routes(&mut router, &[(2.0, 0.0)]), [Engine::Gpu]);
    router.model.0[0] = 10.0;
    assert_eq!(routes(&mut router, &[(2.0, 0.0)]), [Engine::Gpu], "kept");
    router.forget(RecipeId(0));
    assert_eq!(routes(&mut router, &[(2.0, 0.0)]), [Engine::Cpu]);
}

#[test]
fn what_flushes_took_moves_what_is_foreseen() {
    let mut router = router(1.0, f64::INFINITY);
    let mut groups = [group(0, work(0.5, 0.1))];
    let mut flush = |count: u32, took: fn(&mut Router, &[Group])| {
        let mut engines = Vec::new();
        for _ in 0..count {
            router.choose(&mut groups);
            router.keep(&groups);
            took(&mut router, &groups);
            engines.push(groups[0].engine);
        }
        assert!(engines.iter().all(|engine| *engine == engines[0]));
        (engines[0], groups[0].cpu)
    };
    // The CPU is eight times slower than the model said, and the GPU's flush
    // takes five times as long: each is on trial.
    let (engine, cpu) = flush(TRIAL, |router, groups| router.note_cpu(groups, 4.0));
    assert_eq!(engine, Engine::Cpu);
    assert!((1.1..4.0).contains(&cpu), "{cpu}");
    let (engine, _) = flush(TRIAL, |router, groups| router.note_gpu(groups, 5.1));
    assert_eq!(engine, Engine::Gpu);
    let (engine, cpu) = flush(HOLD, |router, groups| router.note_cpu(groups, 4.0));
    assert_eq!(engine, Engine::Cpu);
    assert!((cpu - 4.0).abs() < 0.01, "{cpu}");
    // The device takes longer from some moment on, and is left at the next choice.
    let (engine, _) = flush(HOLD, |router, groups| router.note_cpu(groups, 7.0));
    assert_eq!(engine, Engine::Cpu);
    let (engine, _) = flush(HOLD, |_, _| ());
    assert_eq!(engine, Engine::Gpu);
}

#[test]
fn a_new_model_is_not_as_far_off_as_the_one_before() {
    // The GPU's flush takes four times as long as the model says.
    let mut router = router(1.0, f64::INFINITY);
    let works = [(6.0, 0.3)];
    let flush = |router: &mut Router| {
        let mut groups = [group(0, work(works[0].0, works[0].1))];
        router.choose(&mut groups);
        router.keep(&groups);
        match groups[0].engine {
            Engine::Cpu => router.note_cpu(&groups, 6.0),
            Engine::Gpu => router.note_gpu(&groups, 4.3),
        }
        groups[0].engine
    };
    for _ in 0..2 * TRIAL {
        flush(&mut router);
    }
    assert!(router.flush_ms() > 2.0, "{}", router.flush_ms());
    router.adopt(model(4.0));
    assert!((router.flush_ms() - 4.0).abs() < 1e-9);
    let engines: Vec<Engine> = (0..1000).map(|_| flush(&mut router)).collect();
    let on_gpu = engines.iter().filter(|engine| **engine == Engine::Gpu);
    assert!(on_gpu.count() >= 1000 - TRIAL as usize);
}

#[test]
fn a_device_that_was_slow_for_a_moment_is_found_again() {
    let moment: [fn(&mut Router, &[Group]); 2] = [
        |router, groups| router.note_gpu(groups, 100.0),
        |router, groups| router.note_cpu(groups, 100.0),
    ];
    let cases = [
        (Engine::Gpu, (4.0, 0.2), moment[0]),
        (Engine::Cpu, (0.2, 0.1), moment[1]),
    ];
    for (sooner, (cpu, gpu), slow) in cases {
        let mut router = router(1.0, f64::INFINITY);
        let mut groups = [group(0, work(cpu, gpu))];
        let mut left = 0;
        for flush in 0..200 * HOLD {
            router.choose(&mut groups);
            router.keep(&groups);
            match groups[0].engine {
                engine if engine == sooner && flush < TRIAL => slow(&mut router, &groups),
                Engine::Cpu => router.note_cpu(&groups, cpu),
                Engine::Gpu => router.note_gpu(&groups, 1.0 + gpu),
            }
            left = if groups[0].engine == sooner {
                0
            } else {
                left + 1
            };
            assert!(left < 100 * HOLD, "{sooner:?} is not tried again");
        }
        assert_eq!((groups[0].engine, left), (sooner, 0));
    }
}

#[test]
fn a_device_that_is_not_far_off_is_tried_too() {
    use Engine::{Cpu, Gpu};
    let cases = [
        ("the CPU after the GPU", (2.0, 0.2), 4.0, [Gpu, Cpu, Gpu]),
        ("the GPU after the CPU", (0.9, 0.1), 4.0, [Cpu, Gpu, Cpu]),
        (
            "heavy work stays on the GPU",
            (2.6, 0.2),
            4.0,
            [Gpu, Gpu, Gpu],
        ),
        (
            "light work stays where it is",
            (0.4, 0.0),
            4.0,
            [Cpu, Cpu, Cpu],
        ),
        (
            "nor does a frame wait for it",
            (2.0, 0.2),
            1.0,
            [Gpu, Gpu, Gpu],
        ),
    ];
    for (name, work, patience, expected) in cases {
        let mut router = router(1.0, patience);
        for (turn, engine) in expected.into_iter().enumerate() {
            for flush in 0..TRIAL {
                let found = routes(&mut router, &[work]);
                assert_eq!(found, [engine], "{name}: flush {flush} of route {turn}");
            }
        }
    }
    // Forty groups pay for one flush: on the CPU they would take ten times as long.
    let mut router = router(1.0, f64::INFINITY);
    for flush in 0..3 * TRIAL {
        let found = routes(&mut router, &[(0.3, 0.005); 40]);
        assert_eq!(found, [Gpu; 40], "flush {flush}");
    }
}

#[test]
fn a_device_that_is_left_out_is_tried_again_from_time_to_time() {
    // The model has the GPU take 4.2 ms, and the first trial finds a page that is busy with
    // something else: the model is wrong, and nobody would ever know.
    let mut router = router(4.0, f64::INFINITY);
    router.is_calibrated = true;
    let mut groups = [group(0, work(3.0, 0.2))];
    let between = TRIALS * TRIAL + (AGAIN - TRIALS) * HOLD;
    let engines: Vec<Engine> = (0..2 * between)
        .map(|flush| {
            router.choose(&mut groups);
            router.keep(&groups);
            match groups[0].engine {
                Engine::Cpu => router.note_cpu(&groups, 3.0),
                Engine::Gpu if flush < between => router.note_gpu(&groups, 12.0),
                Engine::Gpu => router.note_gpu(&groups, 0.5),
            }
            groups[0].engine
        })
        .collect();
    let on_gpu = |flushes: &[Engine]| flushes.iter().filter(|on| **on == Engine::Gpu).count();
    let (before, after) = engines.split_at(between as usize);
    assert_eq!(on_gpu(before), TRIAL as usize, "one flush in two hundred");
    assert_eq!(on_gpu(after), after.len() - TRIAL as usize);
}

#[test]
fn the_usual_model_is_believed_less_than_a_measured_one() {
    let between = TRIALS * TRIAL + (AGAIN - TRIALS) * HOLD;
    for (is_calibrated, (cpu, gpu), tried) in [
        (false, (0.4, 0.0), true),
        (true, (0.4, 0.0), false),
        (false, (0.2, 0.0), false),
        (false, (4.0, 0.3), true),
        (true, (4.0, 0.3), false),
    ] {
        let mut router = router(1.0, f64::INFINITY);
        router.is_calibrated = is_calibrated;
        let mut others = Vec::new();
        let first = routes(&mut router, &[(cpu, gpu)])[0];
        for flush in 1..between + TRIALS * TRIAL {
            if routes(&mut router, &[(cpu, gpu)])[0] != first {
                others.push(flush);
            }
        }
        let again = between + TRIAL..between + 2 * TRIAL;
        let expected: Vec<u32> = again.filter(|_| tried).collect();
        assert_eq!(
            others, expected,
            "{cpu} or {gpu}, calibrated: {is_calibrated}"
        );
    }
}

#[test]
fn a_stored_model_is_looked_at() {
    assert!(Model::default().is_sound());
    for wrong in [f64::NAN, -1.0, f64::INFINITY] {
        let mut model = Model::default();
        model.0[3] = wrong;
        assert!(!model.is_sound(), "{wrong}");
    }
    // A flush that took as long as can be measured was one of a busy page.
    let mut model = Model::default();
    model.0[0] *= 50.0;
    assert!(!model.is_sound());
    // A GPU in software computes slowly.
    let mut model = Model::default();
    *model.0.last_mut().expect("there are numbers") *= 50.0;
    model.0[9] *= 50.0;
    assert!(model.is_sound());
}

fn works() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let ms = || prop_oneof![0.0..0.5_f64, 0.0..20.0_f64];
    prop::collection::vec((ms(), ms()), 1..8)
}

proptest! {
    /// No other way of dividing the groups takes less.
    #[test]
    fn together_they_take_the_least(flush in 0.0..5.0_f64, works in works()) {
        let found = routes(&mut router(flush, f64::INFINITY), &works);
        let own = cost(flush, &works, |at| found[at] == Engine::Gpu);
        for other in 0..1_u32 << works.len() {
            let least = cost(flush, &works, |at| other >> at & 1 == 1);
            prop_assert!(own <= least + 1e-9, "{found:?} takes {own}, {other:b} {least}");
        }
    }

    /// Whatever other groups come and whatever is measured, a structure whose groups are
    /// alike goes the same way for sixty flushes, and at first for eight.
    #[test]
    fn a_route_is_kept(
        flush in 0.1..3.0_f64,
        flushes in prop::collection::vec((works(), 0.6..1.9_f64, 0.0..30.0_f64), 200),
    ) {
        let mut router = router(flush, 4.0);
        let mut kept: Option<(Engine, u32)> = None;
        let mut changes = 0;
        for (others, size, took) in flushes {
            let all: Vec<(f64, f64)> = [(size, 0.4)].into_iter().chain(others).collect();
            let engine = routes(&mut router, &all)[0];
            kept = Some(match kept {
                Some((last, flushes)) if last == engine => (last, flushes + 1),
                Some((last, flushes)) => {
                    changes += 1;
                    let least = if changes <= TRIALS { TRIAL } else { HOLD };
                    prop_assert!(flushes >= least, "left {last:?} after {flushes} flushes");
                    (engine, 1)
                }
                None => (engine, 1),
            });
            let mut group = group(0, work(size, 0.4));
            group.engine = engine;
            (group.cpu, group.gpu) = (size, 0.4);
            router.note_cpu(&[group], took);
            router.note_gpu(&[group], took);
        }
    }
}
