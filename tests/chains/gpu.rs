//! Runs programs on a GPU of the machine, a software one is enough, without
//! the rest of the library: one dispatch a stage for all calls.

use std::collections::HashMap;

use framebatch::graph::Precision;
use framebatch::kernel::generated::source;
use framebatch::kernel::{MAX_OPERANDS, PARAMS, RESULT, SEGMENTS, WORKGROUP};
use framebatch::plan::Params;
use framebatch::program::{Products, Program, Sizes, Source, Stage, StageSizes, Tiles};
use framebatch::tensor::{Packing, aligned};
use pollster::block_on;

use crate::cpu::Call;

/// Threads of a block in the segment tables, as a power of two: a workgroup.
const SHIFT: u32 = WORKGROUP.ilog2();

/// How large tiles of products are.
pub(crate) const SIZES: [Tiles; 2] = [Tiles::Large, Tiles::Small];

/// A device and the pipelines it has compiled.
pub(crate) struct Harness {
    device: wgpu::Device,
    queue: wgpu::Queue,
    layout: wgpu::BindGroupLayout,
    pipelines: HashMap<String, wgpu::ComputePipeline>,
    /// How large tiles of products are.
    pub(crate) tiles: Tiles,
    /// The precision that kernels are told of: at first, what the device has.
    pub(crate) offered: Precision,
}

impl Harness {
    pub(crate) fn open() -> Harness {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
            .expect("a Vulkan adapter, at least a software one");
        let halves = adapter.features() & wgpu::Features::SHADER_F16;
        let (device, queue) = block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: halves,
            ..wgpu::DeviceDescriptor::default()
        }))
        .expect("a device with the default limits");
        let storage = |binding: u32, read_only| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: match binding {
                    PARAMS => wgpu::BufferBindingType::Uniform,
                    _ => wgpu::BufferBindingType::Storage { read_only },
                },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let entries: Vec<_> = (0..=PARAMS)
            .map(|binding| storage(binding, binding != RESULT))
            .collect();
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries,
        });
        Harness {
            device,
            queue,
            layout,
            pipelines: HashMap::new(),
            tiles: Tiles::Large,
            offered: match halves.is_empty() {
                true => Precision::F32,
                false => Precision::F16,
            },
        }
    }

    /// Pipelines compiled so far.
    pub(crate) fn compiled(&self) -> usize {
        self.pipelines.len()
    }

    /// The results of each call; all have the residents of the first.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        calls: &[(&Sizes, &Call)],
    ) -> Vec<Vec<Vec<u32>>> {
        let mut arena: Vec<u32> = Vec::new();
        let mut push = |words: &[u32]| {
            let at = arena.len() as u32;
            arena.extend_from_slice(words);
            arena.resize(aligned(arena.len() as u32) as usize, 0);
            at
        };
        let inputs: Vec<Vec<u32>> = (calls.iter())
            .map(|(_, call)| call.inputs.iter().map(|words| push(words)).collect())
            .collect();
        let constants: Vec<u32> = calls
            .iter()
            .map(|(_, call)| push(&call.constants))
            .collect();
        let mut lengths = vec![0; program.buffers as usize];
        let homes: Vec<Vec<u32>> = (calls.iter())
            .map(|(sizes, _)| append_call(&mut lengths, sizes))
            .collect();
        let buffers: Vec<wgpu::Buffer> = lengths.iter().map(|words| self.buffer(*words)).collect();
        let residents = self.residents(program, calls[0].1);
        for (number, stage) in program.stages.iter().enumerate() {
            let mut words = arena.clone();
            let table = words.len() as u32;
            let mut blocks = 0;
            for (c, (sizes, _)) in calls.iter().enumerate() {
                let numbers = &sizes.stages[number];
                let home = |source| match source {
                    Source::Input(input) => inputs[c][input as usize],
                    Source::Resident(_) => 0,
                    Source::Scalar => unreachable!("a chain has none"),
                    Source::Buffer(buffer) => homes[c][buffer.0 as usize],
                };
                let entry = Entry {
                    stage,
                    numbers,
                    home,
                    constants: constants[c],
                    tiles: self.tiles,
                };
                blocks += push_entries(&mut words, entry);
            }
            let params = Params {
                table,
                shift: SHIFT,
                blocks,
                ..Params::default()
            };
            if blocks > 0 {
                let arena = self.upload(&words);
                self.dispatch(stage, &params, |source| match source {
                    Source::Input(_) | Source::Scalar => &arena,
                    Source::Resident(input) => &residents[input as usize],
                    Source::Buffer(buffer) => &buffers[buffer.0 as usize],
                });
            }
        }
        let read: HashMap<u32, Vec<u32>> = (program.outputs.iter())
            .map(|output| (output.0, self.download(&buffers[output.0 as usize])))
            .collect();
        let result = |c: usize, output: u32| {
            let start = homes[c][output as usize] as usize;
            let words = calls[c].0.buffers[output as usize] as usize;
            read[&output][start..start + words].to_vec()
        };
        (0..calls.len())
            .map(|c| {
                program
                    .outputs
                    .iter()
                    .map(|output| result(c, output.0))
                    .collect()
            })
            .collect()
    }

    fn dispatch<'a>(
        &mut self,
        stage: &Stage,
        params: &Params,
        buffer_of: impl Fn(Source) -> &'a wgpu::Buffer,
    ) {
        let uniform = self.upload_as(
            bytemuck::cast_slice(&[*params]),
            wgpu::BufferUsages::UNIFORM,
        );
        let sources: Vec<Source> = stage.sources().collect();
        assert!(sources.len() <= MAX_OPERANDS);
        let idle = self.buffer(4);
        let mut bound: Vec<&wgpu::Buffer> = vec![&idle; PARAMS as usize + 1];
        for (binding, source) in sources.iter().enumerate() {
            bound[binding] = buffer_of(*source);
        }
        bound[RESULT as usize] = buffer_of(Source::Buffer(stage.buffer().unwrap()));
        // The segment table lies behind the operands.
        bound[SEGMENTS as usize] = buffer_of(Source::Scalar);
        bound[PARAMS as usize] = &uniform;
        let entries: Vec<wgpu::BindGroupEntry<'_>> = (0_u32..)
            .zip(&bound)
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
        let pipeline = self.pipeline(stage);
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            let x = params.blocks.min(1000);
            pass.dispatch_workgroups(x, params.blocks.div_ceil(x), 1);
        }
        self.queue.submit([encoder.finish()]);
    }

    /// A buffer for each input, packed if it is read so.
    fn residents(&self, program: &Program, call: &Call) -> Vec<wgpu::Buffer> {
        let inputs = call.inputs.iter().enumerate();
        let buffers = inputs.map(|(input, words)| match packing(program, input as u32) {
            Some(packing) => self.upload(&packing.pack(words).unwrap()),
            None => self.upload(words),
        });
        buffers.collect()
    }

    fn pipeline(&mut self, stage: &Stage) -> wgpu::ComputePipeline {
        let text = source(stage, self.tiles, self.offered);
        if let Some(known) = self.pipelines.get(&text) {
            return known.clone();
        }
        let module = self
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(text.as_str().into()),
            });
        let layout = self
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&self.layout)],
                immediate_size: 0,
            });
        let pipeline = self
            .device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: Some(&layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
        self.pipelines.insert(text, pipeline.clone());
        pipeline
    }

    fn buffer(&self, words: u32) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(words.max(4)) * 4,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    fn upload(&self, words: &[u32]) -> wgpu::Buffer {
        self.upload_as(words, wgpu::BufferUsages::STORAGE)
    }

    fn upload_as(&self, words: &[u32], usage: wgpu::BufferUsages) -> wgpu::Buffer {
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            // A vector of four words is read whole.
            size: u64::from(aligned(words.len().max(4) as u32)) * 4,
            usage: usage | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.queue
            .write_buffer(&buffer, 0, bytemuck::cast_slice(words));
        buffer
    }

    fn download(&self, buffer: &wgpu::Buffer) -> Vec<u32> {
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: buffer.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        staging
            .slice(..)
            .map_async(wgpu::MapMode::Read, Result::unwrap);
        self.device
            .poll(wgpu::PollType::wait_indefinitely())
            .unwrap();
        let view = staging.slice(..).get_mapped_range().unwrap();
        bytemuck::cast_slice(&view).to_vec()
    }
}

/// Where the words of a call begin in each buffer, behind the words of the calls before.
fn append_call(lengths: &mut [u32], sizes: &Sizes) -> Vec<u32> {
    let words = sizes.buffers.iter().zip(lengths);
    let place = words.map(|(words, length)| std::mem::replace(length, *length + aligned(*words)));
    place.collect()
}

/// How an input is packed, if it is.
fn packing(program: &Program, input: u32) -> Option<Packing> {
    let mut loads = program.stages.iter().flat_map(|stage| &stage.loads);
    let load = loads.find(|load| load.source == Source::Resident(input));
    load.and_then(|load| load.packing)
}

/// One call of a stage, in a segment table.
struct Entry<'a, F> {
    stage: &'a Stage,
    numbers: &'a StageSizes,
    /// The place of a source of the call.
    home: F,
    /// The place of the call's constants.
    constants: u32,
    tiles: Tiles,
}

/// Appends a call's entries to a segment table; how many.
fn push_entries(words: &mut Vec<u32>, entry: Entry<'_, impl Fn(Source) -> u32>) -> u32 {
    let Entry {
        stage,
        numbers,
        home,
        constants,
        tiles,
    } = entry;
    let mut rest = vec![home(Source::Buffer(stage.buffer().unwrap())) + numbers.result];
    for (load, offset) in stage.loads.iter().zip(&numbers.offsets) {
        rest.push(home(load.source).wrapping_add(*offset));
    }
    if stage.has_constants() {
        rest.push(constants);
    }
    rest.extend(&numbers.words);
    let threads = match (Products::of(stage), tiles) {
        (Some(products), Tiles::Small) => products.small_threads(numbers.threads, &rest[1..]),
        _ => numbers.threads,
    };
    let blocks = threads.div_ceil(1 << SHIFT);
    for block in 0..blocks {
        words.extend([block << SHIFT, threads]);
        words.extend(&rest);
    }
    blocks
}
