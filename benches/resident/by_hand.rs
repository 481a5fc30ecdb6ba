//! Steps of floats that stay on the device, written for exactly that: one buffer for all states,
//! one dispatch a step, and one submission a run.

use wgpu::{BufferUsages, MapMode, PollType};

const KERNEL: &str = include_str!("step.wgsl");
const THREADS: usize = 64;
/// Most workgroups in a dimension that every device takes.
const ROW: usize = 65_535;

pub(super) struct ByHand {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
}

/// States on the device, and what reads them.
pub(super) struct States {
    group: wgpu::BindGroup,
    state: wgpu::Buffer,
    staging: wgpu::Buffer,
    grid: [u32; 2],
}

impl ByHand {
    pub(super) fn open() -> ByHand {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default());
        let adapter = pollster::block_on(adapter).expect("an adapter");
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            required_limits: adapter.limits(),
            ..Default::default()
        }))
        .expect("a device");
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(KERNEL.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        ByHand {
            device,
            queue,
            pipeline,
        }
    }

    /// Takes states to the device, end to end; so many floats are a state.
    pub(super) fn keep(&self, floats: &[f32], items: usize) -> States {
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
        let state = self.buffer(size_of_val(floats), storage);
        self.queue
            .write_buffer(&state, 0, bytemuck::cast_slice(floats));
        let groups = (floats.len() / 4).div_ceil(THREADS);
        let grid = [groups.min(ROW), groups.div_ceil(ROW)];
        let bytes = items * size_of::<f32>();
        States {
            group: self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &self.pipeline.get_bind_group_layout(0),
                entries: &[wgpu::BindGroupEntry {
                    binding: 0,
                    resource: state.as_entire_binding(),
                }],
            }),
            staging: self.buffer(bytes, BufferUsages::MAP_READ | BufferUsages::COPY_DST),
            state,
            grid: grid.map(|groups| u32::try_from(groups).expect("fits any grid")),
        }
    }

    /// Takes so many steps of all states, and reads the first state, in one submission.
    pub(super) fn run(&self, states: &States, steps: usize) -> Vec<f32> {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &states.group, &[]);
        for _ in 0..steps {
            pass.dispatch_workgroups(states.grid[0], states.grid[1], 1);
        }
        drop(pass);
        let States { state, staging, .. } = states;
        encoder.copy_buffer_to_buffer(state, 0, staging, 0, staging.size());
        self.queue.submit([encoder.finish()]);
        staging.map_async(MapMode::Read, .., |mapped| mapped.expect("mapped"));
        let waited = self.device.poll(PollType::wait_indefinitely());
        waited.expect("the device works");
        let view = staging.get_mapped_range(..).expect("mapped above");
        let floats = bytemuck::cast_slice(&view).to_vec();
        drop(view);
        staging.unmap();
        floats
    }

    fn buffer(&self, bytes: usize, usage: BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes as u64,
            usage,
            mapped_at_creation: false,
        })
    }
}
