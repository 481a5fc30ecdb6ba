//! Functions of one and of two values, against float64, with the bounds that
//! `kernel::generated` states.

use framebatch::{Batch, Blocking, Call, Error, Gpu, Value};
use pollster::block_on;

use crate::bounds::{U, near};
use crate::engines::both;
use crate::samples::Samples;

type Unary = (
    &'static str,
    fn(&mut Batch<'_>, Value) -> Result<Value, Error>,
    fn(&Gpu, &[f32]) -> Call<f32>,
    fn(&Blocking, &[f32]) -> Result<Vec<f32>, Error>,
    fn(f64) -> f64,
    fn(f64) -> f64,
);

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The normal distribution, summed up from 0 by Simpson's rule.
fn normal(x: f64) -> f64 {
    let (steps, density) = (2000, |x: f64| (-x * x / 2.0).exp());
    let step = x / f64::from(steps);
    let weight = |k: i32| match k {
        0 => 1.0,
        k if k == steps => 1.0,
        k if k % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=steps)
        .map(|k| weight(k) * density(f64::from(k) * step))
        .sum();
    0.5 + sum * step / 3.0 / (2.0 * std::f64::consts::PI).sqrt()
}

/// Name, three ways to ask, what is right, and how far off it may be.
const UNARY: [Unary; 5] = [
    (
        "relu",
        |batch, x| batch.relu(x),
        Gpu::relu,
        Blocking::relu,
        |x| x.max(0.0),
        |_| 0.0,
    ),
    (
        "sigmoid",
        |batch, x| batch.sigmoid(x),
        Gpu::sigmoid,
        Blocking::sigmoid,
        sigmoid,
        |x| (16.0 + 4.0 * x.abs()) * U * sigmoid(x),
    ),
    (
        "tanh",
        |batch, x| batch.tanh(x),
        Gpu::tanh,
        Blocking::tanh,
        f64::tanh,
        |x| 24.0 * U * x.tanh().abs(),
    ),
    (
        "swish",
        |batch, x| batch.swish(x),
        Gpu::swish,
        Blocking::swish,
        |x| x * sigmoid(x),
        |x| (16.0 + 4.0 * x.abs()) * U * (x * sigmoid(x)).abs(),
    ),
    (
        "gelu",
        |batch, x| batch.gelu(x),
        Gpu::gelu,
        Blocking::gelu,
        |x| x * normal(x),
        |x| (32.0 + 8.0 * x * x) * U * (x * normal(x)).abs() + 4.0 * U * x.abs(),
    ),
];

type Binary = (
    &'static str,
    fn(&mut Batch<'_>, Value, Value) -> Result<Value, Error>,
    fn(&Gpu, &[f32], &[f32]) -> Call<f32>,
    fn(&Blocking, &[f32], &[f32]) -> Result<Vec<f32>, Error>,
    fn(f64, f64) -> f64,
);

const BINARY: [Binary; 3] = [
    (
        "add",
        |batch, a, b| batch.add(a, b),
        Gpu::add,
        Blocking::add,
        |a, b| a + b,
    ),
    (
        "sub",
        |batch, a, b| batch.sub(a, b),
        Gpu::sub,
        Blocking::sub,
        |a, b| a - b,
    ),
    (
        "mul",
        |batch, a, b| batch.mul(a, b),
        Gpu::mul,
        Blocking::mul,
        |a, b| a * b,
    ),
];

/// Signs, zeros, small and large numbers.
fn numbers() -> Vec<f32> {
    let mut samples = Samples(7);
    let mut numbers = vec![0.0, 1.0, -1.0, 0.5, -7.5, 8.0, 1e-6, -1e-6];
    numbers.extend((0..91).map(|_| samples.unit() * 12.0 - 6.0));
    numbers
}

#[test]
fn functions_of_one_value_are_as_exact_as_stated() {
    let x = numbers();
    for gpu in both() {
        for (name, record, call, blocking, right, bound) in UNARY {
            let expected = || {
                x.iter()
                    .map(|x| (right(f64::from(*x)), bound(f64::from(*x))))
            };
            let mut batch = gpu.batch();
            let value = batch.upload(&x);
            let y = record(&mut batch, value).unwrap();
            block_on(batch.execute()).unwrap();
            let got = block_on(batch.read(y)).unwrap();
            near(name, &got, expected());
            // The ways give the same bits.
            assert_eq!(block_on(call(&gpu, &x)).unwrap(), got, "{name}");
            assert_eq!(blocking(&gpu.blocking(), &x).unwrap(), got, "{name}");
        }
        let scaled = block_on(gpu.scale(&x, -2.5)).unwrap();
        assert_eq!(scaled, gpu.blocking().scale(&x, -2.5).unwrap());
        let expected = x.iter().map(|x| f64::from(*x) * -2.5);
        near("scale", &scaled, expected.map(|v| (v, U * v.abs())));
    }
}

#[test]
fn functions_of_two_values_are_as_exact_as_stated() {
    let a = numbers();
    let b: Vec<f32> = numbers().into_iter().rev().collect();
    for gpu in both() {
        for (name, record, call, blocking, right) in BINARY {
            for b in [&b[..], &b[3..4]] {
                let pairs = a.iter().zip(b.iter().cycle());
                let values = pairs.map(|(a, b)| right(f64::from(*a), f64::from(*b)));
                let values: Vec<f64> = values.collect();
                let got = block_on(call(&gpu, &a, b)).unwrap();
                near(name, &got, values.iter().map(|v| (*v, U * v.abs())));
                assert_eq!(blocking(&gpu.blocking(), &a, b).unwrap(), got, "{name}");
                let mut batch = gpu.batch();
                let [left, right] = [batch.upload(&a), batch.upload(b)];
                let y = record(&mut batch, left, right).unwrap();
                block_on(batch.execute()).unwrap();
                assert_eq!(block_on(batch.read(y)).unwrap(), got, "{name}");
            }
        }
    }
}
