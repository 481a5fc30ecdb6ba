//! Tensors that stay on the device: what they spare, and what a loss costs.

use framebatch::device::Engine;
use framebatch::{Axes, Code, EngineChoice, Error, Gpu, Preset, Tensor};
use pollster::block_on;

use crate::engines::{both, both_manual, in_time, is_small, manual, open};

/// x + tensor for four floats of x.
fn add(gpu: &Gpu, tensor: &Tensor) -> Result<Vec<f32>, Error> {
    let mut batch = gpu.batch();
    let x = batch.upload(&[1.0, 2.0, 3.0, 4.0]);
    let tensor = batch.tensor(tensor)?;
    let sum = batch.add(x, tensor)?;
    block_on(batch.execute())?;
    block_on(batch.read(sum))
}

fn destroy(gpu: &Gpu) {
    if let Some(device) = gpu.wgpu_device() {
        device.destroy();
    }
}

#[test]
fn a_tensor_goes_up_once() {
    let length = 10_000;
    for gpu in both() {
        let weights = gpu.tensor(&vec![2.0; length], &[100, 100]).unwrap();
        assert_eq!(weights.shape(), [100, 100]);
        let after_upload = gpu.stats().device;
        for _ in 0..5 {
            let mut batch = gpu.batch();
            let row = batch.upload(&[3.0; 100]);
            let weights = batch.tensor(&weights).unwrap();
            let again = batch.scale(weights, 0.5).unwrap();
            let y = batch.mul(again, row).unwrap();
            let y = batch.dot(y, row).unwrap();
            block_on(batch.execute()).unwrap();
            assert_eq!(block_on(batch.read(y)).unwrap(), vec![900.0; 100]);
        }
        let device = gpu.stats().device;
        if gpu.info().engine == Engine::Gpu {
            assert_eq!(after_upload.uploads, 1);
            assert_eq!(device.uploads, 6);
            assert!(device.bytes_up < after_upload.bytes_up + 5 * 4096);
        }
    }
}

#[test]
fn a_tensor_can_be_named_twice_and_read_back() {
    for gpu in both() {
        let tensor = gpu.tensor(&[1.0, -2.0, 3.0], &[3]).unwrap();
        let mut batch = gpu.batch();
        let [a, b] = [(); 2].map(|()| batch.tensor(&tensor).unwrap());
        assert_eq!(a, b);
        let square = batch.mul(a, b).unwrap();
        batch.keep(a).unwrap();
        block_on(batch.execute()).unwrap();
        assert_eq!(block_on(batch.read(square)).unwrap(), [1.0, 4.0, 9.0]);
        assert_eq!(block_on(batch.read(a)).unwrap(), [1.0, -2.0, 3.0]);
    }
}

#[test]
fn a_tensor_without_elements_is_one() {
    for gpu in both() {
        let none = gpu.tensor(&[], &[0, 4]).unwrap();
        let mut batch = gpu.batch();
        let none = batch.tensor(&none).unwrap();
        let dots = batch.dot(none, none).unwrap();
        let x = batch.upload(&[1.0]);
        let y = batch.relu(x).unwrap();
        block_on(batch.execute()).unwrap();
        assert_eq!(block_on(batch.read(dots)).unwrap(), [0.0; 0]);
        assert_eq!(block_on(batch.read(y)).unwrap(), [1.0]);
    }
}

#[test]
fn a_sum_over_a_tensor_without_elements_is_zero() {
    for gpu in both() {
        let none = gpu.tensor(&[], &[0]).unwrap();
        let mut batch = gpu.batch();
        let x = batch.upload_shaped(&[], &[2, 0]).unwrap();
        let none = batch.tensor(&none).unwrap();
        let scaled = batch.mul(x, none).unwrap();
        let sums = batch.sum(scaled, Axes::of(&[1])).unwrap();
        block_on(batch.execute()).unwrap();
        assert_eq!(block_on(batch.read(sums)).unwrap(), [0.0, 0.0]);
    }
}

#[test]
fn the_last_clone_frees_a_tensor_when_nobody_reads_it() {
    let [_, gpu] = both_manual();
    let held = || {
        let device = gpu.stats().device;
        (device.pool_buffers, device.pool_bytes)
    };
    let use_one = || {
        let before = held();
        // 64 KiB: a smaller tensor shares a buffer with others.
        let tensor = gpu.tensor(&[5.0; 1 << 14], &[4, 4096]).unwrap();
        let clone = tensor.clone();
        drop(tensor);
        let with_it = (before.0 + 1, before.1 + 4 * (1 << 14));
        assert_eq!(held(), with_it);
        let mut batch = gpu.batch();
        let value = batch.tensor(&clone).unwrap();
        let dots = batch.dot(value, value).unwrap();
        let execution = batch.execute();
        drop(clone);
        assert_eq!(held(), with_it, "a call still reads it");
        gpu.flush();
        block_on(execution).unwrap();
        assert_eq!(block_on(batch.read(dots)).unwrap(), [25.0 * 4096.0; 4]);
    };
    use_one(); // Makes the buffers of a batch.
    let before = held();
    use_one();
    assert_eq!(held(), before);
    // Small ones share a slab, which is kept for the next ones.
    drop(gpu.tensor(&[1.0], &[1]).unwrap());
    let with_slab = held();
    assert_eq!(with_slab.0, before.0 + 1);
    // A slab has 1 MiB. Where the memory budget is small, small tensors have buffers of their own.
    assert!([16, 1 << 20].contains(&(with_slab.1 - before.1)));
    for value in [2.0, 3.0] {
        drop(gpu.tensor(&[value; 4], &[4]).unwrap());
        assert_eq!(held(), with_slab);
    }
    if is_small() {
        return; // A thousand tensors find no room there.
    }
    // One slab is kept, however many there were: these took sixteen.
    let many: Vec<_> = (0..1000)
        .map(|_| gpu.tensor(&[1.0; 1 << 12], &[1 << 12]))
        .collect();
    assert!(held().0 > with_slab.0);
    drop(many);
    assert_eq!(held(), with_slab);
}

#[test]
fn a_loss_restores_tensors_from_their_source() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let tensors = [10.0, 20.0].map(|value| gpu.tensor(&[value; 4], &[4]).unwrap());
        for round in 0..3 {
            for (tensor, value) in tensors.iter().zip([10.0, 20.0]) {
                let expected = [1.0, 2.0, 3.0, 4.0].map(|x| x + value);
                assert_eq!(add(&gpu, tensor).unwrap(), expected, "round {round}");
            }
            destroy(&gpu);
        }
        assert_eq!(gpu.info().engine, Engine::Gpu);
    });
}

#[test]
fn calls_on_their_way_when_the_device_goes_are_computed_on_the_next() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        let tensor = gpu.tensor(&[10.0; 4], &[4]).unwrap();
        let mut batches: Vec<_> = (0..40)
            .map(|_| {
                let mut batch = gpu.batch();
                let x = batch.upload(&[1.0; 4]);
                let tensor = batch.tensor(&tensor).unwrap();
                let sum = batch.add(x, tensor).unwrap();
                (batch, sum)
            })
            .collect();
        let running: Vec<_> = batches
            .iter_mut()
            .map(|(batch, _)| batch.execute())
            .collect();
        destroy(&gpu);
        gpu.flush();
        for execution in running {
            block_on(execution).unwrap();
        }
        for (batch, sum) in &batches {
            assert_eq!(block_on(batch.read(*sum)).unwrap(), [11.0; 4]);
        }
    });
}

#[test]
fn what_has_no_source_is_lost_with_the_device() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        let kept = gpu.tensor(&[10.0; 4], &[4]).unwrap();
        let gone = gpu.tensor(&[20.0; 4], &[4]).unwrap().without_source();
        let mut batches = [&kept, &gone].map(|tensor| {
            let mut batch = gpu.batch();
            let tensor = batch.tensor(tensor).unwrap();
            let y = batch.scale(tensor, 2.0).unwrap();
            (batch, y)
        });
        // A batch from before the loss, which is executed after it.
        let mut late = gpu.batch();
        let value = late.tensor(&gone).unwrap();
        late.relu(value).unwrap();
        let [first, second] = batches.each_mut().map(|(batch, _)| batch.execute());
        destroy(&gpu);
        gpu.flush();
        block_on(first).unwrap();
        let error = block_on(second).unwrap_err();
        assert_eq!(error.code(), Code::DeviceLost);
        assert!(error.to_string().contains("keep its source"), "{error}");
        assert_eq!(
            block_on(batches[0].0.read(batches[0].1)).unwrap(),
            [20.0; 4]
        );

        let codes = [
            gpu.batch().tensor(&gone).map(|_| ()),
            block_on(late.execute()),
        ]
        .map(|outcome| outcome.unwrap_err().code());
        assert_eq!(codes, [Code::DeviceLost; 2]);
        let again = gpu.tensor(&[20.0; 4], &[4]).unwrap();
        let mut batch = gpu.batch();
        let value = batch.tensor(&again).unwrap();
        let y = batch.relu(value).unwrap();
        let execution = batch.execute();
        gpu.flush();
        block_on(execution).unwrap();
        assert_eq!(block_on(batch.read(y)).unwrap(), [20.0; 4]);
    });
}

#[test]
fn the_cpu_takes_tensors_over() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let tensor = gpu.tensor(&[10.0; 4], &[4]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(device) = gpu.wgpu_device() {
                    device.destroy();
                    std::thread::yield_now();
                }
            });
            while gpu.info().engine == Engine::Gpu {
                if let Err(error) = add(&gpu, &tensor) {
                    assert_eq!(error.code(), Code::DeviceLost, "{error}");
                }
            }
        });
        assert_eq!(add(&gpu, &tensor).unwrap(), [11.0, 12.0, 13.0, 14.0]);
    });
}
