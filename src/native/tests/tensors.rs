//! Batches and tensors under random schedules: whatever is lost, a value is right, or its error says
//! what was lost.

use super::*;
use crate::native::Tensor;

/// value + tensor, which is 1.
fn add(gpu: &Gpu, tensor: &Tensor, value: u16) -> Result<Vec<f32>, Error> {
    let mut batch = gpu.batch();
    let x = batch.upload(vec![f32::from(value)]);
    let tensor = batch.tensor(tensor)?;
    let sum = batch.add(x, tensor)?;
    block_on(batch.execute())?;
    batch.read(sum).wait()
}

/// Threads that share a tensor, and make and drop others.
fn share(gpu: &Gpu, shared: Tensor, own: fn(Tensor) -> Tensor, allowed: &'static [Code]) {
    let asking: Vec<JoinHandle<()>> = (0..3)
        .map(|number| {
            let (gpu, shared) = (gpu.clone(), shared.clone());
            thread::spawn(move || {
                check(number, add(&gpu, &shared, number), allowed);
                drop(shared);
                let Ok(tensor) = gpu.tensor(&[1.0], &[1]) else {
                    return; // The session is over.
                };
                let tensor = own(tensor);
                check(7, add(&gpu, &tensor, 7), allowed);
                let dropped = {
                    let mut batch = gpu.batch();
                    let one = batch.tensor(&tensor).and_then(|one| batch.relu(one));
                    drop(tensor);
                    one.map(|_| drop(batch.execute()))
                };
                let is_told = |error: Error| assert!(allowed.contains(&error.code()), "{error}");
                dropped.unwrap_or_else(is_told);
            })
        })
        .collect();
    drop(shared);
    join(asking);
}

fn assert_nothing_held(gpu: &Gpu) {
    assert_quiet(gpu.shared());
    assert!(gpu.shared().lock().residents.sources.is_empty());
}

#[test]
fn tensors_are_made_again_under_everyone() {
    explore(ROUGH, eager(), |gpu| {
        let shared = gpu.tensor(&[1.0], &[1]).unwrap();
        share(&gpu, shared, |tensor| tensor, ROUGHLY);
        assert_nothing_held(&gpu);
    });
}

#[test]
fn tensors_without_a_source_are_right_or_lost() {
    explore(ROUGH, eager(), |gpu| {
        let shared = gpu.tensor(&[1.0], &[1]).unwrap().without_source();
        share(&gpu, shared, Tensor::without_source, ROUGHLY);
        assert_nothing_held(&gpu);
    });
}

#[test]
fn tensors_that_nobody_loses_are_always_right() {
    explore(KIND, eager(), |gpu| {
        let shared = gpu.tensor(&[1.0], &[1]).unwrap().without_source();
        share(&gpu, shared, |tensor| tensor, &[]);
        assert_nothing_held(&gpu);
    });
}

#[test]
fn tensors_outlive_their_session() {
    explore(ROUGH, eager(), |gpu| {
        let shared = gpu.tensor(&[1.0], &[1]).unwrap();
        let ending = threads(1, &gpu, |gpu, _| gpu.dispose());
        share(&gpu, shared.clone(), |tensor| tensor, ENDING);
        join(ending);
        drop(gpu);
        drop(shared);
    });
}

/// A call that writes a whole tensor needs none of its words, however often devices go.
#[test]
fn a_whole_write_fails_for_no_tensor_that_went_with_its_device() {
    explore(ROUGH, eager(), |gpu| {
        let tensor = gpu.tensor(&[1.0], &[1]).unwrap();
        let reading: Vec<JoinHandle<()>> = (0..2)
            .map(|_| {
                let (gpu, tensor) = (gpu.clone(), tensor.clone());
                thread::spawn(move || drop(block_on(gpu.read(&tensor))))
            })
            .collect();
        let write = || block_on(gpu.write(&tensor, 0, &[2.0]));
        if let Err(error) = write() {
            assert!(!error.to_string().contains("make it again"), "{error}");
        }
        join(reading);
        assert!((0..64).any(|_| write().is_ok()));
        drop(tensor);
        assert_nothing_held(&gpu);
    });
}
