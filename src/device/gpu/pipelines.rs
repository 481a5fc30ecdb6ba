//! Pipelines by kernel, bind groups by buffers.
//!
//! Lengths, offsets and scalars are in neither, so other lengths, offsets and scalars create
//! nothing.

use std::num::NonZeroU64;

use super::buffers::Buffers;
use super::compile::compile;
use super::device_errors::DeviceErrors;
use super::lru::Lru;
use crate::device::{Compiled, Readiness};
use crate::error::Error;
use crate::kernel::{Kernel, MAX_OPERANDS, PARAMS, Precision, RESULT, SEGMENTS};
use crate::plan::{Params, Slot};

/// The most pipelines that are kept. A structure in use needs a few, and a browser holds some
/// hundred kilobytes for each.
const PIPELINES: usize = 256;

/// The most bind groups that are kept: one for each set of tensors that calls read together.
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
    /// What the device has.
    precision: Precision,
}

impl Source {
    pub(super) fn text(&self) -> String {
        self.kernel.source(self.precision)
    }

    #[inline(never)] // An inlined copy at each caller costs the package bytes, as below.
    pub(super) fn module(&self, device: &wgpu::Device) -> wgpu::ShaderModule {
        device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(self.kernel.name()),
            source: wgpu::ShaderSource::Wgsl(self.text().into()),
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
    device: wgpu::Device,
    errors: DeviceErrors,
    group_layout: wgpu::BindGroupLayout,
    layout: wgpu::PipelineLayout,
    pipelines: Lru<(Kernel, wgpu::ComputePipeline)>,
    /// Kernels that are being compiled.
    compiling: Vec<Kernel>,
    /// Kernels that did not compile, until a launch has reported the error.
    failed: Vec<(Kernel, Error)>,
    groups: Lru<Group>,
    launches: u64,
    compiled: u64,
    reused: u64,
}

/// A bind group. Slots keep their buffers until one grows, and then all groups are forgotten.
#[derive(Debug)]
struct Group {
    slots: Bindings,
    group: wgpu::BindGroup,
}

/// The slots that a dispatch binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bindings {
    pub(super) operands: [Slot; MAX_OPERANDS],
    pub(super) output: Slot,
}

impl Pipelines {
    pub(super) fn new(device: &wgpu::Device, errors: &DeviceErrors) -> Self {
        let group_layout = group_layout(device);
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group_layout)],
            immediate_size: 0,
        });
        Pipelines {
            device: device.clone(),
            errors: errors.clone(),
            group_layout,
            layout,
            pipelines: Lru::new(PIPELINES),
            compiling: Vec::new(),
            failed: Vec::new(),
            groups: Lru::new(GROUPS),
            launches: 0,
            compiled: 0,
            reused: 0,
        }
    }

    /// Whether a kernel has its pipeline; if not, its compilation begins.
    pub(super) fn prepare(&mut self, kernel: &Kernel) -> Readiness {
        // Marked as used by the coming launch, so that no pipeline of that launch is evicted.
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
        let work = compile(&self.device, &self.errors, self.source(kernel));
        Readiness::Compiling(Some(work))
    }

    /// Takes the outcome of a compilation.
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

    /// Why a kernel did not compile. The error is returned once: after that the kernel may be
    /// compiled again.
    pub(super) fn take_failure(&mut self, kernel: &Kernel) -> Option<Error> {
        let mut failed = self.failed.iter();
        let at = failed.position(|(known, _)| same(known, kernel))?;
        Some(self.failed.swap_remove(at).1)
    }

    fn source(&self, kernel: &Kernel) -> Source {
        Source {
            kernel: kernel.clone(),
            layout: self.layout.clone(),
            precision: match self.device.features().contains(wgpu::Features::SHADER_F16) {
                true => Precision::F16,
                false => Precision::F32,
            },
        }
    }

    /// The pipeline of a kernel and the bind group of its slots.
    pub(super) fn bind(
        &mut self,
        buffers: &Buffers,
        kernel: &Kernel,
        slots: Bindings,
    ) -> (&wgpu::ComputePipeline, &wgpu::BindGroup) {
        let source = self.source(kernel);
        let (pipeline, is_new) = self.pipelines.find_or_make(
            self.launches,
            |(known, _)| same(known, kernel),
            || {
                let device = &self.device;
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
            |known| known.slots == slots,
            || Group {
                slots,
                group: bind_group(&self.device, buffers, &self.group_layout, slots),
            },
        );
        (
            &self.pipelines.get(pipeline).1,
            &self.groups.get(group).group,
        )
    }

    /// Begins a launch: pipelines and groups that are bound from now on stay until the next one.
    pub(super) fn begin_launch(&mut self) {
        self.launches += 1;
    }

    /// Whether a dispatch creates neither a pipeline nor a bind group.
    pub(super) fn is_ready(&self, kernel: &Kernel, slots: Bindings) -> bool {
        let bound = |known: &Group| known.slots == slots;
        self.pipelines.has(|(known, _)| same(known, kernel)) && self.groups.has(bound)
    }

    /// Forgets all pipelines and bind groups.
    pub(super) fn forget(&mut self) {
        self.groups.clear();
        self.pipelines.clear();
    }

    /// Forgets the bind groups of a slot whose buffer has changed or is gone.
    pub(super) fn forget_bind_groups_of(&mut self, slot: Slot) {
        self.groups
            .retain(|group| !group.slots.operands.contains(&slot) && group.slots.output != slot);
    }

    /// Forgets all bind groups.
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

/// Whether two kernels share a pipeline.
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

/// One layout for all kernels, each of which uses some of the bindings.
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
    buffers: &Buffers,
    layout: &wgpu::BindGroupLayout,
    slots: Bindings,
) -> wgpu::BindGroup {
    let storage = |binding, slot| wgpu::BindGroupEntry {
        binding,
        resource: buffers.binding(slot),
    };
    let params = || wgpu::BindGroupEntry {
        binding: PARAMS,
        resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: buffers.buffer(Slot::INPUTS),
            offset: 0,
            size: PARAMS_SIZE,
        }),
    };
    let entries = BINDINGS.map(|place| match place {
        PARAMS => params(),
        SEGMENTS => storage(SEGMENTS, Slot::INPUTS),
        RESULT => storage(RESULT, slots.output),
        binding => storage(binding, slots.operands[binding as usize]),
    });
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout,
        entries: &entries,
    })
}
