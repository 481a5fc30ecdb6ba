//! What each operation gives, against float64, with the bounds that
//! `kernel::generated` states.

use framebatch::device::Engine;
use framebatch::{Attention, Batch, Blocking, Call, Error, Gpu, Value};
use pollster::block_on;

use crate::engines::both;
use crate::samples::Samples;

/// Half the distance of floats at 1.
const U: f64 = 1.0 / 16_777_216.0;

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

fn near(name: &str, got: &[f32], expected: impl ExactSizeIterator<Item = (f64, f64)>) {
    assert_eq!(got.len(), expected.len(), "{name}");
    for (i, (got, (value, bound))) in got.iter().zip(expected).enumerate() {
        let off = (f64::from(*got) - value).abs();
        assert!(
            off <= bound + 1.2e-38,
            "{name}[{i}]: {got} instead of {value} ± {bound:e}"
        );
    }
}

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

#[test]
fn products_are_summed_as_exactly_as_stated() {
    for gpu in both() {
        for length in [0, 1, 5, 33, 1000, 4096] {
            let mut samples = Samples(length as u64);
            let (a, b) = (samples.units(length), samples.floats(length));
            let products = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b));
            let products: Vec<f64> = products.collect();
            let size: f64 = products.iter().map(|p| p.abs()).sum();
            let bound = (length as f64 / 64.0 + 9.0) * U * size;
            let expected = (products.iter().sum(), bound);
            let got = block_on(gpu.dot(&a, &b)).unwrap();
            near("dot", &got, [expected].into_iter());
            assert_eq!(gpu.blocking().dot(&a, &b).unwrap(), got);
        }
    }
}

#[test]
fn shapes_broadcast_and_dots_go_along_the_last_axis() {
    let matrix: Vec<f32> = (0..6_u8).map(f32::from).collect();
    for gpu in both() {
        let mut batch = gpu.blocking().batch();
        let rows = batch.upload_shaped(&matrix, &[2, 3]).unwrap();
        let row = batch.upload(&[10.0, 20.0, 30.0]);
        let column = batch.upload_shaped(&[1.0, -1.0], &[2, 1]).unwrap();
        let sum = batch.add(rows, row).unwrap();
        let product = batch.mul(rows, column).unwrap();
        let outer = batch.sub(column, row).unwrap();
        let dots = batch.dot(rows, row).unwrap();
        let shapes = [sum, product, outer, dots].map(|value| batch.shape(value).unwrap().to_vec());
        assert_eq!(shapes, [vec![2, 3], vec![2, 3], vec![2, 3], vec![2]]);
        assert_eq!((batch.num_operations(), batch.num_buffers()), (4, 7));
        batch.execute().unwrap();
        let read = |value| batch.read(value).unwrap();
        assert_eq!(read(sum), [10.0, 21.0, 32.0, 13.0, 24.0, 35.0]);
        assert_eq!(read(product), [0.0, 1.0, 2.0, -3.0, -4.0, -5.0]);
        assert_eq!(read(outer), [-9.0, -19.0, -29.0, -11.0, -21.0, -31.0]);
        assert_eq!(read(dots), [80.0, 260.0]);
    }
}

#[test]
fn results_are_what_nobody_uses_and_what_is_kept() {
    for gpu in both() {
        let mut batch = gpu.batch();
        let x = batch.upload(vec![-1.0, 2.0, 3.0, -4.0, 5.0]); // Owned: it outlives the line.
        let middle = batch.relu(x).unwrap();
        let twice = batch.scale(middle, 2.0).unwrap();
        let thrice = batch.scale(middle, 3.0).unwrap();
        let unused = batch.upload(&[7.0]);
        batch.keep(middle).unwrap();
        batch.keep(unused).unwrap();
        block_on(batch.execute()).unwrap();
        for _ in 0..2 {
            let read = |value| block_on(batch.read(value));
            assert_eq!(read(middle).unwrap(), [0.0, 2.0, 3.0, 0.0, 5.0]);
            assert_eq!(read(twice).unwrap(), [0.0, 4.0, 6.0, 0.0, 10.0]);
            assert_eq!(read(thrice).unwrap(), [0.0, 6.0, 9.0, 0.0, 15.0]);
            assert_eq!(read(unused).unwrap(), [7.0]);
            assert!(read(x).is_err());
        }
    }
}

#[test]
fn arrays_without_elements_need_no_device() {
    for gpu in both() {
        let mut batch = gpu.batch();
        let x = batch.upload_shaped(&[], &[0, 3]).unwrap();
        let row = batch.upload(&[1.0, 2.0, 3.0]);
        let sum = batch.add(x, row).unwrap();
        block_on(batch.execute()).unwrap();
        assert_eq!(block_on(batch.read(sum)).unwrap(), [0.0; 0]);
        assert_eq!(batch.shape(sum).unwrap(), [0, 3]);
        assert_eq!(block_on(gpu.relu(&[])).unwrap(), [0.0; 0]);
        assert_eq!(gpu.stats().calls, 0);
        // Beside one that has some.
        let mut batch = gpu.batch();
        let (x, y) = (batch.upload(&[]), batch.upload(&[2.0]));
        let (none, four) = (batch.relu(x).unwrap(), batch.scale(y, 2.0).unwrap());
        block_on(batch.execute()).unwrap();
        assert_eq!(block_on(batch.read(none)).unwrap(), [0.0; 0]);
        assert_eq!(block_on(batch.read(four)).unwrap(), [4.0]);
    }
}

#[test]
fn large_arrays_come_back_whole() {
    // Beyond what goes in one piece.
    let count = 700_001;
    let x: Vec<f32> = (0..count).map(|i| i as f32 - 1000.0).collect();
    for gpu in both() {
        let mut batch = gpu.batch();
        let value = batch.upload(&x);
        let y = batch.relu(value).unwrap();
        let y = batch.scale(y, 2.0).unwrap();
        let z = batch.add(y, value).unwrap();
        block_on(batch.execute()).unwrap();
        let got = block_on(batch.read(z)).unwrap();
        assert!(
            got.len() == x.len() && got.iter().zip(&x).all(|(z, x)| *z == x.max(0.0) * 2.0 + x)
        );
    }
}

#[test]
fn three_operations_are_two_transfers_instead_of_six() {
    let [_, gpu] = both();
    assert_eq!(gpu.info().engine, Engine::Gpu);
    let x: Vec<f32> = (0..10_000_u16).map(f32::from).collect();
    let old = gpu.blocking();
    let transfers = || {
        let device = gpu.stats().device;
        (device.uploads, device.readbacks, device.dispatches)
    };
    let y = old.relu(&x).unwrap();
    let y = old.scale(&y, 2.0).unwrap();
    let one_by_one = old.add(&y, &x).unwrap();
    assert_eq!(transfers(), (3, 3, 3));
    let mut batch = old.batch();
    let value = batch.upload(&x);
    let y = batch.relu(value).unwrap();
    let y = batch.scale(y, 2.0).unwrap();
    let z = batch.add(y, value).unwrap();
    batch.execute().unwrap();
    assert_eq!(transfers(), (4, 4, 4));
    assert_eq!(batch.read(z).unwrap(), one_by_one);
    // Five are two transfers as well.
    let mut batch = old.batch();
    let value = batch.upload(&x);
    let y = batch.relu(value).unwrap();
    let y = batch.scale(y, 2.0).unwrap();
    let y = batch.add(y, value).unwrap();
    let y = batch.mul(y, value).unwrap();
    let z = batch.relu(y).unwrap();
    batch.execute().unwrap();
    assert_eq!(transfers(), (5, 5, 5));
    let z = batch.read(z).unwrap();
    assert!(z.iter().zip(&x).all(|(z, x)| *z == 3.0 * x * x));
}

#[test]
fn products_of_matrices_and_what_follows() {
    let dims = [70_u32, 33, 65];
    let [rows, inner, columns] = dims.map(|dim| dim as usize);
    let mut samples = Samples(11);
    let [a, b] = [rows * inner, inner * columns].map(|count| samples.floats(count));
    let bias = samples.floats(columns);
    for gpu in both() {
        let mut batch = gpu.batch();
        let x = batch.upload_shaped(&a, &dims[..2]).unwrap();
        let w = batch.upload_shaped(&b, &dims[1..]).unwrap();
        let c = batch.upload(&bias);
        let y = batch.matmul(x, w).unwrap();
        let y = batch.add(y, c).unwrap();
        let y = batch.relu(y).unwrap();
        assert_eq!(batch.shape(y).unwrap(), [dims[0], dims[2]]);
        block_on(batch.execute()).unwrap();
        let got = block_on(batch.read(y)).unwrap();
        if gpu.info().engine == Engine::Gpu {
            assert_eq!(gpu.stats().device.dispatches, 1);
        }
        for (i, got) in got.iter().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let products = (0..inner)
                .map(|k| f64::from(a[row * inner + k]) * f64::from(b[k * columns + column]));
            let size: f64 = products.clone().map(f64::abs).sum();
            let sum = products.sum::<f64>() + f64::from(bias[column]);
            let bound = (inner as f64 + 1.0) * U * (size + sum.abs());
            let off = (f64::from(*got) - sum.max(0.0)).abs();
            assert!(off <= bound, "element {i} is off by {off:e}");
        }
    }
}

/// `numpy.matmul` in float64, element by element; each with the sum of absolute products.
fn numpy_matmul(a: (&[f32], &[u32]), b: (&[f32], &[u32])) -> (Vec<u32>, Vec<[f64; 2]>) {
    // The axis that NumPy puts before a vector on the left, and behind one on the right.
    let ofs_a = if a.1.len() == 1 {
        [&[1], a.1].concat()
    } else {
        a.1.to_vec()
    };
    let ofs_b = if b.1.len() == 1 {
        [b.1, &[1]].concat()
    } else {
        b.1.to_vec()
    };
    let (stack_a, of_a) = ofs_a.split_at(ofs_a.len() - 2);
    let (stack_b, of_b) = ofs_b.split_at(ofs_b.len() - 2);
    let rank = stack_a.len().max(stack_b.len());
    let dim = |stack: &[u32], axis: usize| match (axis + stack.len()).checked_sub(rank) {
        Some(own) => stack[own],
        None => 1,
    };
    let stack: Vec<u32> = (0..rank)
        .map(|axis| match (dim(stack_a, axis), dim(stack_b, axis)) {
            (1, other) => other,
            (own, _) => own,
        })
        .collect();
    let ([rows, inner], [_, columns]) = ([of_a[0], of_a[1]], [of_b[0], of_b[1]]);
    let matrix = |own: &[u32], number: u32| {
        let (mut at, mut rest, mut step) = (0, number, 1);
        for axis in (0..rank).rev() {
            let place = rest % stack[axis];
            rest /= stack[axis];
            at += place.min(dim(own, axis) - 1) * step;
            step *= dim(own, axis);
        }
        at
    };
    let mut values = Vec::new();
    for number in 0..stack.iter().product() {
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |c| (row, c))) {
            let products = (0..inner).map(|k| {
                let left = (matrix(stack_a, number) * rows + row) * inner + k;
                let right = (matrix(stack_b, number) * inner + k) * columns + column;
                f64::from(a.0[left as usize]) * f64::from(b.0[right as usize])
            });
            values.push([products.clone().sum(), products.map(f64::abs).sum()]);
        }
    }
    let mut dims = stack;
    dims.extend((a.1.len() > 1).then_some(rows));
    dims.extend((b.1.len() > 1).then_some(columns));
    (dims, values)
}

#[test]
fn products_of_vectors_matrices_and_stacks_are_those_of_numpy() {
    // The first seven are the cases of ONNX's MatMul, by their names there.
    let cases: [(&str, &[u32], &[u32]); 14] = [
        ("1d_1d", &[3], &[3]),
        ("1d_3d", &[4], &[2, 4, 1]),
        ("4d_1d", &[3, 1, 4, 2], &[2]),
        ("2d", &[3, 4], &[4, 3]),
        ("3d", &[2, 3, 4], &[2, 4, 3]),
        ("4d", &[1, 2, 3, 4], &[1, 2, 4, 3]),
        ("bcast", &[3, 1, 3, 4], &[1, 2, 4, 2]),
        ("a row of weights", &[33], &[33, 70]),
        ("a column", &[70, 33], &[33]),
        ("long vectors", &[5000], &[5000]),
        ("one element", &[1], &[1]),
        ("a row and one matrix of a stack", &[5], &[1, 1, 5, 2]),
        ("nothing", &[3], &[3, 0]),
        ("a stack of nothing", &[2, 0, 3], &[3]),
    ];
    let mut samples = Samples(12);
    for (name, of_a, of_b) in cases {
        let [a, b] = [of_a, of_b].map(|dims| samples.floats(dims.iter().product::<u32>() as usize));
        let (dims, expected) = numpy_matmul((&a, of_a), (&b, of_b));
        let bound = f64::from(of_a[of_a.len() - 1]) * U;
        for gpu in both() {
            let mut batch = gpu.batch();
            let x = batch.upload_shaped(&a, of_a).unwrap();
            let w = batch.upload_shaped(&b, of_b).unwrap();
            let y = batch.matmul(x, w).unwrap();
            assert_eq!(batch.shape(y).unwrap(), dims, "{name}");
            assert_eq!(batch.num_operations(), 1);
            block_on(batch.execute()).unwrap();
            let got = block_on(batch.read(y)).unwrap();
            assert_eq!(got.len(), expected.len(), "{name}");
            for (i, (got, [sum, size])) in got.iter().zip(&expected).enumerate() {
                let off = (f64::from(*got) - sum).abs();
                assert!(off <= bound * size, "{name}: element {i} is off by {off:e}");
            }
        }
    }
}

#[test]
fn attention_of_several_heads() {
    let (heads, size, queries, keys) = (3_usize, 5_usize, 40_usize, 37_usize);
    let width = heads * size;
    let mut samples = Samples(13);
    let [q, k, v] = [queries, keys, keys].map(|rows| samples.units(rows * width));
    let dims = |rows: usize| [rows as u32, width as u32];
    for gpu in both() {
        let mut batch = gpu.batch();
        let x = batch.upload_shaped(&q, &dims(queries)).unwrap();
        let y = batch.upload_shaped(&k, &dims(keys)).unwrap();
        let z = batch.upload_shaped(&v, &dims(keys)).unwrap();
        let usual = batch.attention(x, y, z, Attention::heads(3)).unwrap();
        let causal = Attention {
            scale: Some(0.25),
            is_causal: true,
            ..Attention::heads(3)
        };
        let causal = batch.attention(y, y, z, causal).unwrap();
        assert_eq!(batch.shape(usual).unwrap(), dims(queries));
        block_on(batch.execute()).unwrap();
        if gpu.info().engine == Engine::Gpu {
            assert_eq!(gpu.stats().device.dispatches, 2);
        }
        let usual = block_on(batch.read(usual)).unwrap();
        let causal = block_on(batch.read(causal)).unwrap();
        let root = 1.0 / (size as f64).sqrt();
        for (results, q, scale, is_causal) in [(usual, &q, root, false), (causal, &k, 0.25, true)] {
            for (i, got) in results.iter().enumerate() {
                let (row, column) = (i / width, i % width);
                let seen = if is_causal { row + 1 } else { keys };
                let head = column / size * size..column / size * size + size;
                let weights: Vec<f64> = (0..seen)
                    .map(|key| {
                        let products = head.clone().map(|at| {
                            f64::from(q[row * width + at]) * f64::from(k[key * width + at])
                        });
                        (products.sum::<f64>() * scale).exp()
                    })
                    .collect();
                let weighed = weights.iter().enumerate();
                let sum: f64 = weighed
                    .map(|(key, weight)| weight * f64::from(v[key * width + column]))
                    .sum();
                let off = (f64::from(*got) - sum / weights.iter().sum::<f64>()).abs();
                assert!(off < 2e-6, "element {i} is off by {off:e}");
            }
        }
    }
}
