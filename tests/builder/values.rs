//! The values of a batch: their shapes, which of them are results, and what moving them to a
//! device and back costs.

use framebatch::device::Engine;
use pollster::block_on;

use crate::engines::both;

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
        let x = batch.upload(vec![-1.0, 2.0, 3.0, -4.0, 5.0]); // The vector is moved in: a borrowed one would have to outlive the batch.
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
        // The same beside an array that has elements.
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
