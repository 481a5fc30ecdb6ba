//! Pipelines by kernel, bind groups by buffers.
//!
//! Lengths, offsets and scalars are in neither, so a new one of those creates
//! nothing.

use std::num::NonZeroU64;

use super::compile::compile;
use super::faults::Faults;
use super::kept::Kept;
use super::memory::Memory;
use crate::device::{Compiled, Readiness};
use crate::error::Error;
use crate::kernel::{Kernel, MAX_OPERANDS, PARAMS, RESULT, SEGMENTS};
use crate::plan::{Params, Slot};

/// Pipelines kept for calls to come: each of a structure that is in use takes a
/// few, and a browser holds some hundred kilobytes for one.
const PIPELINES: usize = 256;

/// Bind groups kept: one for each set of tensors that calls read together.
const GROUPS: usize = 1024;

/// A compiled kernel.
#[derive(Debug)]
pub struct Pipeline(wgpu::ComputePipeline);

impl Pipeline {
    pub(super) fn new(pipeline: wgpu::ComputePipeline) -> Self {
        Pipeline(pipeline)
    }
}

/// What a pipeline is made of.
pub(super) struct Source {
    pub(super) kernel: Kernel,
    layout: wgpu::PipelineLayout,
}

impl Source {
    #[inline(never)] // Each copy costs the package bytes, as below.
    pub(super) fn module(&self, device: &wgpu::Device) -> wgpu::ShaderModule {
        device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(self.kernel.name()),
            source: wgpu::ShaderSource::Wgsl(self.kernel.source().into()),
        })
    }

    #[inline(never)]
    pub(super) fn pipeline(
        &self,
        device: &wgpu::Device,
        module: &wgpu::ShaderModule,
    ) -> wgpu::ComputePipeline {
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(self.kernel.name()),
            layout: Some(&self.layout),
            module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
    }
}

/// Everything that is compiled or bound once.
#[derive(Debug)]
pub(super) struct Pipelines {
    group_layout: wgpu::BindGroupLayout,
    layout: wgpu::PipelineLayout,
    pipelines: Kept<(Kernel, wgpu::ComputePipeline)>,
    /// Kernels that a compiler is at work on.
    compiling: Vec<Kernel>,
    /// Those that did not compile, until a launch has said so.
    failed: Vec<(Kernel, Error)>,
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
    pub(super) fn new(device: &wgpu::Device) -> Self {
        let group_layout = group_layout(device);
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group_layout)],
            immediate_size: 0,
        });
        Pipelines {
            group_layout,
            layout,
            pipelines: Kept::new(PIPELINES),
            compiling: Vec::new(),
            failed: Vec::new(),
            groups: Kept::new(GROUPS),
            launches: 0,
            compiled: 0,
            reused: 0,
        }
    }

    /// Whether a kernel has its pipeline; if not, it gets one.
    pub(super) fn prepare(
        &mut self,
        (device, faults): (&wgpu::Device, &Faults),
        kernel: &Kernel,
    ) -> Readiness {
        // Of the coming launch, so that none makes room for another one of it.
        let is_made = |(known, _): &(Kernel, _)| same(known, kernel);
        if self.pipelines.touch(self.launches + 1, is_made) {
            return Readiness::Ready;
        }
        if let Some((_, error)) = self.failed.iter().find(|(known, _)| same(known, kernel)) {
            return Readiness::Failed(error.clone());
        }
        if self.compiling.iter().any(|known| same(known, kernel)) {
            return Readiness::Compiling(None);
        }
        self.compiling.push(kernel.clone());
        let work = compile(device, faults, self.source(kernel));
        Readiness::Compiling(Some(work))
    }

    /// Takes what became of a kernel.
    pub(super) fn adopt(&mut self, Compiled { kernel, outcome }: Compiled) {
        self.compiling.retain(|known| !same(known, &kernel));
        match outcome {
            Ok(Some(Pipeline(pipeline))) => {
                let is_made = |(known, _): &(Kernel, _)| same(known, &kernel);
                let make = || (kernel.clone(), pipeline);
                self.pipelines
                    .find_or_make(self.launches + 1, is_made, make);
                self.compiled += 1;
            }
            Ok(None) => {}
            Err(error) => self.failed.push((kernel, error)),
        }
    }

    /// Why a kernel did not compile. Asked once: then it may try again.
    pub(super) fn take_failure(&mut self, kernel: &Kernel) -> Option<Error> {
        let mut failed = self.failed.iter();
        let at = failed.position(|(known, _)| same(known, kernel))?;
        Some(self.failed.swap_remove(at).1)
    }

    fn source(&self, kernel: &Kernel) -> Source {
        Source {
            kernel: kernel.clone(),
            layout: self.layout.clone(),
        }
    }

    /// The pipeline of a kernel and the bind group of its slots.
    pub(super) fn bind(
        &mut self,
        device: &wgpu::Device,
        memory: &Memory,
        (kernel, operands, output): (&Kernel, [Slot; MAX_OPERANDS], Slot),
    ) -> (&wgpu::ComputePipeline, &wgpu::BindGroup) {
        let source = self.source(kernel);
        let (pipeline, is_new) = self.pipelines.find_or_make(
            self.launches,
            |(known, _)| same(known, kernel),
            || {
                let pipeline = source.pipeline(device, &source.module(device));
                (source.kernel, pipeline)
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
        self.pipelines.has(|(known, _)| same(known, kernel)) && self.groups.has(bound)
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

/// Whether one pipeline is that of both.
#[inline(never)]
fn same(a: &Kernel, b: &Kernel) -> bool {
    match (a, b) {
        (Kernel::Fused(a), Kernel::Fused(b)) => a.shares_kernel(b),
        (Kernel::Product(a, _, of_a), Kernel::Product(b, _, of_b)) => {
            of_a == of_b && a.shares_kernel(b)
        }
        _ => a == b,
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
