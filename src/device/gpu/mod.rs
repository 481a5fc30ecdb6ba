//! A GPU through wgpu, in the browser and natively.
//!
//! A batch is one upload, one encoder, one compute pass, one copy of all
//! results into one staging buffer, one submission and one map. Nothing is
//! created for a batch no larger than the largest before. No module above this
//! one names wgpu.

mod faults;
mod memory;
mod open;
mod pipelines;

#[cfg(not(target_arch = "wasm32"))]
#[path = "mapped_native.rs"]
mod mapped;
#[cfg(target_arch = "wasm32")]
#[path = "mapped_web.rs"]
mod mapped;

#[cfg(not(target_arch = "wasm32"))]
#[path = "poll_native.rs"]
mod poll;
#[cfg(target_arch = "wasm32")]
#[path = "poll_web.rs"]
mod poll;

#[cfg(target_arch = "wasm32")]
#[path = "raw_web.rs"]
mod raw;

#[cfg(not(target_arch = "wasm32"))]
#[path = "scopes_native.rs"]
mod scopes;
#[cfg(target_arch = "wasm32")]
#[path = "scopes_web.rs"]
mod scopes;

pub use mapped::Mapped;
pub use open::{GpuOptions, PowerPreference};

use self::faults::Faults;
use self::memory::{Memory, Reads, Staged};
use self::pipelines::Pipelines;
use self::scopes::Scopes;
use super::{Counters, Device, DeviceInfo, DeviceLimits, Flight, Readback};
use crate::error::Error;
use crate::kernel::MAX_OPERANDS;
use crate::plan::{self, Dispatch, Operand, Params, Plan, Slot, Table};
use crate::tensor::{Arena, WORD};

/// WebGPU's largest alignment of a dynamic uniform offset, in words.
const PARAMS_STRIDE: u32 = 256 / WORD;

/// A GPU.
#[derive(Debug)]
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    info: DeviceInfo,
    limits: wgpu::Limits,
    faults: Faults,
    memory: Memory,
    reads: Reads,
    pipelines: Pipelines,
    counters: Counters,
}

/// A dispatch with its address in the arena, ready to be encoded.
struct Ready<'a> {
    work: &'a Dispatch,
    /// Byte offset of its params.
    params: u32,
    grid: (u32, u32),
}

impl Device for Gpu {
    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            max_side_bytes: self.max_buffer_bytes(),
        }
    }

    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn counters(&self) -> Counters {
        let held = self.memory.held().plus(self.reads.held());
        Counters {
            pool_bytes: held.bytes,
            pool_peak_bytes: held.peak,
            pool_buffers: held.buffers,
            pipelines_compiled: self.pipelines.compiled(),
            pipelines_reused: self.pipelines.reused(),
            ..self.counters
        }
    }

    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Flight {
        match self.try_launch(plan, arena) {
            Ok(flight) => flight,
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn destroy(&mut self) {
        self.memory.destroy();
        self.reads.destroy();
        self.device.destroy();
    }
}

impl Gpu {
    fn try_launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error> {
        self.faults.check()?;
        if self.faults.take_suspicion() {
            // Something that an earlier launch created may be invalid.
            self.memory.destroy();
            self.reads.trim();
            self.pipelines.forget();
        }
        let ready = self.append_tables(plan, arena)?;
        let needs = self.needs(plan, arena)?;
        let compiled = self.pipelines.compiled();
        let scopes = (!self.is_warm(plan, &needs)).then(|| Scopes::open(&self.device));
        self.make_room(&needs);
        self.upload(arena);
        let mut encoder = self.encoder();
        self.encode(&mut encoder, &ready);
        let flight = self.finish(encoder, bytes_of(plan.words(Slot::RESULTS)));
        let Some(scopes) = scopes else {
            return Ok(flight);
        };
        let caught = scopes.close(if self.pipelines.compiled() > compiled {
            Error::Shader
        } else {
            Error::Fatal
        });
        let faults = self.faults.clone();
        Ok(Box::pin(async move {
            let readback = flight.await;
            // A lost device makes everything invalid: that is no fault of the launch.
            faults.check()?;
            // First, because an invalid staging buffer is also refused a map.
            caught.await.inspect_err(|_| faults.suspect())?;
            readback
        }))
    }

    /// Whether a launch finds everything made that it uses.
    fn is_warm(&self, plan: &Plan, needs: &[(Slot, u64)]) -> bool {
        let fits = |(slot, bytes): &(Slot, u64)| self.memory.fits(*slot, *bytes);
        needs.iter().all(fits)
            && self.reads.fits(bytes_of(plan.words(Slot::RESULTS)))
            && plan.dispatches().all(|work| {
                self.pipelines
                    .is_ready(&work.kernel, operands_of(work), work.output)
            })
    }

    /// Writes segment tables and params behind the operands, so that they
    /// travel in the same upload.
    fn append_tables<'a>(
        &self,
        plan: &'a Plan,
        arena: &mut Arena,
    ) -> Result<Vec<Ready<'a>>, Error> {
        let tables: Vec<(&Dispatch, Table)> = plan
            .dispatches()
            .map(|work| (work, plan::table(work)))
            .collect();
        let params_words = u32::try_from(tables.len()).expect("few dispatches") * PARAMS_STRIDE;
        let table_words: usize = tables.iter().map(|(_, table)| table.words.len()).sum();
        let total = u64::from(params_words) + table_words as u64;
        let padding = arena.len().next_multiple_of(PARAMS_STRIDE) - arena.len();
        let words = u32::try_from(u64::from(padding) + total)
            .map_err(|_| self.too_large("a batch", total))?;
        // Params, padding and tables are one run, so it starts right behind
        // the operands even where the arena opens a chunk for it.
        arena.reserve(words);
        let start = arena.take(padding).at + padding;
        let tail = arena.take(words - padding);
        let mut next = start + params_words;
        let mut ready = Vec::with_capacity(tables.len());
        let target = arena.write(tail);
        for (index, (work, table)) in tables.iter().enumerate() {
            let params = Params {
                table: next,
                ..table.params
            };
            let at = index * PARAMS_STRIDE as usize;
            let fields: &[u32] = bytemuck::cast_slice(std::slice::from_ref(&params));
            target[at..at + fields.len()].copy_from_slice(fields);
            let from = (next - start) as usize;
            target[from..from + table.words.len()].copy_from_slice(&table.words);
            next += u32::try_from(table.words.len()).expect("checked above");
            let limit = self.limits.max_compute_workgroups_per_dimension;
            let grid = plan::grid(table.threads, limit)
                .ok_or_else(|| self.too_large(work.kernel.name(), table.threads))?;
            let params = (start + u32::try_from(at).expect("checked above")) * WORD;
            ready.push(Ready { work, params, grid });
        }
        Ok(ready)
    }

    /// Submits nothing, which makes some browsers notice sooner that earlier
    /// work is done.
    pub fn nudge(&mut self) {
        self.queue.submit([]);
        self.counters.nudges += 1;
    }

    fn encoder(&self) -> wgpu::CommandEncoder {
        self.device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None })
    }

    /// Copies the results' first `bytes` to a staging buffer, submits and maps.
    fn finish(&mut self, mut encoder: wgpu::CommandEncoder, bytes: u64) -> Flight {
        let staged = self.reads.take(&self.device, bytes);
        encoder.copy_buffer_to_buffer(
            self.memory.buffer(Slot::RESULTS),
            0,
            staged.buffer(),
            0,
            bytes,
        );
        self.queue.submit([encoder.finish()]);
        self.counters.submits += 1;
        self.counters.readbacks += 1;
        self.counters.bytes_down += bytes;
        self.read(staged, bytes)
    }

    /// Bytes that each slot must hold.
    fn needs(&self, plan: &Plan, arena: &Arena) -> Result<Vec<(Slot, u64)>, Error> {
        let limit = self.max_buffer_bytes();
        let slots = (0..).map(Slot).zip(&plan.slots);
        let needs = slots.map(|(slot, words)| {
            let words = if slot == Slot::INPUTS {
                arena.len()
            } else {
                *words
            };
            (slot, bytes_of(words))
        });
        let needs: Vec<(Slot, u64)> = needs.collect();
        match needs.iter().find(|(_, need)| *need > limit) {
            Some((_, need)) => Err(Error::TooLarge {
                what: "a batch",
                need: *need,
                limit,
            }),
            None => Ok(needs),
        }
    }

    fn make_room(&mut self, needs: &[(Slot, u64)]) {
        for (slot, bytes) in needs {
            if self
                .memory
                .grow(&self.device, *slot, *bytes, self.max_buffer_bytes())
            {
                self.pipelines.forget_bind_groups();
            }
        }
    }

    fn upload(&mut self, arena: &Arena) {
        for (at, words) in arena.pieces() {
            let bytes: &[u8] = bytemuck::cast_slice(words);
            self.queue.write_buffer(
                self.memory.buffer(Slot::INPUTS),
                u64::from(at) * WORD as u64,
                bytes,
            );
            self.counters.uploads += 1;
            self.counters.bytes_up += bytes.len() as u64;
        }
    }

    fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, ready: &[Ready<'_>]) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for Ready { work, params, grid } in ready {
            let (pipeline, group) = self.pipelines.bind(
                &self.device,
                &self.memory,
                (&work.kernel, operands_of(work), work.output),
            );
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[*params]);
            pass.dispatch_workgroups(grid.0, grid.1, 1);
            self.counters.dispatches += 1;
        }
    }

    fn read(&self, staged: Staged, bytes: u64) -> Flight {
        let (sender, receiver) = futures_channel::oneshot::channel();
        staged
            .buffer()
            .map_async(wgpu::MapMode::Read, 0..bytes, move |result| {
                // The flight may have been dropped by a disposed session.
                let _ = sender.send(result);
            });
        let faults = self.faults.clone();
        let device = self.device.clone();
        Box::pin(async move {
            poll::finish(&device);
            let mapped = receiver.await;
            faults.check()?;
            match mapped {
                Ok(Ok(())) => Ok(Readback::Mapped(Mapped::new(staged, bytes)?)),
                Ok(Err(_)) | Err(_) => Err(Error::DeviceLost("a read-back was refused".into())),
            }
        })
    }

    /// Whole buffers are bound, so both limits hold.
    fn max_buffer_bytes(&self) -> u64 {
        self.limits
            .max_buffer_size
            .min(self.limits.max_storage_buffer_binding_size)
    }

    fn too_large(&self, what: &'static str, words: u64) -> Error {
        Error::TooLarge {
            what,
            need: words * WORD as u64,
            limit: self.max_buffer_bytes(),
        }
    }
}

/// The slots that a dispatch binds. What its kernel does not read is bound to the
/// operands all the same.
fn operands_of(work: &Dispatch) -> [Slot; MAX_OPERANDS] {
    std::array::from_fn(|k| match work.operands.get(k) {
        Some(Operand::Rows { slot, .. }) => *slot,
        Some(Operand::Scalar) | None => Slot::INPUTS,
    })
}

fn bytes_of(words: u32) -> u64 {
    u64::from(words) * u64::from(WORD)
}
