//! What simulations ask of the builder, against float64 on both engines: waves, whole numbers,
//! angles, remainders, comparisons and conditions, of plain and of packed tensors.

use framebatch::{Batch, Error, Gpu, Storage, Value};
use pollster::block_on;

use crate::bounds::{U, near};
use crate::engines::both;
use crate::samples::Samples;

/// What is recorded of three values, and what it gives for one element of each.
type Case = (
    &'static str,
    fn(&mut Batch<'_>, [Value; 3]) -> Result<Value, Error>,
    fn([f64; 3]) -> f64,
    fn(f64) -> f64,
);

fn exactly(_: f64) -> f64 {
    0.0
}

/// Name, how it is asked, what is right, and how far off it may be.
const CASES: [Case; 16] = [
    ("sin", |g, [a, ..]| g.sin(a), |[a, ..]| a.sin(), |_| 4.0 * U),
    ("cos", |g, [a, ..]| g.cos(a), |[a, ..]| a.cos(), |_| 4.0 * U),
    (
        "floor",
        |g, [a, ..]| g.floor(a),
        |[a, ..]| a.floor(),
        exactly,
    ),
    ("ceil", |g, [a, ..]| g.ceil(a), |[a, ..]| a.ceil(), exactly),
    (
        "round",
        |g, [a, ..]| g.round(a),
        |[a, ..]| a.round_ties_even(),
        exactly,
    ),
    (
        "sign",
        |g, [a, ..]| g.sign(a),
        |[a, ..]| a.signum(),
        exactly,
    ),
    (
        "mod",
        |g, [a, b, _]| g.mod_(a, b),
        |[a, b, _]| {
            let rest = a % b;
            let is_other = rest != 0.0 && (rest < 0.0) != (b < 0.0);
            if is_other { rest + b } else { rest }
        },
        |v| U * v.abs(),
    ),
    (
        "atan2",
        |g, [a, b, _]| g.atan2(a, b),
        |[a, b, _]| a.atan2(b),
        |v| 16.0 * U * v.abs(),
    ),
    (
        "less",
        |g, [a, b, _]| g.less(a, b),
        |[a, b, _]| f64::from(a < b),
        exactly,
    ),
    (
        "less_equal",
        |g, [a, b, _]| g.less_equal(a, b),
        |[a, b, _]| f64::from(a <= b),
        exactly,
    ),
    (
        "greater",
        |g, [a, b, _]| g.greater(a, b),
        |[a, b, _]| f64::from(a > b),
        exactly,
    ),
    (
        "greater_equal",
        |g, [a, b, _]| g.greater_equal(a, b),
        |[a, b, _]| f64::from(a >= b),
        exactly,
    ),
    (
        "equal",
        |g, [a, _, c]| g.equal(a, c),
        |[a, _, c]| f64::from(a == c),
        exactly,
    ),
    (
        "not_equal",
        |g, [a, _, c]| g.not_equal(a, c),
        |[a, _, c]| f64::from(a != c),
        exactly,
    ),
    (
        "where",
        |g, [a, b, c]| g.where_(c, a, b),
        |[a, b, c]| if c == 0.0 { b } else { a },
        exactly,
    ),
    (
        "a step of a wrapped world",
        |g, [a, b, c]| {
            let size = g.number(4.0)?;
            let two = g.number(2.0)?;
            let moved = g.add(a, c)?;
            let wrapped = g.mod_(moved, size)?;
            let is_right = g.greater(wrapped, two)?;
            let back = g.neg(b)?;
            g.where_(is_right, back, b)
        },
        |[a, b, c]| {
            // The sum of these numbers is exact in 32 bits.
            if (a + c).rem_euclid(4.0) > 2.0 { -b } else { b }
        },
        exactly,
    ),
];

/// Halves and quarters, which all kinds of storage but those in blocks keep, and of which many are equal.
fn quarters(count: usize, seed: u32) -> Vec<f32> {
    let mut samples = Samples(seed.into());
    let quarter = |_| (samples.unit() * 40.0).floor() / 4.0 - 4.875;
    (0..count).map(quarter).collect()
}

/// Whole numbers from -2 to 2, of which a fifth is 0.
fn wholes(count: usize) -> Vec<f32> {
    let mut samples = Samples(11);
    (0..count)
        .map(|_| (samples.unit() * 5.0).floor() - 2.0)
        .collect()
}

#[test]
fn operations_give_what_they_say_and_broadcast() {
    let (a, b, c) = (quarters(35, 3), quarters(7, 5), wholes(5));
    for gpu in both() {
        for (name, record, right, bound) in CASES {
            let mut batch = gpu.batch();
            let matrix = batch.upload_shaped(&a, &[5, 7]).unwrap();
            let row = batch.upload(&b);
            let column = batch.upload_shaped(&c, &[5, 1]).unwrap();
            let y = record(&mut batch, [matrix, row, column]).unwrap();
            assert_eq!(batch.shape(y).unwrap(), [5, 7], "{name}");
            block_on(batch.execute()).unwrap();
            let got = block_on(batch.read(y)).unwrap();
            let expected = a.iter().enumerate().map(|(i, a)| {
                let v = right([*a, b[i % 7], c[i / 7]].map(f64::from));
                (v, bound(v))
            });
            near(name, &got, expected);
        }
    }
}

/// Packed operands are computed with the values that were kept.
#[test]
fn packed_operands_give_what_their_kept_values_do() {
    let (a, b, c) = (quarters(64, 7), quarters(64, 9), wholes(64));
    for gpu in both() {
        for storage in [Storage::F16, Storage::Bf16, Storage::Int8, Storage::Int4] {
            let packed = [&a, &b, &c].map(|data| gpu.tensor_as(data, &[64], storage).unwrap());
            let mut kept = Vec::new();
            for tensor in &packed {
                let mut batch = gpu.batch();
                let x = batch.tensor(tensor).unwrap();
                batch.keep(x).unwrap();
                block_on(batch.execute()).unwrap();
                kept.push(block_on(batch.read(x)).unwrap());
            }
            for (name, record, ..) in CASES {
                let mut batch = gpu.batch();
                let [x, y, z] = [0, 1, 2].map(|of| batch.tensor(&packed[of]).unwrap());
                let from_packed = record(&mut batch, [x, y, z]).unwrap();
                block_on(batch.execute()).unwrap();
                let mut plain = gpu.batch();
                let values = [0, 1, 2].map(|of| plain.upload(&kept[of]));
                let from_plain = record(&mut plain, values).unwrap();
                block_on(plain.execute()).unwrap();
                let got = block_on(batch.read(from_packed)).unwrap();
                let expected = block_on(plain.read(from_plain)).unwrap();
                // The rest by 0 is NaN.
                let is_same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
                let are_same = got.iter().zip(&expected).all(is_same);
                assert!(are_same, "{name} of {storage:?}: {got:?}, {expected:?}");
            }
        }
    }
}

/// A batch of a step of everything.
fn step<'a>(gpu: &Gpu, a: &'a [f32], b: &'a [f32]) -> Batch<'a> {
    let mut batch = gpu.batch();
    let [x, y] = [batch.upload(a), batch.upload(b)];
    let angle = batch.atan2(y, x).unwrap();
    let wave = batch.sin(angle).unwrap();
    let rest = batch.mod_(wave, x).unwrap();
    let is_less = batch.less(rest, y).unwrap();
    batch.where_(is_less, rest, angle).unwrap();
    batch
}

#[test]
fn a_step_is_explained_as_one_dispatch_and_compiled_ahead() {
    let (a, b) = (quarters(64, 13), quarters(64, 15));
    for gpu in both() {
        let record = |gpu: &Gpu| {
            let sent = block_on(step(gpu, &a, &b).execute());
            assert!(sent.is_err(), "neither sends it");
        };
        let plan = gpu.explain(record);
        assert_eq!(plan.matches("dispatch").count(), 1, "{plan}");
        assert!(plan.contains("where(less("), "{plan}");
        block_on(gpu.warmup(record)).unwrap();
        let compiled = gpu.stats().device.pipelines_compiled;
        block_on(step(&gpu, &a, &b).execute()).unwrap();
        assert_eq!(gpu.stats().device.pipelines_compiled, compiled);
    }
}
