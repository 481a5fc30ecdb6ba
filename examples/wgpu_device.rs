//! A program that uses wgpu by itself shares the session's device. Its own kernel writes heights
//! to a buffer of its own, calls compute on them where they lie, and its own commands take the
//! result from the tensor's buffer: nothing passes through the host on the way.
//!
//!     cargo run --example wgpu_device
//!
//! The session opens the device, because it opens another one when that is lost. What the program
//! needs of the device, `Config::gpu` asks for.

#![expect(clippy::print_stdout, reason = "an example shows what happened")]

use std::sync::{Arc, mpsc};

use framebatch::{Blocking, Config, EngineChoice, Error, TensorBuffer};
use wgpu::{BufferUsages, CommandBuffer, Device, Queue};

const HEIGHTS: u32 = 64;

/// The program's own kernel.
const WAVES: &str = "
@group(0) @binding(0) var<storage, read_write> heights: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    heights[id.x] = f32(id.x);
}";

fn main() -> Result<(), Error> {
    let gpu = Blocking::open(Config {
        engine: EngineChoice::Gpu,
        ..Config::default()
    })?;
    println!("running on {}", gpu.info().adapter);
    let device = gpu.gpu().wgpu_device().expect("the session has a GPU");
    let queue = gpu.gpu().wgpu_queue().expect("the session has a GPU");

    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC; // What imported buffers need.
    let heights = Arc::new(buffer(&device, usage));
    queue.submit([waves(&device, &heights)]);

    // What was submitted before the call is what the call reads.
    let lowered = gpu.compute(|batch| {
        let x = batch.import_buffer(Arc::clone(&heights), HEIGHTS)?;
        batch.scale(x, 0.5)
    })?;

    // What the call stores is there for whatever is submitted after the call has returned.
    let place = lowered.wgpu_buffer().expect("it lies on the GPU");
    let floats = read(&device, &queue, &place);
    println!("the last of {} heights is {}", floats.len(), floats[63]);
    assert!(
        (0_u8..)
            .zip(&floats)
            .all(|(at, x)| *x == f32::from(at) / 2.0)
    );
    Ok(())
}

/// The commands of a pass that writes all heights.
fn waves(device: &Device, heights: &wgpu::Buffer) -> CommandBuffer {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(WAVES.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry {
            binding: 0,
            resource: heights.as_entire_binding(),
        }],
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(1, 1, 1);
    drop(pass);
    encoder.finish()
}

/// The floats of a tensor, by the program's own commands.
fn read(device: &Device, queue: &Queue, place: &TensorBuffer) -> Vec<f32> {
    let staging = buffer(device, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(&place.buffer, place.offset, &staging, 0, staging.size());
    queue.submit([encoder.finish()]);
    let (sender, mapped) = mpsc::channel();
    // The callback may run on a thread of the session: it sends a message, and nothing else.
    staging.map_async(wgpu::MapMode::Read, .., move |result| {
        sender.send(result).unwrap_or_default();
    });
    device
        .poll(wgpu::PollType::wait_indefinitely())
        .expect("the device is there");
    let result = mapped.recv().expect("the callback ran");
    result.expect("the buffer is mapped");
    let bytes = staging.get_mapped_range(..).expect("it is mapped");
    bytemuck::pod_collect_to_vec(&bytes)
}

fn buffer(device: &Device, usage: BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: u64::from(HEIGHTS) * 4,
        usage,
        mapped_at_creation: false,
    })
}
