//! Buffers of the program's own, read where they lie.

use std::sync::Arc;

use framebatch::device::{Gpu as Device, GpuOptions};
use framebatch::{Code, EngineChoice, Error, Gpu, Preset};
use pollster::block_on;

use crate::engines::{in_time, manual, open};

const USAGES: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

fn make(device: &wgpu::Device, size: u64, usage: wgpu::BufferUsages) -> Arc<wgpu::Buffer> {
    Arc::new(device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage,
        mapped_at_creation: false,
    }))
}

/// A buffer that holds these floats, and room for whole vectors.
fn buffer(gpu: &Gpu, floats: &[f32]) -> Arc<wgpu::Buffer> {
    let device = gpu.wgpu_device().unwrap();
    let size = size_of_val(floats).next_multiple_of(16) as u64;
    let buffer = make(&device, size, USAGES);
    write(gpu, &buffer, floats);
    buffer
}

fn write(gpu: &Gpu, buffer: &wgpu::Buffer, floats: &[f32]) {
    let queue = gpu.wgpu_queue().unwrap();
    queue.write_buffer(buffer, 0, bytemuck::cast_slice(floats));
}

/// 2 · buffer, five floats of it.
fn double(gpu: &Gpu, buffer: &Arc<wgpu::Buffer>) -> Result<Vec<f32>, Error> {
    let mut batch = gpu.batch();
    let weights = batch.import_buffer(Arc::clone(buffer), 5)?;
    let y = batch.scale(weights, 2.0)?;
    block_on(batch.execute())?;
    block_on(batch.read(y))
}

fn eager() -> Gpu {
    open(EngineChoice::Gpu, Preset::Eager.config())
}

#[test]
fn a_buffer_is_read_where_it_lies_and_survives_the_batch() {
    let gpu = eager();
    let weights = buffer(&gpu, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let held = gpu.stats().device;
    for _ in 0..3 {
        assert_eq!(double(&gpu, &weights).unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0]);
    }
    // What is written to it meanwhile is read: nothing was copied.
    write(&gpu, &weights, &[-1.0; 5]);
    assert_eq!(double(&gpu, &weights).unwrap(), [-2.0; 5]);
    let device = gpu.stats().device;
    assert_eq!(device.uploads, 4, "tables and constants only");
    assert!(device.bytes_up < held.bytes_up + 4 * 4096);
    drop(gpu);
    assert_eq!(weights.size(), 32);
}

/// Bytes that the device has for buffers of this label.
fn held(device: &wgpu::Device, label: &str) -> u64 {
    // Freed is what was used by nothing that is still on its way.
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let report = device
        .generate_allocator_report()
        .expect("Vulkan tells what it holds");
    let named = report.allocations.iter();
    let named = named.filter(|allocation| allocation.name == label);
    named.map(|allocation| allocation.size).sum()
}

#[test]
fn a_buffer_is_let_go_of_with_its_last_tensor() {
    let gpu = eager();
    let device = gpu.wgpu_device().unwrap();
    let label = "the program's own";
    let weights = Arc::new(device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: 1 << 18,
        usage: USAGES,
        mapped_at_creation: false,
    }));
    let tensor = gpu.import_buffer(Arc::clone(&weights), &[5]).unwrap();
    let clone = tensor.clone();
    assert_eq!(double(&gpu, &weights).unwrap(), [0.0; 5]);
    drop((weights, tensor));
    let size = held(&device, label);
    assert!(size >= 1 << 18, "a clone has it still: {size}");
    drop(clone);
    // The session's worker lets go of it.
    in_time(move || {
        while held(&device, label) > 0 {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_tensor_of_a_buffer_has_any_shape() {
    let gpu = eager();
    let weights = buffer(&gpu, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let weights = gpu.import_buffer(weights, &[2, 3]).unwrap();
    assert_eq!(weights.shape(), [2, 3]);
    let mut batch = gpu.batch();
    let matrix = batch.tensor(&weights).unwrap();
    let x = batch.upload(&[1.0, 10.0, 100.0]);
    let y = batch.dot(matrix, x).unwrap();
    block_on(batch.execute()).unwrap();
    assert_eq!(block_on(batch.read(y)).unwrap(), [321.0, 654.0]);
}

#[test]
fn batches_that_import_one_buffer_are_computed_together() {
    let gpu = open(EngineChoice::Gpu, manual());
    let weights = buffer(&gpu, &[1.0, 2.0, 3.0, 4.0]);
    let mut batches: Vec<_> = (0..20_u8)
        .map(|k| {
            let mut batch = gpu.batch();
            let x = batch.upload(vec![f32::from(k); 4]);
            let weights = batch.import_buffer(Arc::clone(&weights), 4).unwrap();
            let y = batch.mul(x, weights).unwrap();
            (batch, y)
        })
        .collect();
    let running: Vec<_> = batches.iter_mut().map(|(b, _)| b.execute()).collect();
    gpu.flush();
    for execution in running {
        block_on(execution).unwrap();
    }
    for (k, (batch, y)) in (0..20_u8).zip(&batches) {
        let expected = [1.0, 2.0, 3.0, 4.0].map(|w| w * f32::from(k));
        assert_eq!(block_on(batch.read(*y)).unwrap(), expected);
    }
    let device = gpu.stats().device;
    assert_eq!((device.submits, device.dispatches), (1, 1));
}

#[test]
fn buffers_that_cannot_be_read_are_refused_at_once() {
    let gpu = eager();
    let device = gpu.wgpu_device().unwrap();
    let other = block_on(Device::open(&GpuOptions::default())).unwrap();
    let storage = wgpu::BufferUsages::STORAGE;
    let gone = make(&device, 32, USAGES);
    gone.destroy();
    let cases = [
        (make(&device, 32, storage), "STORAGE and COPY_SRC"),
        (
            make(&device, 32, wgpu::BufferUsages::COPY_SRC),
            "STORAGE and COPY_SRC",
        ),
        (make(&device, 20, USAGES), "need a buffer of 32 bytes"),
        (make(&device, 0, USAGES), "need a buffer of 32 bytes"),
        (make(other.wgpu_device(), 32, USAGES), "cannot be bound"),
        (gone, "cannot be bound"),
    ];
    for (buffer, expected) in cases {
        let error = double(&gpu, &buffer).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(block_on(gpu.relu(&[1.0])).unwrap(), [1.0]);

    let cpu = open(EngineChoice::Cpu, manual());
    let error = double(&cpu, &make(&device, 32, USAGES)).unwrap_err();
    assert!(error.to_string().contains("the CPU"), "{error}");
}

#[test]
fn a_buffer_destroyed_by_its_owner_fails_what_reads_it_and_nothing_else() {
    let gpu = eager();
    let weights = buffer(&gpu, &[1.0; 5]);
    assert_eq!(double(&gpu, &weights).unwrap(), [2.0; 5]);
    let tensor = gpu.import_buffer(Arc::clone(&weights), &[5]).unwrap();
    weights.destroy();
    for _ in 0..2 {
        let mut batch = gpu.batch();
        let value = batch.tensor(&tensor).unwrap();
        batch.scale(value, 2.0).unwrap();
        let error = block_on(batch.execute()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput, "{error}");
        assert_eq!(block_on(gpu.relu(&[1.0])).unwrap(), [1.0]);
    }
}

#[test]
fn a_destroyed_buffer_costs_the_others_of_its_batch_nothing() {
    let gpu = open(EngineChoice::Gpu, manual());
    let buffers = [1.0, 2.0, 3.0].map(|value| buffer(&gpu, &[value; 4]));
    let tensors = buffers
        .each_ref()
        .map(|own| gpu.import_buffer(Arc::clone(own), &[4]).unwrap());
    buffers[1].destroy();
    let mut batches: Vec<_> = (0..9_u8)
        .map(|k| {
            let mut batch = gpu.batch();
            let x = batch.upload(vec![f32::from(k); 4]);
            let weights = batch.tensor(&tensors[usize::from(k % 3)]).unwrap();
            let y = batch.mul(x, weights).unwrap();
            (batch, y)
        })
        .collect();
    let plain = gpu.relu(&[5.0]);
    let running: Vec<_> = batches.iter_mut().map(|(b, _)| b.execute()).collect();
    gpu.flush();
    for (k, execution) in running.into_iter().enumerate() {
        let code = block_on(execution).err().map(|error| error.code());
        let expected = (k % 3 == 1).then_some(Code::InvalidInput);
        assert_eq!(code, expected, "batch {k}");
    }
    assert_eq!(block_on(plain).unwrap(), [5.0]);
    for (k, (batch, y)) in (0..9_u8).zip(&batches).filter(|(k, _)| k % 3 != 1) {
        let expected = [f32::from(k) * f32::from(k % 3 + 1); 4];
        assert_eq!(block_on(batch.read(*y)).unwrap(), expected);
    }
}

#[test]
fn an_imported_buffer_is_lost_with_its_device() {
    in_time(|| {
        let gpu = eager();
        let weights = buffer(&gpu, &[1.0; 5]);
        let tensor = gpu.import_buffer(Arc::clone(&weights), &[5]).unwrap();
        let mut batch = gpu.batch();
        let value = batch.tensor(&tensor).unwrap();
        batch.scale(value, 2.0).unwrap();
        gpu.wgpu_device().unwrap().destroy();
        // A batch that waits is told of all that it may be; one to come, of what it is.
        let waiting = block_on(batch.execute()).unwrap_err();
        assert_eq!(waiting.code(), Code::DeviceLost);
        assert!(waiting.to_string().contains("import a buffer"), "{waiting}");
        let late = gpu.batch().tensor(&tensor).map(|_| ()).unwrap_err();
        assert_eq!(late.code(), Code::DeviceLost);
        assert!(late.to_string().contains("an imported buffer"), "{late}");
        // The old buffer is of another device now; a new one is read.
        assert_eq!(
            double(&gpu, &weights).unwrap_err().code(),
            Code::InvalidInput
        );
        let next = buffer(&gpu, &[3.0; 5]);
        assert_eq!(double(&gpu, &next).unwrap(), [6.0; 5]);
    });
}
