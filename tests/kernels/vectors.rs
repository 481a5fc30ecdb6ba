//! Kernels of vectors, and kernels that give a struct.

use framebatch::{Kernel, KernelDefinition, Number};

use super::engines::{both, in_time};
use super::{assert_near, computed, ramp};

fn crossed() -> Kernel {
    let definition = KernelDefinition::new(
        "crossed",
        "fn element(a: vec3f, b: vec3f, t: f32) -> vec3<f32> { return cross(a, b) * t * params.by; }",
    );
    let definition = definition
        .param("by", 0.0_f32)
        .cpu_into(|values, params, to| {
            let [Number::F32(by)] = params else { return };
            for (k, to) in to.iter_mut().enumerate() {
                let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                *to = (values[i] * values[3 + j] - values[j] * values[3 + i]) * values[6] * by;
            }
        });
    definition.build().unwrap()
}

#[test]
fn vectors_broadcast_in_front_of_their_axis() {
    in_time(|| {
        let crossed = crossed();
        let (a, b, t) = (ramp(12, 0.5), ramp(12, -0.25), ramp(4, 1.5));
        // Shapes of the operands, and the rows of each that a row of the result is of.
        type Rows = fn(usize) -> [usize; 3];
        type Case<'a> = (&'a [u32], &'a [u32], &'a [u32], usize, Rows);
        let cases: [Case<'_>; 4] = [
            (&[4, 3], &[4, 3], &[4], 4, |row| [row; 3]),
            (&[4, 3], &[4, 3], &[1], 4, |row| [row, row, 0]),
            (&[4, 1, 3], &[4, 3], &[4, 1], 16, |row| {
                [row / 4, row % 4, row / 4]
            }),
            (&[4, 3], &[2, 2, 1, 3], &[], 16, |row| [row % 4, row / 4, 0]),
        ];
        for gpu in both() {
            for (of_a, of_b, of_t, rows, row_of) in cases {
                let got = computed(&gpu, |batch| {
                    let count = of_t.iter().product::<u32>() as usize;
                    let a = batch.upload_shaped(&a, of_a)?;
                    let b = batch.upload_shaped(&b, of_b)?;
                    let t = batch.upload_shaped(&t[..count], of_t)?;
                    let crossed = batch.apply(&crossed, &[a, b, t], &[0.5.into()])?;
                    assert_eq!(batch.shape(crossed)?.last(), Some(&3));
                    batch.scale(crossed, 2.0)
                });
                let want = (0..rows * 3).map(|at| {
                    let ([p, q, u], k) = (row_of(at / 3), at % 3);
                    let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                    let [x, y] = [&a, &b].map(|of| move |at: usize| f64::from(of[at]));
                    let turned = x(3 * p + i) * y(3 * q + j) - x(3 * p + j) * y(3 * q + i);
                    turned * f64::from(t[u])
                });
                assert_near(&got.unwrap(), want);
            }
            let wrong = computed(&gpu, |batch| {
                let x = batch.upload(&[1.0, 2.0]);
                batch.apply(&crossed, &[x, x, x], &[0.5.into()])
            });
            let message = wrong.unwrap_err().to_string();
            assert!(
                message.contains("the last axis of a vec3 has 3 elements, got shape [2]"),
                "{message}"
            );
        }
    });
}

#[test]
fn a_struct_gives_a_value_for_each_field() {
    in_time(|| {
        let of_vectors = KernelDefinition::new(
            "polar",
            "struct Polar { radius: f32, unit: vec2f }
            fn element(p: vec2f) -> Polar { let radius = length(p); return Polar(radius, p / radius); }",
        );
        let of_vectors = of_vectors.cpu_into(|p, _, to| {
            let radius = p[0].hypot(p[1]);
            to.copy_from_slice(&[radius, p[0] / radius, p[1] / radius]);
        });
        let of_vectors = of_vectors.build().unwrap();
        assert_eq!(of_vectors.results(), ["radius", "unit"]);
        let of_numbers = KernelDefinition::new(
            "two",
            "struct Two { more: f32, less: f32 }
            fn element(x: f32) -> Two {
                var y = x;
                for (var k = 0; k < 2; k++) { y *= 2.0; }
                return Two(y, -x);
            }",
        );
        let of_numbers = of_numbers.cpu_into(|x, _, to| to.copy_from_slice(&[x[0] * 4.0, -x[0]]));
        let of_numbers = of_numbers.build().unwrap();
        for gpu in both() {
            let mut batch = gpu.batch();
            let points = batch
                .upload_shaped(&[3.0, 4.0, 0.0, -2.0], &[2, 2])
                .unwrap();
            let message = batch
                .apply(&of_vectors, &[points], &[])
                .unwrap_err()
                .to_string();
            assert!(
                message.contains("polar: it gives several results (radius, unit)"),
                "{message}"
            );
            let fields = batch.apply_fields(&of_vectors, &[points], &[]).unwrap();
            let more = batch.apply_fields(&of_numbers, &[fields[0]], &[]).unwrap();
            batch.keep(fields[0]).unwrap();
            pollster::block_on(batch.execute()).unwrap();
            let read = |value| pollster::block_on(batch.read(value)).unwrap();
            assert_near(&read(fields[0]), [5.0, 2.0]);
            assert_near(&read(fields[1]), [0.6, 0.8, 0.0, -1.0]);
            assert_near(&read(more[0]), [20.0, 8.0]);
            assert_near(&read(more[1]), [-5.0, -2.0]);
        }
        let wrong =
            KernelDefinition::new("wrong", "fn element(x: f32) -> vec2f { return vec2f(x); }");
        let wrong = wrong.cpu(|x, _| x[0]).build().unwrap_err().to_string();
        assert!(wrong.contains("`cpu` gives one number"), "{wrong}");
    });
}
