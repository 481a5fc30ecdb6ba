//! Products of vectors, matrices and stacks, against float64.

use framebatch::device::Engine;
use pollster::block_on;

use crate::bounds::{U, near};
use crate::engines::both;
use crate::samples::Samples;

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

/// An array, as NumPy takes it.
#[derive(Clone, Copy)]
struct Array<'a> {
    values: &'a [f32],
    dims: &'a [u32],
}

/// `numpy.matmul` in float64: the shape of the result, and each element with the sum of its
/// absolute products.
fn numpy_matmul(a: Array<'_>, b: Array<'_>) -> (Vec<u32>, Vec<[f64; 2]>) {
    let is_vector = |array: Array<'_>| array.dims.len() == 1;
    // NumPy puts an axis of 1 before a vector on the left, and behind a vector on the right.
    let ofs_a = match is_vector(a) {
        true => [&[1], a.dims].concat(),
        false => a.dims.to_vec(),
    };
    let ofs_b = match is_vector(b) {
        true => [b.dims, &[1]].concat(),
        false => b.dims.to_vec(),
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
                f64::from(a.values[left as usize]) * f64::from(b.values[right as usize])
            });
            values.push([products.clone().sum(), products.map(f64::abs).sum()]);
        }
    }
    let mut dims = stack;
    dims.extend((!is_vector(a)).then_some(rows));
    dims.extend((!is_vector(b)).then_some(columns));
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
        let array = |values, dims| Array { values, dims };
        let (dims, expected) = numpy_matmul(array(&a, of_a), array(&b, of_b));
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
