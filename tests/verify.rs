//! Natively: kernels of the program's own beside their functions for the CPU, which agree or are
//! told where they do not.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;

use engines::{both, in_time, manual, open};
use framebatch::device::Engine;
use framebatch::{
    Code, EngineChoice, Gpu, Kernel, KernelDefinition, Preset, VerifyCase, VerifyValue,
};
use framebatch::{Number, VerifiedElement};
use pollster::block_on;

/// x · w + b, where the function for the CPU adds `wrong` to what is beyond 5.
fn scaled(wrong: f32) -> Kernel {
    // Equal kernels share the function for the CPU that was given first, so each has a name.
    let definition = KernelDefinition::new(
        format!("scaled{}", wrong.to_bits()),
        "fn element(x: f32, w: f32) -> f32 { return x * w + params.b; }",
    );
    let definition = definition.param("b", 0.0_f32).cpu(move |values, params| {
        let [Number::F32(b)] = params else {
            return f32::NAN;
        };
        let right = values[0] * values[1] + b;
        right + if right > 5.0 { wrong } else { 0.0 }
    });
    definition.build().unwrap()
}

#[test]
fn a_function_that_agrees_is_found_to() {
    in_time(|| {
        let kernel = scaled(0.0);
        for gpu in both() {
            let cases = [
                VerifyCase {
                    values: &[
                        VerifyValue::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]),
                        VerifyValue::new(&[0.5], &[]),
                    ],
                    params: &[1.0.into()],
                },
                VerifyCase {
                    values: &[
                        VerifyValue::new(&[1.0, 2.0], &[2, 1]),
                        VerifyValue::new(&[0.5, 7.0, -1.0], &[3]),
                    ],
                    params: &[(-2.0).into()],
                },
            ];
            let found = block_on(gpu.verify(&kernel, &cases, 1e-6));
            if gpu.info().engine == Engine::Cpu {
                // The function would be compared with itself.
                assert_eq!(found.unwrap_err().code(), Code::Unsupported);
                continue;
            }
            let found = found.unwrap();
            assert!(found.ok, "{found:?}");
            let worst = found.worst.unwrap();
            assert!(worst.off <= 1e-6, "{worst:?}");
            let same = gpu.blocking().verify(&kernel, &cases, 1e-6).unwrap();
            assert!(same.ok, "{same:?}");
        }
    });
}

#[test]
fn a_wrong_function_is_found_and_where() {
    in_time(|| {
        let kernel = scaled(0.75);
        // On the CPU the session computes by the same function.
        let gpu = open(EngineChoice::Gpu, manual());
        let cases = [
            VerifyCase {
                values: &[
                    VerifyValue::new(&[1.0, 2.0], &[2]),
                    VerifyValue::new(&[2.0], &[1]),
                ],
                params: &[0.0.into()],
            },
            VerifyCase {
                values: &[
                    VerifyValue::new(&[1.0, 2.0], &[2, 1]),
                    VerifyValue::new(&[1.0, 2.0, 3.0], &[3]),
                ],
                params: &[0.0.into()],
            },
        ];
        let verifying = gpu.verify(&kernel, &cases, 0.1);
        gpu.flush();
        let found = block_on(verifying).unwrap();
        let worst = VerifiedElement {
            case: 1,
            field: String::new(),
            place: 5,
            got: 6.0,
            expected: 6.75,
            off: 0.75 / 6.75,
        };
        assert_eq!((found.ok, found.worst), (false, Some(worst)));
        let verifying = gpu.verify(&kernel, &cases, 0.2);
        gpu.flush();
        assert!(block_on(verifying).unwrap().ok, "within the tolerance");
    });
}

#[test]
fn vectors_structs_and_places_are_compared_too() {
    in_time(|| {
        let polar = |wrong: bool| {
            let definition = KernelDefinition::new(
                if wrong { "polar_wrong" } else { "polar" },
                "struct Polar { radius: f32, unit: vec2f }
                fn element(p: vec2f, by: f32) -> Polar {
                    let radius = length(p) * by;
                    return Polar(radius, p / length(p));
                }",
            );
            let definition = definition.cpu_into(move |values, _, to| {
                let radius = values[0].hypot(values[1]);
                let off = if wrong && values[2] > 1.0 { 1.0 } else { 0.0 };
                let unit = [values[0] / radius, values[1] / radius + off];
                to.copy_from_slice(&[radius * values[2], unit[0], unit[1]]);
            });
            definition.build().unwrap()
        };
        let mean = KernelDefinition::new(
            "mean",
            "fn at(i: i32) -> f32 {
                let row = i / x_cols();
                return (x_at(row - 1, i % x_cols()) + y(i * 2)) * params.k + f32(y_len());
            }",
        );
        let mean = mean.input("x").input("y").param("k", 0.0_f32);
        let mean = mean.cpu_at(|i, inputs, params| {
            let ([x, y], [Number::F32(k)]) = (inputs, params) else {
                return f32::NAN;
            };
            let (row, col) = (i / x.columns(), i % x.columns());
            (x.at(row - 1, col) + y.get(i * 2)) * k + y.len() as f32
        });
        let mean = mean.build().unwrap();
        let points: &[f32] = &[3.0, 4.0, 0.0, -2.0, 1.0, 1.0];
        let of_points = [VerifyCase {
            values: &[
                VerifyValue::of(points, &[3, 1, 2]),
                VerifyValue::new(&[1.0, 2.0], &[2]),
            ],
            params: &[],
        }];
        let of_places = [VerifyCase {
            values: &[
                VerifyValue::of(points, &[3, 2]),
                VerifyValue::new(&[5.0, 6.0, 7.0], &[3]),
            ],
            params: &[0.5.into()],
        }];
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let verify = |kernel: &Kernel, cases: &[VerifyCase<'_>]| {
            block_on(gpu.verify(kernel, cases, 1e-6)).unwrap()
        };
        let found = verify(&polar(false), &of_points);
        assert!(found.ok, "{found:?}");
        let found = verify(&mean, &of_places);
        assert!(found.ok, "{found:?}");
        let gpu = open(EngineChoice::Gpu, manual());
        let wrong = polar(true);
        let verifying = gpu.verify(&wrong, &of_points, 1e-6);
        gpu.flush();
        let worst = block_on(verifying).unwrap().worst.unwrap();
        // The second point is at 0 for the function, and at -1 for the code.
        assert_eq!((&*worst.field, worst.place), ("unit", 7), "{worst:?}");
    });
}

#[test]
fn numbers_that_are_not_finite_are_compared_as_what_they_are() {
    in_time(|| {
        let code =
            |name: &str| KernelDefinition::new(name, "fn element(x: f32) -> f32 { return x; }");
        let same = code("same").cpu(|values, _| values[0]).build().unwrap();
        let other = code("other").cpu(|_, _| 1.0).build().unwrap();
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let values: &[f32] = &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0];
        let cases = [VerifyCase {
            values: &[VerifyValue::of(values, &[4])],
            params: &[],
        }];
        let found = block_on(gpu.verify(&same, &cases, 0.0)).unwrap();
        assert_eq!(
            (found.ok, found.worst.map(|worst| worst.off)),
            (true, Some(0.0))
        );
        let found = block_on(gpu.verify(&other, &cases, 1e9)).unwrap();
        let worst = found.worst.unwrap();
        assert_eq!(
            (found.ok, worst.place, worst.off),
            (false, 0, f64::INFINITY)
        );
        let nothing = [VerifyCase {
            values: &[VerifyValue::of::<f32>(&[], &[0])],
            params: &[],
        }];
        let found = block_on(gpu.verify(&same, &nothing, 0.0)).unwrap();
        assert_eq!((found.ok, found.worst), (true, None));
    });
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let gpu = open(EngineChoice::Gpu, manual());
    let refused = |gpu: &Gpu, kernel: &Kernel, case: VerifyCase<'_>, tolerance: f64| {
        let error = block_on(gpu.verify(kernel, &[case], tolerance)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        error.to_string()
    };
    let without = KernelDefinition::new("without", "fn element(x: f32) -> f32 { return -x; }");
    let without = without.build().unwrap();
    let one = VerifyCase {
        values: &[VerifyValue::new(&[1.0], &[1])],
        ..VerifyCase::default()
    };
    let message = refused(&gpu, &without, one, 1e-5);
    let said = "without: there is no function for the CPU to compare with; give";
    assert!(message.contains(said), "{message}");
    let kernel = scaled(0.0);
    for (case, tolerance, said) in [
        (one, -1.0, "verify: the tolerance must be a number from 0"),
        (one, f64::NAN, "got NaN"),
        (one, 1e-5, "takes 2 values (x, w), not 1"),
        (
            VerifyCase {
                values: &[
                    VerifyValue::new(&[1.0], &[2]),
                    VerifyValue::new(&[1.0], &[1]),
                ],
                params: &[0.0.into()],
            },
            1e-5,
            "the data has 1 elements",
        ),
        (
            VerifyCase {
                values: &[
                    VerifyValue::new(&[1.0], &[1]),
                    VerifyValue::new(&[1.0], &[1]),
                ],
                params: &[],
            },
            1e-5,
            "the params must be (b: f32)",
        ),
    ] {
        let message = refused(&gpu, &kernel, case, tolerance);
        assert!(message.contains(said), "{message}");
    }
    assert_eq!(gpu.stats().calls, 0);
}

#[test]
fn a_function_that_panics_is_an_error() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let kernel = KernelDefinition::new("panics", "fn element(x: f32) -> f32 { return x; }");
        let kernel = kernel.cpu(|_, _| panic!("no")).build().unwrap();
        let cases = [VerifyCase {
            values: &[VerifyValue::new(&[1.0], &[1])],
            params: &[],
        }];
        let error = block_on(gpu.verify(&kernel, &cases, 1e-5)).unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    });
}

#[test]
fn whole_numbers_and_shared_tensors_are_compared_as_such() {
    in_time(|| {
        let define = |name: &str, wrong: u32| {
            let code = "fn element(i: u32, by: i32) -> vec2u {
                return vec2u(table(i32(i) + by), i | 0x80000000u);
            }";
            let definition = KernelDefinition::new(name, code).shared("table", "u32");
            let definition = definition.cpu_numbers(move |of, to| {
                let [Number::U32(i), Number::I32(by)] = of.values else {
                    unreachable!("two values of these types")
                };
                let place = i64::from(*i) + i64::from(*by);
                to[0] = of.inputs[0].numbers(place).next().unwrap();
                to[1] = ((i | 0x8000_0000) + wrong).into();
            });
            definition.build().unwrap()
        };
        let cases = [VerifyCase {
            values: &[
                VerifyValue::new(&[0_u32, 1, 2, 3], &[4]),
                VerifyValue::new(&[-1_i32], &[1]),
                VerifyValue::new(&[7_u32, 0x7fc0_0001, 9], &[3]),
            ],
            params: &[],
        }];
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let found = block_on(gpu.verify(&define("picked", 0), &cases, 0.0)).unwrap();
        assert!(found.ok, "{found:?}");
        let gpu = open(EngineChoice::Gpu, manual());
        let wrong = define("picked_wrong", 1);
        let verified = gpu.verify(&wrong, &cases, 0.0);
        gpu.flush();
        let worst = block_on(verified).unwrap().worst.unwrap();
        assert_eq!((worst.place, worst.got), (1, 2_147_483_648.0));
        assert_eq!(worst.expected, 2_147_483_649.0);
    });
}
