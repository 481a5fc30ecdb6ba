//! Pipelines by kernel, bind groups by buffers.
//!
//! Lengths, offsets and scalars are in neither, so a new one of those creates
//! nothing.

use std::collections::HashMap;
use std::num::NonZeroU64;

use super::memory::Memory;
use crate::kernel::Kernel;
use crate::plan::{Params, Slot};

/// Everything that is compiled or bound once.
#[derive(Debug, Default)]
pub(super) struct Pipelines {
    layouts: HashMap<usize, (wgpu::BindGroupLayout, wgpu::PipelineLayout)>,
    pipelines: HashMap<Kernel, wgpu::ComputePipeline>,
    groups: HashMap<GroupKey, wgpu::BindGroup>,
    compiled: u64,
    reused: u64,
}

/// Slots keep their buffers until one grows, when all groups are forgotten.
type GroupKey = (Vec<Slot>, Slot);

impl Pipelines {
    /// The pipeline of a kernel and the bind group of its slots.
    pub(super) fn bind(
        &mut self,
        device: &wgpu::Device,
        memory: &Memory,
        kernel: Kernel,
        operands: &[Slot],
        output: Slot,
    ) -> (&wgpu::ComputePipeline, &wgpu::BindGroup) {
        let (group_layout, pipeline_layout) = self
            .layouts
            .entry(operands.len())
            .or_insert_with(|| layouts(device, operands.len()));
        let mut compiled = false;
        let pipeline = self.pipelines.entry(kernel).or_insert_with(|| {
            compiled = true;
            compile(device, kernel, pipeline_layout)
        });
        if compiled {
            self.compiled += 1;
        } else {
            self.reused += 1;
        }
        let group = self
            .groups
            .entry((operands.to_vec(), output))
            .or_insert_with(|| bind_group(device, memory, group_layout, operands, output));
        (pipeline, group)
    }

    /// To be called when a slot has a new buffer.
    pub(super) fn forget_bind_groups(&mut self) {
        self.groups.clear();
    }

    pub(super) fn compiled(&self) -> u64 {
        self.compiled
    }

    pub(super) fn reused(&self) -> u64 {
        self.reused
    }
}

/// Operands, the result, the segment table, the params.
fn layouts(
    device: &wgpu::Device,
    operands: usize,
) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let storage = |read_only| wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Storage { read_only },
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let params = wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Uniform,
        has_dynamic_offset: true,
        min_binding_size: PARAMS_SIZE,
    };
    let types =
        std::iter::repeat_n(storage(true), operands).chain([storage(false), storage(true), params]);
    let entries: Vec<wgpu::BindGroupLayoutEntry> = (0..)
        .zip(types)
        .map(|(binding, ty)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty,
            count: None,
        })
        .collect();
    let group = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    });
    let pipeline = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&group)],
        immediate_size: 0,
    });
    (group, pipeline)
}

const PARAMS_SIZE: Option<NonZeroU64> = NonZeroU64::new(size_of::<Params>() as u64);

fn compile(
    device: &wgpu::Device,
    kernel: Kernel,
    layout: &wgpu::PipelineLayout,
) -> wgpu::ComputePipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(kernel.name()),
        source: wgpu::ShaderSource::Wgsl(kernel.source().into()),
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(kernel.name()),
        layout: Some(layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}

fn bind_group(
    device: &wgpu::Device,
    memory: &Memory,
    layout: &wgpu::BindGroupLayout,
    operands: &[Slot],
    output: Slot,
) -> wgpu::BindGroup {
    let storage = operands
        .iter()
        .chain([&output, &Slot::INPUTS])
        .map(|slot| memory.buffer(*slot).as_entire_binding());
    let params = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
        buffer: memory.buffer(Slot::INPUTS),
        offset: 0,
        size: PARAMS_SIZE,
    });
    let entries: Vec<wgpu::BindGroupEntry<'_>> = (0..)
        .zip(storage.chain([params]))
        .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
        .collect();
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout,
        entries: &entries,
    })
}
