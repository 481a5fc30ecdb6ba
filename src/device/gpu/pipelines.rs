//! Pipelines by kernel, bind groups by buffers.
//!
//! Lengths, offsets and scalars are in neither, so a new one of those creates
//! nothing.

use std::num::NonZeroU64;

use super::kept::Kept;
use super::memory::Memory;
use crate::kernel::{Kernel, MAX_OPERANDS, PARAMS, RESULT, SEGMENTS, Target};
use crate::plan::{Params, Slot};

/// Pipelines kept for calls to come: each of a structure that is in use takes a
/// few, and a browser holds some hundred kilobytes for one.
const PIPELINES: usize = 256;

/// Bind groups kept: one for each set of tensors that calls read together.
const GROUPS: usize = 1024;

/// Everything that is compiled or bound once.
#[derive(Debug)]
pub(super) struct Pipelines {
    group_layout: wgpu::BindGroupLayout,
    layout: wgpu::PipelineLayout,
    target: Target,
    pipelines: Kept<(Kernel, wgpu::ComputePipeline)>,
    groups: Kept<Group>,
    launches: u64,
    compiled: u64,
    reused: u64,
}

/// Slots keep their buffers until one grows, when all groups are forgotten.
#[derive(Debug)]
struct Group {
    operands: [Slot; MAX_OPERANDS],
    output: Slot,
    group: wgpu::BindGroup,
}

impl Pipelines {
    pub(super) fn new(device: &wgpu::Device, target: Target) -> Self {
        let group_layout = group_layout(device);
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group_layout)],
            immediate_size: 0,
        });
        Pipelines {
            group_layout,
            layout,
            target,
            pipelines: Kept::new(PIPELINES),
            groups: Kept::new(GROUPS),
            launches: 0,
            compiled: 0,
            reused: 0,
        }
    }

    /// The pipeline of a kernel and the bind group of its slots.
    pub(super) fn bind(
        &mut self,
        device: &wgpu::Device,
        memory: &Memory,
        (kernel, operands, output): (&Kernel, [Slot; MAX_OPERANDS], Slot),
    ) -> (&wgpu::ComputePipeline, &wgpu::BindGroup) {
        let (pipeline, is_new) = self.pipelines.find_or_make(
            self.launches,
            |(known, _)| known == kernel,
            || {
                let source = kernel.source(self.target);
                let pipeline = compile(device, (kernel.name(), source), &self.layout);
                (kernel.clone(), pipeline)
            },
        );
        if is_new {
            self.compiled += 1;
        } else {
            self.reused += 1;
        }
        let (group, _) = self.groups.find_or_make(
            self.launches,
            |known| known.operands == operands && known.output == output,
            || Group {
                operands,
                output,
                group: bind_group(device, memory, &self.group_layout, (operands, output)),
            },
        );
        (
            &self.pipelines.get(pipeline).1,
            &self.groups.get(group).group,
        )
    }

    /// What is bound until the next one is kept until then.
    pub(super) fn begin_launch(&mut self) {
        self.launches += 1;
    }

    /// Whether a dispatch would find all it needs.
    pub(super) fn is_ready(
        &self,
        kernel: &Kernel,
        operands: [Slot; MAX_OPERANDS],
        output: Slot,
    ) -> bool {
        let bound = |known: &Group| known.operands == operands && known.output == output;
        self.pipelines.has(|(known, _)| known == kernel) && self.groups.has(bound)
    }

    /// Makes everything anew when it is needed next.
    pub(super) fn forget(&mut self) {
        self.groups.clear();
        self.pipelines.clear();
    }

    /// To be called when one slot has a new buffer, or none any more.
    pub(super) fn forget_bind_groups_of(&mut self, slot: Slot) {
        self.groups
            .retain(|group| !group.operands.contains(&slot) && group.output != slot);
    }

    /// To be called when any slot has a new buffer.
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

/// One layout for all kernels; each reads a part of it.
fn group_layout(device: &wgpu::Device) -> wgpu::BindGroupLayout {
    let entry = |binding, ty, has_dynamic_offset, min_binding_size| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty,
            has_dynamic_offset,
            min_binding_size,
        },
        count: None,
    };
    let storage = |binding, read_only| {
        entry(
            binding,
            wgpu::BufferBindingType::Storage { read_only },
            false,
            None,
        )
    };
    let entries = BINDINGS.map(|place| match place {
        PARAMS => entry(PARAMS, wgpu::BufferBindingType::Uniform, true, PARAMS_SIZE),
        binding => storage(binding, binding != RESULT),
    });
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    })
}

/// Every binding: the operands, the result, the segment table, the params.
const BINDINGS: [u32; PARAMS as usize + 1] = [0, 1, 2, 3, 4, 5, RESULT, SEGMENTS, PARAMS];

const PARAMS_SIZE: Option<NonZeroU64> = NonZeroU64::new(size_of::<Params>() as u64);

fn compile(
    device: &wgpu::Device,
    (name, source): (&str, String),
    layout: &wgpu::PipelineLayout,
) -> wgpu::ComputePipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(name),
        source: wgpu::ShaderSource::Wgsl(source.into()),
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(name),
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
    (operands, output): ([Slot; MAX_OPERANDS], Slot),
) -> wgpu::BindGroup {
    let storage = |binding, slot| wgpu::BindGroupEntry {
        binding,
        resource: memory.buffer(slot).as_entire_binding(),
    };
    let params = || wgpu::BindGroupEntry {
        binding: PARAMS,
        resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: memory.buffer(Slot::INPUTS),
            offset: 0,
            size: PARAMS_SIZE,
        }),
    };
    let entries = BINDINGS.map(|place| match place {
        PARAMS => params(),
        SEGMENTS => storage(SEGMENTS, Slot::INPUTS),
        RESULT => storage(RESULT, output),
        binding => storage(binding, operands[binding as usize]),
    });
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout,
        entries: &entries,
    })
}
