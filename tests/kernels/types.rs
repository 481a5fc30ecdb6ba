//! Kernels of whole numbers, of vectors of all types, with shared tensors and with overrides.

use framebatch::{Batch, Code, Error, Kernel, KernelDefinition, Number, Value};
use pollster::block_on;

use super::engines::{both, both_manual, in_time};

/// A hash (PCG) of whole numbers, whose bits are NaN, subnormal and negative zero among others.
fn hashed(x: u32) -> u32 {
    let state = x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}

fn hash() -> Kernel {
    let code = "fn element(x: u32, salt: u32) -> u32 {
        let state = (x ^ salt) * 747796405u + 2891336453u;
        let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
        return (word >> 22u) ^ word;
    }";
    let definition = KernelDefinition::new("hash", code).cpu_numbers(|of, to| match of.values {
        [Number::U32(x), Number::U32(salt)] => to[0] = hashed(x ^ salt).into(),
        _ => unreachable!("two values, of type u32"),
    });
    definition.build().unwrap()
}

/// What is read of one batch that was recorded.
fn run<'a, T>(
    gpu: &framebatch::Gpu,
    record: impl FnOnce(&mut Batch<'a>) -> Result<Value, Error>,
    read: impl FnOnce(&Batch<'a>, Value) -> framebatch::Call<T>,
) -> Result<Vec<T>, Error>
where
    T: bytemuck::Pod + Send,
{
    let mut batch = gpu.batch();
    let value = record(&mut batch)?;
    block_on(batch.execute())?;
    block_on(read(&batch, value))
}

#[test]
fn whole_numbers_keep_their_bits_and_broadcast() {
    in_time(|| {
        let hash = hash();
        let numbers: Vec<u32> = [0x7fc0_0001, 0x8000_0000, 1, 0xffff_ffff, 0x7fd5_c0de]
            .into_iter()
            .chain(0..16)
            .collect();
        for gpu in both() {
            let got = run(
                &gpu,
                |batch| {
                    let x = batch.upload_indexes(&numbers, &[7, 3])?;
                    let salt = batch.upload_indexes(&[0x7f80_0001], &[1])?;
                    let once = batch.apply(&hash, &[x, salt], &[])?;
                    batch.apply(&hash, &[once, x], &[])
                },
                Batch::<framebatch::Gpu>::read_indexes,
            );
            let want: Vec<u32> = (numbers.iter())
                .map(|x| hashed(hashed(x ^ 0x7f80_0001) ^ x))
                .collect();
            assert_eq!(got.unwrap(), want);
            // What comes of a kernel is moved bit for bit, and picks rows.
            let got = run(
                &gpu,
                |batch| {
                    let x = batch.upload_indexes(&numbers, &[7, 3])?;
                    let rows = batch.upload_i32(&[6, 0, -1], &[3])?;
                    let picked = batch.gather(x, rows, 0)?;
                    batch.transpose(picked, &[])
                },
                Batch::<framebatch::Gpu>::read_indexes,
            );
            let got = got.unwrap();
            let want: Vec<u32> = (0..3)
                .flat_map(|column| [18 + column, column])
                .map(|at| numbers[at])
                .collect();
            assert_eq!([got[0], got[1], got[3], got[4], got[6], got[7]], want[..]);
        }
    });
}

#[test]
fn calls_of_whole_numbers_merge_with_the_bits_of_each_alone() {
    in_time(|| {
        let hash = hash();
        for gpu in both_manual() {
            let data: Vec<Vec<u32>> = (1..30)
                .map(|len| (0..len).map(|i| i * 77_777_777).collect())
                .collect();
            let before = gpu.stats();
            let mut calls: Vec<_> = data
                .iter()
                .map(|data| {
                    let mut batch = gpu.batch();
                    let x = batch.upload_indexes(data, &[data.len() as u32]).unwrap();
                    let y = batch.apply(&hash, &[x, x], &[]).unwrap();
                    (batch, y)
                })
                .collect();
            let sent: Vec<_> = calls.iter_mut().map(|(batch, _)| batch.execute()).collect();
            gpu.flush();
            sent.into_iter().for_each(|call| block_on(call).unwrap());
            assert_eq!(gpu.stats().batches - before.batches, 1);
            for ((batch, y), data) in calls.iter().zip(&data) {
                let got = block_on(batch.read_indexes(*y)).unwrap();
                assert_eq!(got, vec![hashed(0); data.len()]);
            }
        }
    });
}

fn spread() -> Kernel {
    let code = "struct Both { turned: vec2i, sum: i32, size: f32 }
    fn element(p: vec3i, q: vec2u, by: f32) -> Both {
        return Both(vec2i(q.yx) - p.xy, p.x + p.y + p.z, length(vec3f(p)) * by);
    }";
    let definition = KernelDefinition::new("spread", code).cpu_numbers(|of, to| {
        let [
            Number::I32(x),
            Number::I32(y),
            Number::I32(z),
            Number::U32(q),
            Number::U32(r),
            Number::F32(by),
        ] = of.values
        else {
            unreachable!("three values of these types")
        };
        to[0] = (r.cast_signed() - x).into();
        to[1] = (q.cast_signed() - y).into();
        to[2] = (x + y + z).into();
        let size = [x, y, z]
            .map(|x| *x as f32)
            .map(|x| x * x)
            .iter()
            .sum::<f32>();
        to[3] = (size.sqrt() * by).into();
    });
    definition.build().unwrap()
}

#[test]
fn vectors_of_whole_numbers_broadcast_and_come_as_fields() {
    in_time(|| {
        let spread = spread();
        let p: Vec<i32> = (0..12).map(|i| i * 3 - 20).collect();
        let q: Vec<u32> = (0..4).map(|i| i * 5).collect();
        for gpu in both() {
            let mut batch = gpu.batch();
            // Four rows of one kind beside two columns of the other.
            let x = batch.upload_i32(&p, &[4, 1, 3]).unwrap();
            let y = batch.upload_indexes(&q, &[2, 2]).unwrap();
            let by = batch.number(0.5).unwrap();
            let fields = batch.apply_fields(&spread, &[x, y, by], &[]).unwrap();
            assert_eq!(batch.shape(fields[0]).unwrap(), [4, 2, 2]);
            assert_eq!(batch.shape(fields[1]).unwrap(), [4, 2]);
            block_on(batch.execute()).unwrap();
            let turned = block_on(batch.read_i32(fields[0])).unwrap();
            let sums = block_on(batch.read_i32(fields[1])).unwrap();
            let sizes = block_on(batch.read(fields[2])).unwrap();
            for row in 0..4 {
                for column in 0..2 {
                    let at = 2 * row + column;
                    let [x, y, z] = [0, 1, 2].map(|k| p[3 * row + k]);
                    let [q, r] = [0, 1].map(|k| q[2 * column + k].cast_signed());
                    assert_eq!(turned[2 * at..2 * at + 2], [r - x, q - y]);
                    assert_eq!(sums[at], x + y + z);
                    let size = [x, y, z].map(f64::from).map(|x| x * x).iter().sum::<f64>();
                    let want = size.sqrt() * 0.5;
                    assert!((f64::from(sizes[at]) - want).abs() < 1e-5 * want.max(1.0));
                }
            }
            let error = block_on(batch.read(fields[1])).unwrap_err().to_string();
            assert!(error.contains("call `read_i32`"), "{error}");
        }
    });
}

#[test]
fn a_kernel_of_a_place_looks_at_vectors_and_gives_vectors() {
    in_time(|| {
        let code = "fn at(i: i32) -> vec2f {
            let row = i / p_cols();
            let col = i - row * p_cols();
            let ahead = p_at(row, col + 1);
            return vec2f(ahead.x - p(i - 1).z, f32(p_len() * 100 + p_rows() * 10 + p_cols()) + f32(n(i)));
        }";
        let kernel = KernelDefinition::new("ahead", code)
            .input_of("p", "vec3f")
            .input_of("n", "u32")
            .cpu_numbers(|of, to| {
                let [p, n] = of.inputs else {
                    unreachable!("two inputs")
                };
                let row = of.place / p.columns();
                let column = of.place % p.columns();
                let ahead = p.components(p.place(row, column + 1));
                to[0] = (ahead[0] - p.components(of.place - 1)[2]).into();
                let sizes = p.len() * 100 + p.rows() * 10 + p.columns();
                let Some(Number::U32(n)) = n.numbers(of.place).next() else {
                    unreachable!("whole numbers")
                };
                to[1] = (sizes as f32 + n as f32).into();
            })
            .build()
            .unwrap();
        let p: Vec<f32> = (0..18).map(|i| (i * i) as f32 * 0.5).collect();
        for gpu in both() {
            let got = run(
                &gpu,
                |batch| {
                    let x = batch.upload_shaped(&p, &[2, 3, 3])?;
                    let n = batch.upload_indexes(&[7, 8], &[2])?;
                    let y = batch.apply(&kernel, &[x, n], &[])?;
                    assert_eq!(batch.shape(y)?, [2, 3, 2]);
                    Ok(y)
                },
                Batch::<framebatch::Gpu>::read,
            );
            let want: Vec<f32> = (0..6_usize)
                .flat_map(|i| {
                    let ahead = i / 3 * 3 + (i % 3 + 1).min(2);
                    let behind = i.saturating_sub(1);
                    [
                        p[3 * ahead] - p[3 * behind + 2],
                        623.0 + if i == 0 { 7.0 } else { 8.0 },
                    ]
                })
                .collect();
            assert_eq!(got.unwrap(), want);
        }
    });
}

fn painted() -> Kernel {
    let code = "override gain: f32 = 1.0;
    fn element(i: i32, w: f32) -> vec2f { return palette(i) * w * gain + f32(palette_len()); }";
    let definition = KernelDefinition::new("painted", code)
        .shared("palette", "vec2f")
        .constant("gain", 4)
        .cpu_numbers(|of, to| {
            let [Number::I32(i), Number::F32(w)] = of.values else {
                unreachable!("two values")
            };
            let palette = of.inputs[0];
            for (to, color) in to.iter_mut().zip(palette.components(i64::from(*i))) {
                *to = (color * w * 4.0 + palette.len() as f32).into();
            }
        });
    definition.build().unwrap()
}

#[test]
fn a_shared_tensor_is_looked_at_by_all_calls_and_is_no_part_of_the_shape() {
    in_time(|| {
        let painted = painted();
        let colors: Vec<f32> = (0..10).map(|i| i as f32).collect();
        for gpu in both_manual() {
            let palette = gpu.tensor(&colors, &[5, 2]).unwrap();
            let before = gpu.stats();
            let mut calls: Vec<_> = (1..9_i32)
                .map(|count| {
                    let mut batch = gpu.batch();
                    let at: Vec<i32> = (0..count).map(|i| i * 2 - 3).collect();
                    let i = batch.upload_i32(at, &[count.cast_unsigned()]).unwrap();
                    let w = batch.number(0.25).unwrap();
                    let table = batch.tensor(&palette).unwrap();
                    let y = batch.apply(&painted, &[i, w, table], &[]).unwrap();
                    (batch, y)
                })
                .collect();
            let sent: Vec<_> = calls.iter_mut().map(|(batch, _)| batch.execute()).collect();
            gpu.flush();
            sent.into_iter().for_each(|call| block_on(call).unwrap());
            assert_eq!(gpu.stats().batches - before.batches, 1);
            for (count, (batch, y)) in (1..9_i32).zip(&calls) {
                let got = block_on(batch.read(*y)).unwrap();
                let color = |i: i32| (i * 2 - 3).clamp(0, 4) as usize;
                let want = (0..count).flat_map(|i| [0, 1].map(|k| colors[2 * color(i) + k] + 5.0));
                assert_eq!(got, want.collect::<Vec<f32>>());
            }
        }
    });
}

#[test]
fn overrides_compile_and_params_do_not() {
    let define = |gain: f64| {
        let code = "override gain: f32 = 1.0;\nfn element(x: f32) -> f32 { return x * gain; }";
        KernelDefinition::new("gained", code).constant("gain", gain)
    };
    in_time(move || {
        for gpu in both() {
            for gain in [2.0_f32, -0.5] {
                let kernel = define(gain.into())
                    .cpu(move |x, _| x[0] * gain)
                    .build()
                    .unwrap();
                let got = run(
                    &gpu,
                    |batch| {
                        let x = batch.upload(&[1.0, 3.0]);
                        batch.apply(&kernel, &[x], &[])
                    },
                    Batch::<framebatch::Gpu>::read,
                );
                assert_eq!(got.unwrap(), [gain, 3.0 * gain]);
            }
        }
    });
    let error = define(f64::INFINITY).build().unwrap_err().to_string();
    assert!(
        error.contains("gained:1:10: the constant `gain` is no f32"),
        "{error}"
    );
}

#[test]
fn loops_are_told_of_where_results_are_whole_numbers() {
    in_time(|| {
        // A result may have the bits by which floats say that loops were stopped.
        let code = "fn element(x: u32) -> u32 {
            var y = x;
            while (y == 7u) { }
            return y;
        }";
        let kernel = KernelDefinition::new("waits", code)
            .max_passes(1000)
            .build()
            .unwrap();
        let pairs = "fn element(x: u32) -> vec2u { var y = x; while (y == 7u) { } return vec2u(y, 0x7fd5c0deu); }";
        let pairs = KernelDefinition::new("pairs", pairs)
            .max_passes(1000)
            .build()
            .unwrap();
        let gpu = &both()[1];
        let run = |kernel: &Kernel, data: [u32; 3]| {
            run(
                gpu,
                |batch| {
                    let x = batch.upload_indexes(data.to_vec(), &[3])?;
                    batch.apply(kernel, &[x], &[])
                },
                Batch::<framebatch::Gpu>::read_indexes,
            )
        };
        assert_eq!(
            run(&kernel, [1, 0x7fd5_c0de, 3]).unwrap(),
            [1, 0x7fd5_c0de, 3]
        );
        let two = run(&pairs, [1, 2, 3]).unwrap();
        assert_eq!(two, [1, 0x7fd5_c0de, 2, 0x7fd5_c0de, 3, 0x7fd5_c0de]);
        for kernel in [&kernel, &pairs] {
            let error = run(kernel, [1, 7, 3]).unwrap_err();
            assert_eq!(error.code(), Code::LimitExceeded, "{error}");
        }
    });
}

#[test]
fn values_and_definitions_of_other_types_are_refused() {
    let gpu = &both()[0];
    let hash = hash();
    let mut batch = gpu.batch();
    let floats = batch.upload(&[1.0]);
    let error = batch.apply(&hash, &[floats, floats], &[]).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("hash: a value holds elements of another type"),
        "{said}"
    );
    let element = "fn element(x: i32) -> i32 { return x; }";
    let at = "fn at(i: i32) -> f32 { return x(i); }";
    for (definition, said) in [
        (
            KernelDefinition::new("k", element).cpu(|x, _| x[0]),
            "give `cpu_numbers`",
        ),
        (
            KernelDefinition::new("k", element).input("y"),
            "leave `input` out",
        ),
        (
            KernelDefinition::new("k", at),
            "looks at 1 to 6 inputs, got 0",
        ),
        (
            KernelDefinition::new("k", at).input_of("x", "vec5f"),
            "input x must be a number",
        ),
        (
            KernelDefinition::new("k", at).input("x").shared("x", "f32"),
            "a name of its own",
        ),
        (
            KernelDefinition::new("k", at)
                .input("x")
                .shared("x_at", "f32"),
            "a name of its own",
        ),
        (
            KernelDefinition::new("k", element).constant("n", 1),
            "no override `n`",
        ),
        (
            ["a", "b", "c", "d", "e", "f"]
                .into_iter()
                .fold(KernelDefinition::new("k", element), |k, name| {
                    k.shared(name, "f32")
                }),
            "at most 6 tensors, shared ones included, got 7",
        ),
    ] {
        let error = definition.build().unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let same = KernelDefinition::new("k", element).shared("x", "f32");
    let error = same.build().unwrap_err().to_string();
    assert!(error.contains("a name of its own"), "{error}");
    let wrong = KernelDefinition::new("wrong", element)
        .cpu_numbers(|_, to| to[0] = Number::F32(1.0))
        .build()
        .unwrap();
    let error = run(
        gpu,
        |batch| {
            let x = batch.upload_i32(&[1], &[1])?;
            batch.apply(&wrong, &[x], &[])
        },
        Batch::<framebatch::Gpu>::read_i32,
    );
    let said = error.unwrap_err().to_string();
    assert!(
        said.contains("must give a number of type i32, got F32(1.0)"),
        "{said}"
    );
}

#[test]
fn what_a_function_for_the_cpu_does_not_fill_in_is_zero() {
    let code = "fn element(x: f32) -> vec2f { return vec2f(x, select(0.0, x, x > 0.0)); }";
    let kernel = KernelDefinition::new("halved", code).cpu_into(|values, _, to| {
        to[0] = values[0];
        if values[0] > 0.0 {
            to[1] = values[0];
        }
    });
    let kernel = kernel.build().unwrap();
    for gpu in both() {
        let got = run(
            &gpu,
            |batch| {
                let x = batch.upload(&[3.0, -1.0, 2.0]);
                batch.apply(&kernel, &[x], &[])
            },
            Batch::<framebatch::Gpu>::read,
        );
        assert_eq!(got.unwrap(), [3.0, 3.0, -1.0, 0.0, 2.0, 2.0]);
    }
}

#[test]
fn vectors_that_would_need_a_ninth_axis_are_refused() {
    let gpu = &both()[0];
    let mut batch = gpu.batch();
    // Vectors that broadcast are copied for all places of the result, which has eight axes.
    let code = "fn element(a: f32, p: vec3f) -> f32 { return a + p.x; }";
    let deep = KernelDefinition::new("deep", code).build().unwrap();
    let a = batch
        .upload_shaped(&[0.0; 4], &[1, 1, 1, 1, 1, 1, 2, 2])
        .unwrap();
    let p = batch.upload_shaped(&[0.0; 6], &[2, 1, 3]).unwrap();
    let error = batch.apply(&deep, &[a, p], &[]).unwrap_err().to_string();
    assert!(error.contains("at most 8 dimensions"), "{error}");
}
