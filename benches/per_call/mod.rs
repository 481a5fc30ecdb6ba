//! The synchronous per-call way, by hand: buffers, one submission and one
//! blocking map for every call, or for all of them as one batch. Its pipeline is compiled once, because whoever
//! writes such code finds that out first.

use framebatch::State;

const KERNEL: &str = include_str!("gradients.wgsl");
const THREADS: usize = 64;
/// Floats of the gradients of a state.
const FLOATS: usize = 32;
/// Most workgroups in a dimension that every device takes.
const ROW: usize = 65_535;

pub(crate) struct PerCall {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
}

impl PerCall {
    pub(crate) fn open() -> PerCall {
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
        PerCall {
            device,
            queue,
            pipeline,
        }
    }

    pub(crate) fn compute_gradients(&self, states: &[State]) -> Vec<f32> {
        let bytes = size_of_val(states) as u64;
        let storage = wgpu::BufferUsages::STORAGE;
        let input = self.buffer(bytes, storage | wgpu::BufferUsages::COPY_DST);
        let output = self.buffer(8 * bytes, storage | wgpu::BufferUsages::COPY_SRC);
        let staging = self.buffer(
            8 * bytes,
            wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        );
        self.queue
            .write_buffer(&input, 0, bytemuck::cast_slice(states));
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.get_bind_group_layout(0),
            entries: &[entry(0, &input), entry(1, &output)],
        });
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let groups = (states.len() * 8).div_ceil(THREADS);
        let grid = [groups.min(ROW), groups.div_ceil(ROW)]
            .map(|n| u32::try_from(n).expect("fits any grid"));
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(grid[0], grid[1], 1);
        drop(pass);
        encoder.copy_buffer_to_buffer(&output, 0, &staging, 0, 8 * bytes);
        self.queue.submit([encoder.finish()]);
        let result = self.read(&staging);
        for buffer in [input, output, staging] {
            buffer.destroy();
        }
        result
    }

    /// The results of all calls as one batch, a call each.
    pub(crate) fn compute_gradients_of<'a>(
        &self,
        calls: impl Iterator<Item = &'a [State]> + Clone,
    ) -> Vec<Vec<f32>> {
        let states: Vec<State> = calls.clone().flatten().copied().collect();
        let mut rest = &self.compute_gradients(&states)[..];
        let each = calls.map(|call| {
            let (own, others) = rest.split_at(FLOATS * call.len());
            rest = others;
            own.to_vec()
        });
        each.collect()
    }

    fn read(&self, staging: &wgpu::Buffer) -> Vec<f32> {
        staging.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("mapped"));
        let waited = self.device.poll(wgpu::PollType::wait_indefinitely());
        waited.expect("the device works");
        let view = staging.get_mapped_range(..).expect("mapped above");
        bytemuck::cast_slice(&view).to_vec()
    }

    fn buffer(&self, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    }
}

fn entry(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
    wgpu::BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    }
}
