//! A device that runs kernels one by one, and says which take too many steps.

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use framebatch::kernel::{PARAMS, RESULT, SEGMENTS};
use pollster::block_on;

use crate::kernels::{COUNT, Subject, counting};
use crate::words::{Filling, WORDS};

/// How long a dispatch may take where no GPU driver leaves a loop: longer than any that
/// ends, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// A device on which kernels are run one by one.
pub(crate) struct Harness {
    device: wgpu::Device,
    queue: wgpu::Queue,
    layout: wgpu::BindGroupLayout,
    /// By their bindings.
    buffers: Vec<wgpu::Buffer>,
}

impl Harness {
    pub(crate) fn open() -> Harness {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
            .expect("a Vulkan adapter, at least a software one");
        let desc = wgpu::DeviceDescriptor {
            required_limits: wgpu::Limits {
                max_storage_buffers_per_shader_stage: COUNT,
                ..wgpu::Limits::default()
            },
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = block_on(adapter.request_device(&desc)).unwrap();
        let kind = |binding: u32| match binding {
            PARAMS => wgpu::BufferBindingType::Uniform,
            _ => wgpu::BufferBindingType::Storage {
                read_only: ![RESULT, COUNT].contains(&binding),
            },
        };
        let entries: Vec<wgpu::BindGroupLayoutEntry> = (0..=COUNT)
            .map(|binding| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: kind(binding),
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries,
        });
        let buffers = (0..=COUNT).map(|binding| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: WORDS as u64 * 4,
                usage: wgpu::BufferUsages::COPY_DST
                    | wgpu::BufferUsages::COPY_SRC
                    | match binding {
                        PARAMS => wgpu::BufferUsages::UNIFORM,
                        _ => wgpu::BufferUsages::STORAGE,
                    },
                mapped_at_creation: false,
            })
        });
        Harness {
            buffers: buffers.collect(),
            device,
            queue,
            layout,
        }
    }

    fn pipeline(&self, text: &str) -> wgpu::ComputePipeline {
        let module = self
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(text.into()),
            });
        let layout = self
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&self.layout)],
                immediate_size: 0,
            });
        let desc = wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        };
        self.device.create_compute_pipeline(&desc)
    }

    fn write(&self, binding: u32, words: &[u32]) {
        let buffer = &self.buffers[binding as usize];
        self.queue
            .write_buffer(buffer, 0, bytemuck::cast_slice(words));
    }

    /// Runs a kernel over each filling. What does not end ends the process: nothing
    /// takes a dispatch back, and a device that is dropped waits for it.
    pub(crate) fn run(&self, subjects: &[Subject], fillings: &[Filling]) {
        let entries: Vec<wgpu::BindGroupEntry<'_>> = (0_u32..)
            .zip(&self.buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.layout,
            entries: &entries,
        });
        let mut wrong = Vec::new();
        let mut known = HashSet::new();
        for subject in subjects {
            let (text, loops) = counting(&subject.text);
            if loops == 0 || !known.insert(&subject.text) {
                continue; // The kernel has no loop, or was looked at.
            }
            let pipeline = self.pipeline(&text);
            self.write(COUNT, &[u32::MAX, 0, 0]);
            for (number, filling) in fillings.iter().enumerate() {
                for operand in 0..subject.operands as u32 {
                    self.write(operand, &filling.words);
                }
                let mut table = filling.words.clone();
                table[..2].copy_from_slice(&[0, u32::MAX]);
                table[2..2 + filling.entry.len()].copy_from_slice(&filling.entry);
                self.write(SEGMENTS, &table);
                self.write(PARAMS, bytemuck::cast_slice(&[filling.params]));
                let buffer = &self.buffers[COUNT as usize];
                let filling = (number as u32).to_ne_bytes();
                self.queue.write_buffer(buffer, 4, &filling);
                let mut encoder = self
                    .device
                    .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(2, 1, 1);
                drop(pass);
                let submission = self.queue.submit([encoder.finish()]);
                let waited = self.device.poll(wgpu::PollType::Wait {
                    submission_index: Some(submission),
                    timeout: Some(PATIENCE),
                });
                if waited.is_err() {
                    let said = format!("filling {number} does not end in {}\n", subject.name);
                    let _ = std::io::stderr().write_all(said.as_bytes());
                    std::process::abort();
                }
            }
            let [filling, _, most] = self.counts();
            if most > 0 {
                wrong.push(format!(
                    "{most} steps of filling {filling} in {}",
                    subject.name
                ));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// What threads have counted.
    fn counts(&self) -> [u32; 3] {
        let size = 12;
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.buffers[COUNT as usize], 0, &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        staging
            .slice(..)
            .map_async(wgpu::MapMode::Read, Result::unwrap);
        self.device
            .poll(wgpu::PollType::wait_indefinitely())
            .unwrap();
        let view = staging.slice(..).get_mapped_range().unwrap();
        bytemuck::cast_slice(&view).try_into().unwrap()
    }
}
