//! Where what was sampled lies, for the program's own commands.

use framebatch::clips::Wrap;
use framebatch::{EngineChoice, Gpu, Storage, Tensor};

use crate::engines;
use crate::life::ramp;

/// What lies in a tensor's buffer, copied by the program's own encoder.
fn copied(gpu: &Gpu, tensor: &Tensor) -> Vec<f32> {
    let device = gpu.wgpu_device().expect("a GPU");
    let place = tensor.wgpu_buffer().expect("it lies on the GPU");
    let copy = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: place.size,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(&place.buffer, place.offset, &copy, 0, place.size);
    gpu.wgpu_queue().unwrap().submit([encoder.finish()]);
    copy.map_async(wgpu::MapMode::Read, .., |mapped| mapped.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let view = copy.get_mapped_range(..).unwrap();
    bytemuck::pod_collect_to_vec(&view)
}

#[test]
fn a_program_finds_in_its_own_commands_what_was_sampled_in_its_frame() {
    let gpu = engines::open(EngineChoice::Gpu, engines::manual());
    let up = ramp(&gpu, 0.0, 8.0);
    // Tensors of a few bytes and of many.
    for length in [3_usize, 20_000] {
        // Where there is little memory, small tensors have buffers of their own too.
        let is_shared = length == 3 && !engines::is_small();
        let tensor = gpu.tensor(&vec![1.0; length], &[u32::try_from(length).unwrap()]);
        let tensor = tensor.unwrap();
        assert_eq!(copied(&gpu, &tensor), vec![1.0; length]);
        for time in [0.25_f32, 0.5, 1.0] {
            let sampled = up.sample_to(&tensor, 1, &vec![time; length - 1], Wrap::Clamp);
            gpu.flush();
            sampled.wait().unwrap();
            let frame = copied(&gpu, &tensor);
            assert_eq!(frame[0], 1.0);
            assert_eq!(frame[1..], vec![8.0 * time; length - 1]);
        }
        let place = tensor.wgpu_buffer().unwrap();
        let usages = place.buffer.usage();
        assert!(usages.contains(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::VERTEX));
        // Small tensors share a buffer, each from a multiple of 256 bytes on.
        let other = gpu.tensor(&vec![2.0; length], &[u32::try_from(length).unwrap()]);
        let beside = other.as_ref().unwrap().wgpu_buffer().unwrap();
        assert_eq!(beside.buffer == place.buffer, is_shared);
        assert_eq!(
            beside.offset.abs_diff(place.offset),
            256 * u64::from(is_shared)
        );
        assert_eq!(copied(&gpu, &tensor)[1..], vec![8.0; length - 1]);
        drop(tensor);
        // Nothing else lies in a buffer of its own that a program has seen.
        let next = gpu.tensor(&vec![2.0; length], &[u32::try_from(length).unwrap()]);
        let next = next.unwrap().wgpu_buffer().unwrap();
        assert_eq!(next.buffer == place.buffer, is_shared);
    }
}

#[test]
fn a_tensor_has_a_buffer_where_it_lies_in_one() {
    let gpu = engines::open(EngineChoice::Gpu, engines::manual());
    let halves = gpu.tensor_as(&[0.0; 5], &[5], Storage::F16).unwrap();
    assert_eq!(halves.wgpu_buffer().unwrap().size, 12);
    let kept = gpu.tensor(&[3.0; 4], &[4]).unwrap();
    let once = gpu.tensor(&[3.0; 4], &[4]).unwrap().without_source();
    let before = [&kept, &once].map(|tensor| tensor.wgpu_buffer().unwrap());
    gpu.wgpu_device().unwrap().destroy();
    let call = gpu.lerp(&[0.0], &[2.0], 0.5);
    gpu.flush();
    assert_eq!(call.wait().unwrap(), [1.0]);
    let next = kept.wgpu_buffer().expect("its data was kept");
    assert_ne!(next.buffer, before[0].buffer);
    assert_eq!(copied(&gpu, &kept), [3.0; 4]);
    assert_eq!(once.wgpu_buffer(), None);
    gpu.dispose();
    assert_eq!(kept.wgpu_buffer(), None);

    let cpu = engines::open(EngineChoice::Cpu, engines::manual());
    let tensor = cpu.tensor(&[3.0; 4], &[4]).unwrap();
    assert_eq!(tensor.wgpu_buffer(), None);
}
