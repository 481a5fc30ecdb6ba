//! Results that stay in tensors: what later calls find, what is refused, and what a loss costs.

use std::sync::Arc;

use framebatch::device::Engine;
use framebatch::{
    Axes, Batch, BatchConfig, Call, Capacity, Code, EngineChoice, Error, Gpu, Overflow, Preset,
    Storage, Tensor, Value,
};
use pollster::block_on;

use crate::engines::{both, both_manual, in_time, manual, open};

/// x + number.
fn more(batch: &mut Batch<'_>, x: Value, number: f32) -> Result<Value, Error> {
    let number = batch.number(number)?;
    batch.add(x, number)
}

/// Asks for tensor = tensor + 1.
fn step(gpu: &Gpu, tensor: &Tensor) -> Result<(), Error> {
    let mut batch = gpu.batch();
    let x = batch.tensor(tensor)?;
    let next = more(&mut batch, x, 1.0)?;
    batch.compute_into(next, tensor)?;
    block_on(batch.execute())
}

/// Asks for tensor = value everywhere.
fn fill(gpu: &Gpu, tensor: &Tensor, value: f32) -> Result<(), Error> {
    let count = tensor.shape().iter().product::<u32>();
    let mut batch = gpu.batch();
    let x = batch.upload_shaped(vec![value; count as usize], tensor.shape())?;
    batch.compute_into(x, tensor)?;
    block_on(batch.execute())
}

/// A tensor that a batch computes, which is executed.
fn computed(gpu: &Gpu, floats: &[f32]) -> Tensor {
    let mut batch = gpu.batch();
    let x = batch.upload(floats);
    let doubled = batch.scale(x, 2.0).unwrap();
    let tensor = batch.compute(doubled).unwrap();
    block_on(batch.execute()).unwrap();
    tensor
}

fn destroy(gpu: &Gpu) {
    if let Some(device) = gpu.wgpu_device() {
        device.destroy();
    }
}

fn read(gpu: &Gpu, tensor: &Tensor) -> Result<Vec<f32>, Error> {
    block_on(gpu.read(tensor))
}

#[test]
fn a_computed_tensor_is_one_like_any_other() {
    for gpu in both() {
        let before = gpu.stats().device.bytes_down;
        let tensor = computed(&gpu, &[1.0, 2.0, 3.0]);
        assert_eq!(tensor.shape(), [3]);
        assert_eq!(gpu.stats().device.bytes_down, before, "nothing comes back");
        assert_eq!(read(&gpu, &tensor).unwrap(), [2.0, 4.0, 6.0]);
        step(&gpu, &tensor).unwrap();
        assert_eq!(read(&gpu, &tensor).unwrap(), [3.0, 5.0, 7.0]);
        let empty = computed(&gpu, &[]);
        assert_eq!(read(&gpu, &empty).unwrap(), [0.0; 0]);
    }
}

#[test]
fn all_of_a_batch_sees_tensors_as_they_are_when_it_is_executed() {
    for gpu in both_manual() {
        let (a, b) = (
            gpu.tensor(&[1.0, 2.0], &[2]).unwrap(),
            gpu.tensor(&[10.0, 20.0], &[2]).unwrap(),
        );
        let mut batch = gpu.batch();
        let (x, y) = (batch.tensor(&a).unwrap(), batch.tensor(&b).unwrap());
        let sum = batch.add(x, y).unwrap();
        let product = batch.mul(x, y).unwrap();
        batch.compute_into(y, &a).unwrap();
        batch.compute_into(sum, &b).unwrap();
        batch.keep(sum).unwrap();
        batch.keep(x).unwrap();
        let kept = batch.compute(product).unwrap();
        let written = gpu.write(&a, 1, &[5.0]); // Before it is executed.
        let execution = batch.execute();
        let after = [&a, &b, &kept].map(|tensor| gpu.read(tensor));
        gpu.flush();
        block_on(written).unwrap();
        block_on(execution).unwrap();
        assert_eq!(block_on(batch.read(x)).unwrap(), [1.0, 5.0]);
        assert_eq!(block_on(batch.read(sum)).unwrap(), [11.0, 25.0]);
        let after = after.map(|call| call.wait().unwrap());
        assert_eq!(after, [[10.0, 20.0], [11.0, 25.0], [10.0, 100.0]]);
        assert!(block_on(batch.read(product)).is_err(), "it was not kept");
        assert_eq!(gpu.stats().batches, 1, "all in one batch");
    }
}

#[test]
fn steps_share_a_submission_and_run_in_their_order() {
    for gpu in both_manual() {
        let tensor = gpu.tensor(&[0.0; 9], &[3, 3]).unwrap();
        let mut steps: Vec<_> = (0..4).map(|_| gpu.batch()).collect();
        let mut executions = Vec::new();
        for (number, batch) in steps.iter_mut().enumerate() {
            let x = batch.tensor(&tensor).unwrap();
            let next = match number % 2 {
                0 => more(batch, x, 1.0 + number as f32).unwrap(),
                _ => batch.scale(x, 2.0).unwrap(),
            };
            batch.compute_into(next, &tensor).unwrap();
            executions.push(batch.execute());
        }
        let read = gpu.read(&tensor);
        gpu.flush();
        executions
            .into_iter()
            .for_each(|step| block_on(step).unwrap());
        assert_eq!(read.wait().unwrap(), [10.0; 9]);
        assert_eq!(gpu.stats().batches, 1);
    }
}

#[test]
fn what_is_written_lies_beside_what_was_there() {
    for gpu in both() {
        let tensor = gpu.tensor(&[0.0; 10], &[2, 5]).unwrap();
        let mut expected = vec![0.0; 10];
        for (at, length) in [(0, 1), (9, 1), (3, 4), (1, 9), (0, 10), (5, 0), (10, 0)] {
            let floats: Vec<f32> = (0..length).map(|i| (100 * at + i) as f32 + 0.5).collect();
            block_on(gpu.write(&tensor, at, &floats)).unwrap();
            expected[at as usize..at as usize + floats.len()].copy_from_slice(&floats);
            assert_eq!(read(&gpu, &tensor).unwrap(), expected, "{length} at {at}");
        }
        for (at, length) in [(10, 1), (7, 4), (11, 0), (u32::MAX, 2)] {
            let refused = block_on(gpu.write(&tensor, at, &vec![1.0; length]));
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("smaller offset"), "{length} at {at}: {text}");
        }
        assert_eq!(read(&gpu, &tensor).unwrap(), expected);
    }
}

#[test]
fn a_tensor_whose_batch_never_ran_is_refused() {
    for gpu in both_manual() {
        let mut batch = gpu.batch();
        let x = batch.upload(&[1.0, 2.0]);
        let tensor = batch.compute(x).unwrap();
        let refused = [
            gpu.batch().tensor(&tensor).unwrap_err(),
            read(&gpu, &tensor).unwrap_err(),
            block_on(gpu.write(&tensor, 0, &[1.0])).unwrap_err(),
            step(&gpu, &tensor).unwrap_err(),
        ];
        drop(batch);
        for error in refused.into_iter().chain(read(&gpu, &tensor).err()) {
            assert_eq!(error.code(), Code::InvalidInput);
            assert!(error.to_string().contains("execute the batch"), "{error}");
        }
        let written = gpu.write(&tensor, 0, &[7.0, 8.0]); // All of it: now it has words.
        let own = gpu.read(&tensor);
        gpu.flush();
        block_on(written).unwrap();
        assert_eq!(block_on(own).unwrap(), [7.0, 8.0]);
        assert_eq!(gpu.stats().pending, 0);
    }
}

#[test]
fn what_a_batch_stores_is_stored_though_nobody_waits() {
    for gpu in both_manual() {
        let tensor = gpu.tensor(&[1.0], &[1]).unwrap();
        let mut batch = gpu.batch();
        let x = batch.tensor(&tensor).unwrap();
        let next = more(&mut batch, x, 1.0).unwrap();
        batch.compute_into(next, &tensor).unwrap();
        drop(batch.execute());
        let again = block_on(batch.execute()).unwrap_err();
        assert!(again.to_string().contains("make another"), "{again}");
        let own = gpu.read(&tensor);
        gpu.flush();
        assert_eq!(block_on(own).unwrap(), [2.0]);
    }
}

#[test]
fn a_refused_batch_stores_nothing_and_can_be_executed_again() {
    for engine in [EngineChoice::Gpu, EngineChoice::Cpu] {
        let gpu = open(
            engine,
            BatchConfig {
                overflow: Overflow::Reject,
                queue_capacity: Capacity {
                    calls: 3,
                    bytes: 1 << 20,
                },
                max_batch_size: Some(3),
                ..manual()
            },
        );
        let tensor = gpu.tensor(&[1.0], &[1]).unwrap();
        let before: Vec<Call<f32>> = (0..2).map(|_| gpu.lerp(&[0.0], &[1.0], 0.5)).collect();
        let mut batch = gpu.batch();
        let x = batch.tensor(&tensor).unwrap();
        let next = more(&mut batch, x, 1.0).unwrap();
        let computed = batch.compute(next).unwrap();
        batch.compute_into(next, &tensor).unwrap();
        batch.keep(next).unwrap();
        // The call that reads has room, and the one that stores has none.
        let refused = block_on(batch.execute()).unwrap_err();
        assert_eq!(refused.code(), Code::QueueFull);
        assert!(read_refused(&gpu, &computed));
        gpu.flush();
        before
            .into_iter()
            .for_each(|call| drop(call.wait().unwrap()));
        let execution = batch.execute();
        gpu.flush();
        block_on(execution).unwrap();
        assert_eq!(block_on(batch.read(next)).unwrap(), [2.0]);
        for tensor in [&tensor, &computed] {
            let own = gpu.read(tensor);
            gpu.flush();
            assert_eq!(block_on(own).unwrap(), [2.0], "once");
        }
    }
}

fn read_refused(gpu: &Gpu, tensor: &Tensor) -> bool {
    read(gpu, tensor).is_err_and(|error| error.code() == Code::InvalidInput)
}

#[test]
fn targets_that_cannot_be_written_are_refused_and_the_message_says_why() {
    let gpus = both();
    for gpu in &gpus {
        let square = gpu.tensor(&[0.0; 4], &[2, 2]).unwrap();
        let packed = gpu.tensor_as(&[0.0; 4], &[4], Storage::F16).unwrap();
        let mut batch = gpu.batch();
        let x = batch.upload(&[1.0; 4]);
        let places = batch.argmax(x, Axes::ALL).unwrap();
        let other = gpu.batch().upload(&[1.0; 4]);
        let mut cases = vec![
            (batch.compute_into(x, &square), "reshape"),
            (batch.compute_into(x, &packed), "fewer bits"),
            (
                block_on(gpu.write(&packed, 0, &[1.0])).map(drop),
                "fewer bits",
            ),
            (batch.compute_into(places, &square), "indexes"),
            (batch.compute(places).map(drop), "indexes"),
            (batch.compute(other).map(drop), "another batch"),
        ];
        let stranger = open(EngineChoice::Cpu, Preset::Eager.config());
        let strange = stranger.tensor(&[0.0; 4], &[4]).unwrap();
        cases.push((batch.compute_into(x, &strange), "another session"));
        cases.push((
            block_on(gpu.write(&strange, 0, &[1.0])).map(drop),
            "another session",
        ));
        let line = gpu.tensor(&[0.0; 4], &[4]).unwrap();
        batch.compute_into(x, &line).unwrap();
        cases.push((batch.compute_into(x, &line), "already"));
        if let Some(device) = gpu.wgpu_device() {
            let buffer = Arc::new(device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 16,
                usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            }));
            let own = gpu.import_buffer(buffer, &[4]).unwrap();
            cases.push((batch.compute_into(x, &own), "imported"));
            cases.push((block_on(gpu.write(&own, 0, &[1.0])).map(drop), "imported"));
        }
        for (refused, part) in cases {
            let error = refused.expect_err(part);
            assert_eq!(error.code(), Code::InvalidInput, "{error}");
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
        block_on(batch.execute()).unwrap();
        assert_eq!(read(gpu, &line).unwrap(), [1.0; 4]);
    }
}

#[test]
fn a_store_is_explained_and_never_run() {
    for gpu in both() {
        let tensor = gpu.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
        let text = gpu.explain(|gpu| {
            let mut batch = gpu.batch();
            let x = batch.tensor(&tensor).unwrap();
            let turned = batch.transpose(x, &[]).unwrap();
            batch.compute_into(turned, &tensor).unwrap();
            let stays = batch.compute(turned).unwrap();
            drop(block_on(batch.execute()));
            drop(gpu.read(&stays).wait());
            drop(gpu.write(&tensor, 1, &[1.0]).wait());
        });
        let steps = ["dispatch", "copy  "].map(|step| text.matches(step).count());
        assert_eq!(steps, [3, 2], "{text}");
        assert_eq!(read(&gpu, &tensor).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }
}

#[test]
fn what_calls_wrote_is_lost_with_its_device_until_it_is_written_whole() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let tensors = [
            computed(&gpu, &[1.0; 4]),
            gpu.tensor(&[1.0; 4], &[4]).unwrap(),
            gpu.tensor(&[1.0; 4], &[4]).unwrap(),
        ];
        let kept = gpu.tensor(&[1.0; 4], &[4]).unwrap();
        step(&gpu, &tensors[1]).unwrap();
        block_on(gpu.write(&tensors[2], 1, &[5.0])).unwrap();
        destroy(&gpu);
        assert_eq!(read(&gpu, &kept).unwrap(), [1.0; 4], "by the next device");
        assert_eq!(gpu.info().engine, Engine::Gpu);
        for (number, tensor) in tensors.iter().enumerate() {
            for refused in [read(&gpu, tensor).map(drop), step(&gpu, tensor)] {
                let error = refused.expect_err("its words are gone");
                assert_eq!(error.code(), Code::DeviceLost, "{number}: {error}");
            }
            fill(&gpu, tensor, 3.0).unwrap();
            step(&gpu, tensor).unwrap();
            assert_eq!(read(&gpu, tensor).unwrap(), [4.0; 4], "{number}");
        }
    });
}
