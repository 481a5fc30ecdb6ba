//! What the native face makes of its arguments: bad ones, empty ones, settings.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;

use engines::{both, both_manual, in_time};
use framebatch::device::Engine;
use framebatch::{Axes, Code, Config, CpuReason, EngineChoice, Error, Gpu, Mode, Parameter, State};

#[test]
fn bad_arguments_are_named_with_what_was_given_and_expected() {
    in_time(|| {
        for gpu in both() {
            check_bad_arguments(&gpu);
        }
    });
}

fn check_bad_arguments(gpu: &Gpu) {
    let refused = [refused_floats(gpu), refused_states(gpu)].concat();
    for (error, said) in refused {
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(
            error.to_string().contains(said),
            "{error} should say: {said}"
        );
    }
    assert_eq!(gpu.stats().calls, 0, "none was taken");
    let four = [0.0; 4];
    assert_eq!(gpu.lerp(&four, &four, 0.5).wait(), Ok(four.to_vec()));
}

/// What calls that give floats said, and what they should say.
fn refused_floats(gpu: &Gpu) -> Vec<(Error, &'static str)> {
    let (four, eight) = ([0.0; 4], [0.0; 8]);
    let (one, two) = ([State::default(); 1], [State::default(); 2]);
    let calls = [
        (
            gpu.lerp(&four, &eight, 0.5),
            "lerp: b has 8 floats, but a has 4",
        ),
        (gpu.lerp(&four, &four, f32::NAN), "lerp: t is NaN"),
        (gpu.lerp(&[], &[], f32::NAN), "lerp: t is NaN"),
        (
            gpu.lerp(&four, &four, &[0.5; 3]),
            "lerp: t has 3 floats, but a has 4 items",
        ),
        (
            gpu.lerp(&four, &four, &[0.5, 0.5, f32::NAN, 0.5]),
            "t[2] is NaN",
        ),
        (gpu.lerp_items(&four, &four, 0.5, 0), "lerp: width is 0"),
        (
            gpu.lerp_items(&four, &four, 0.5, 3),
            "lerp: a has 4 floats, which is not a multiple of 3",
        ),
        (
            gpu.lerp_items(&four, &four, &[0.5; 4], 2),
            "lerp: t has 4 floats, but a has 2 items",
        ),
        (
            gpu.slerp(&four, &eight, 0.5),
            "slerp: b has 8 floats, but a has 4",
        ),
        (
            gpu.slerp(&four[..3], &four[..3], 0.5),
            "slerp: a has 3 floats, which is not a multiple of 4",
        ),
        (
            gpu.slerp(&eight, &eight, &[]),
            "slerp: t has 0 floats, but a has 2 items",
        ),
        (gpu.slerp(&four, &four, &[f32::NAN]), "t[0] is NaN"),
        (
            gpu.nlerp(&four, &eight, 0.5),
            "nlerp: b has 8 floats, but a has 4",
        ),
        (gpu.nlerp(&four, &four, &[f32::NAN]), "t[0] is NaN"),
        (
            gpu.bezier([&four, &four, &eight, &four], 0.5),
            "bezier: p2 has 8 floats, but p0 has 4; give all the same length",
        ),
        (
            gpu.bezier_items([&four; 4], 0.5, 3),
            "bezier: p0 has 4 floats, which is not a multiple of 3",
        ),
        (
            gpu.bezier([&four; 4], &[0.5; 3]),
            "bezier: t has 3 floats, but p0 has 4 items",
        ),
        (
            gpu.distance(&one, &two),
            "distance: b has 2 states, but a has 1",
        ),
        (
            gpu.geodesic_distance(&two, &one),
            "geodesic_distance: b has 1 states, but a has 2",
        ),
    ];
    let refused = calls.map(|(call, said)| (call.wait().expect_err(said), said));
    refused.to_vec()
}

/// The same for calls that give states.
fn refused_states(gpu: &Gpu) -> Vec<(Error, &'static str)> {
    let (one, two) = ([State::default(); 1], [State::default(); 2]);
    let calls = [
        (
            gpu.interpolate(&one, &two, 0.5, Mode::Lerp),
            "interpolate: b has 2 states, but a has 1",
        ),
        (
            gpu.interpolate(&two, &two, &[0.5], Mode::Slerp),
            "interpolate: t has 1 floats, but a has 2 items",
        ),
        (
            gpu.interpolate(&two, &two, f32::NAN, Mode::Slerp),
            "interpolate: t is NaN",
        ),
        (
            gpu.sequence(&one, &two, 2, Mode::Lerp),
            "sequence: b has 2 states, but a has 1",
        ),
        (
            gpu.sequence(&one, &one, 1, Mode::Lerp),
            "sequence: steps is 1, but may be 2 to 65536",
        ),
        (
            gpu.sequence(&one, &one, 65_537, Mode::Lerp),
            "sequence: steps is 65537, but may be 2 to 65536",
        ),
        (
            gpu.interpolate_bezier([&one, &one, &one, &two], 0.5),
            "interpolate_bezier: p3 has 2 states, but p0 has 1",
        ),
        (
            gpu.interpolate_bezier([&two; 4], &[0.5; 3]),
            "interpolate_bezier: t has 3 floats, but p0 has 2 items",
        ),
        (gpu.descend(&one, f32::NAN), "descend: rate is NaN"),
        (
            gpu.descend(&two, &[1.0]),
            "descend: rate has 1 floats, but states has 2 items; give one number for all, or one rate an item",
        ),
        (gpu.descend(&one, &[f32::NAN]), "rate[0] is NaN"),
    ];
    let refused = calls.map(|(call, said)| (call.wait().expect_err(said), said));
    refused.to_vec()
}

#[test]
fn empty_input_is_answered_without_the_device() {
    in_time(|| {
        for gpu in both_manual() {
            assert_eq!(gpu.lerp(&[], &[], 0.5).wait(), Ok(vec![]));
            assert_eq!(gpu.lerp_items(&[], &[], &[], 3).wait(), Ok(vec![]));
            assert_eq!(gpu.slerp(&[], &[], &[]).wait(), Ok(vec![]));
            assert_eq!(gpu.nlerp(&[], &[], &[]).wait(), Ok(vec![]));
            assert_eq!(gpu.compute_gradients(&[]).wait(), Ok(vec![]));
            assert_eq!(
                gpu.interpolate(&[], &[], 0.5, Mode::Lerp).wait(),
                Ok(vec![])
            );
            assert_eq!(gpu.bezier([&[]; 4], 0.5).wait(), Ok(vec![]));
            assert_eq!(gpu.sequence(&[], &[], 5, Mode::Lerp).wait(), Ok(vec![]));
            assert_eq!(gpu.interpolate_bezier([&[]; 4], &[]).wait(), Ok(vec![]));
            assert_eq!(gpu.distance(&[], &[]).wait(), Ok(vec![]));
            assert_eq!(gpu.geodesic_distance(&[], &[]).wait(), Ok(vec![]));
            assert_eq!(gpu.descend(&[], 1.0).wait(), Ok(vec![]));
            assert_eq!((gpu.stats().calls, gpu.stats().batches), (0, 0));
        }
    });
}

#[test]
fn t_may_be_given_in_each_form() {
    let [gpu, _] = both();
    let (a, b) = ([0.0, 0.0], [1.0, 2.0]);
    let each = vec![0.5, 0.25];
    let answers = [
        gpu.lerp(&a, &b, &each),
        gpu.lerp(&a, &b, each.as_slice()),
        gpu.lerp(&a, &b, &[0.5, 0.25]),
        gpu.lerp(&a, &b, Parameter::Each(&each)),
    ]
    .map(|call| call.wait().unwrap());
    assert_eq!(answers, [[0.5, 0.5]; 4]);
    let one = gpu.lerp(&a, &b, Parameter::Call(0.5)).wait().unwrap();
    assert_eq!(one, [0.5, 1.0]);
}

#[test]
fn a_call_no_batch_can_hold_is_refused_and_the_next_is_not() {
    for gpu in both() {
        let info = gpu.info();
        let limits = info.limits.iter().filter(|(name, _)| {
            [
                "maxSideBytes",
                "maxBufferSize",
                "maxStorageBufferBindingSize",
            ]
            .contains(name)
        });
        let limit = limits.map(|(_, value)| *value).min().unwrap();
        // What is summed as a whole cannot be cut.
        let floats = vec![0.0; usize::try_from(limit / 4).unwrap() + 4];
        let mut batch = gpu.batch();
        let x = batch.upload(&floats);
        batch.sum(x, Axes::ALL).unwrap();
        let error = pollster::block_on(batch.execute()).unwrap_err();
        assert_eq!(error.code(), Code::LimitExceeded);
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
        assert_eq!(gpu.lerp(&[1.0], &[1.0], 0.5).wait().unwrap(), [1.0]);
    }
}

#[test]
fn explained_calls_are_planned_apart_from_all_others() {
    in_time(|| {
        for gpu in both_manual() {
            let real = gpu.lerp(&[1.0], &[1.0], 0.5);
            let mut said = None;
            let plan = gpu.explain(|aside| {
                let call = aside.slerp(&[1.0; 8], &[1.0; 8], 0.5);
                drop(gpu.lerp(&[2.0], &[2.0], 0.5)); // On its way for real.
                let states = [State::default(); 5];
                drop(aside.compute_gradients(&states));
                said = Some(call.wait());
            });
            let lines: Vec<&str> = plan.lines().collect();
            assert_eq!(
                lines,
                [
                    "upload   s0 (144 bytes)",
                    "dispatch slerp(s0, s0, t) -> s1, 1 calls, 2 rows",
                    "dispatch state_gradients(s0) -> s1, 1 calls, 5 rows",
                    "download s1 (672 bytes)",
                ]
            );
            assert!(
                matches!(said, Some(Err(Error::InvalidInput(_)))),
                "{said:?}"
            );
            assert_eq!(gpu.stats().calls, 2);
            gpu.flush();
            assert_eq!(real.wait().unwrap(), [1.0]);
        }
    });
}

#[test]
fn engines_are_what_was_asked_for() {
    let info = |engine| {
        let config = Config {
            engine,
            ..Config::default()
        };
        pollster::block_on(Gpu::open(config)).unwrap().info()
    };
    let [cpu, gpu, auto] = [EngineChoice::Cpu, EngineChoice::Gpu, EngineChoice::Auto].map(info);
    assert_eq!(
        (cpu.engine, cpu.reason),
        (Engine::Cpu, Some(CpuReason::Asked))
    );
    assert_eq!((gpu.engine, gpu.reason), (Engine::Gpu, None));
    let expected = match gpu.software {
        true => (Engine::Cpu, Some(CpuReason::SoftwareAdapter)),
        false => (Engine::Gpu, None),
    };
    assert_eq!((auto.engine, auto.reason), expected);
}

#[test]
fn the_device_has_the_features_that_are_asked_for() {
    let name = "float32-filterable";
    for (asked, is_there) in [(vec![], false), (vec![name.to_owned()], true)] {
        let mut config = Config {
            engine: EngineChoice::Gpu,
            ..Config::default()
        };
        config.gpu.required_features = asked;
        let gpu = pollster::block_on(Gpu::open(config)).unwrap();
        let features = gpu.wgpu_device().unwrap().features();
        let has_it = features.contains(wgpu::Features::FLOAT32_FILTERABLE);
        assert_eq!(has_it, is_there);
        assert_eq!(gpu.info().features.iter().any(|one| one == name), is_there);
    }
}

#[test]
fn a_feature_that_does_not_exist_is_refused() {
    let mut config = Config::default();
    config.gpu.required_features = vec!["time-travel".into()];
    let error = pollster::block_on(Gpu::open(config)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidInput);
    assert!(error.to_string().contains("time-travel"), "{error}");
}
