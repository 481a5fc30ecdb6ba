//! Launches a plan: one upload, one compute pass, one copy to a staging buffer, one
//! submission.
//!
//! What a launch has to create first, and whether the budget has room for that, is the
//! business of `launch_needs`.

use super::device_errors::{Created, Suspicion};
use super::error_scopes::ErrorScopes;
use super::pipelines::Bindings;
use super::read_back::Copied;
use super::upload_tables::{Ready, Upload};
use super::uploads::Written;
use super::{Gpu, allocation, bytes_of, error_scopes, uploads};
use crate::device::{Device, Flight, HostWords, Readback};
use crate::error::Error;
use crate::plan::{Dispatch, Operand, Plan, Slot};
use crate::tensor::Arena;

/// The resident tensors of a plan.
#[derive(Debug, Default)]
struct Tensors {
    /// Whether there are any.
    has_some: bool,
    /// Whether some lie in imported buffers, which the program may destroy at any time.
    has_imported: bool,
}

/// Why a launch that names an imported buffer may fail.
const UNUSABLE: &str = "a buffer that a tensor lies in is destroyed or of another device; make the tensor anew of a buffer of this device";

impl Gpu {
    pub(super) fn try_launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error> {
        self.errors.check()?;
        self.drop_suspects();
        self.free_released();
        self.timer.prepare(&self.device, &self.queue);
        let failed = |work: &Dispatch| self.pipelines.take_failure(&work.kernel);
        if let Some(error) = plan.dispatches().find_map(failed) {
            return Err(error);
        }
        let tensors = self.tensors_of(plan)?;
        let (ready, upload) = self.append_tables(plan, arena)?;
        let needs = self.needs(plan, upload.bytes)?;
        let compiled = self.pipelines.compiled();
        let is_warm = self.is_warm(plan, &needs);
        self.check_budget(plan, &needs)?;
        // An object that an earlier launch created may be invalid, and this submission with it.
        let is_sound = is_warm && !tensors.has_imported && !self.errors.is_in_doubt();
        let scopes = (!is_sound).then(|| ErrorScopes::open(&self.device));
        self.make_room(&needs);
        let mut encoder = self.encoder();
        let written = self.upload(arena, &upload, &mut encoder);
        self.encode(&mut encoder, &ready);
        let flight = self.submit(encoder, written, bytes_of(plan.words(Slot::RESULTS)));
        let Some(scopes) = scopes else {
            return Ok(self.behind_pending(flight));
        };
        let caught = scopes.close(if self.pipelines.compiled() > compiled {
            Error::Shader
        } else if tensors.has_some {
            allocation::INVALID
        } else {
            Error::Fatal
        });
        let created = match is_warm {
            true => Created::Nothing,
            false => Created::Something,
        };
        let check = self.buffer_check(plan);
        let (errors, mut launched) = (self.errors.clone(), self.errors.launched(created));
        let poller = self.poller.clone();
        Ok(Box::pin(async move {
            let readback = flight.await;
            // A lost device makes every object invalid, which is no fault of the launch.
            errors.check()?;
            // Before the read-back: an invalid staging buffer is refused a map as well.
            let mut caught = error_scopes::judge_caught(&poller, caught.await).await;
            if caught.is_err() && check.note_unusable().await {
                caught = Err(Error::InvalidInput(UNUSABLE.into()));
            }
            launched.all_before().await;
            launched.report(caught)?;
            readback
        }))
    }

    /// The flight of a launch that is sound by itself, which lands behind those that may not be.
    fn behind_pending(&self, flight: Flight) -> Flight {
        if !self.errors.has_pending() {
            return flight;
        }
        let mut launched = self.errors.launched(Created::Nothing);
        Box::pin(async move {
            let readback = flight.await;
            launched.all_before().await;
            launched.report(Ok(()))?;
            readback
        })
    }

    /// The resident tensors of a plan, which must exist.
    fn tensors_of(&self, plan: &Plan) -> Result<Tensors, Error> {
        let mut tensors = Tensors::default();
        for tensor in plan.tensors() {
            let entry = self.buffers.entry(tensor);
            let entry = entry.ok_or_else(Error::tensor_missing)?;
            tensors.has_some = true;
            tensors.has_imported |= entry.is_imported();
        }
        Ok(tensors)
    }

    /// Forgets the objects that may be invalid after an earlier launch.
    pub(super) fn drop_suspects(&mut self) {
        let Some(suspicion) = self.errors.take_suspicion() else {
            return;
        };
        self.trim();
        if suspicion == Suspicion::All {
            self.pipelines.forget();
        }
    }

    /// Writes operands and tables: to a mapped buffer, whose copy is encoded, or through the
    /// queue.
    fn upload(
        &mut self,
        arena: &Arena,
        upload: &Upload,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Option<Written> {
        let target = self.buffers.buffer(Slot::INPUTS);
        let mut took = 0;
        let written = self.timer.time(&mut took, || {
            let written = self.uploads.write(arena, &upload.runs, upload.bytes);
            if written.is_none() {
                uploads::each_slice(arena, &upload.runs, &mut |to, bytes| {
                    self.queue.write_buffer(target, to.into(), bytes);
                });
            }
            written
        });
        match &written {
            Some(written) => written.copy_to(encoder, target, 0),
            None => {
                let limit = self.max_buffer_bytes();
                self.uploads.prepare(&self.device, upload.bytes, limit);
            }
        }
        self.counters.upload_ns += took;
        self.counters.uploads += 1;
        self.counters.bytes_up += upload.bytes;
        written
    }

    fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, ready: &[Ready<'_>]) {
        self.pipelines.begin_launch();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: None,
            timestamp_writes: self.timer.writes(),
        });
        for Ready { work, params, grid } in ready {
            let slots = bindings_of(work);
            let (pipeline, group) = self.pipelines.bind(&self.buffers, &work.kernel, slots);
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[*params]);
            pass.dispatch_workgroups(grid.0, grid.1, 1);
            self.counters.dispatches += 1;
        }
    }

    /// Copies the results' first `bytes` to a staging buffer, if there are any, submits, and
    /// asks for the map.
    fn submit(
        &mut self,
        mut encoder: wgpu::CommandEncoder,
        written: Option<Written>,
        bytes: u64,
    ) -> Flight {
        let all = bytes + self.timer.bytes();
        let staged = (bytes > 0).then(|| {
            self.read_back
                .take(&self.device, all, self.limits.max_buffer_size)
        });
        let mut stamps = None;
        if let Some(staged) = &staged {
            let results = self.buffers.buffer(Slot::RESULTS);
            encoder.copy_buffer_to_buffer(results, 0, staged.buffer(), 0, bytes);
            stamps = self.timer.collect(&mut encoder, staged.buffer(), bytes);
        }
        let submission = self.queue.submit([encoder.finish()]);
        self.counters.submits += 1;
        if let Some(written) = written {
            // Mapped before the results are, so that it is mapped when they have arrived.
            self.uploads.reclaim(written);
        }
        let Some(staged) = staged else {
            return self.finish(submission);
        };
        self.counters.readbacks += 1;
        self.counters.bytes_down += bytes;
        let copied = Copied {
            bytes: all,
            stamps,
            submission,
        };
        staged.read(copied, &self.poller)
    }

    /// The flight of a submission whose results all stay on the device. It lands when the device is
    /// done, so that callers who wait for one another's writes do not outrun the device.
    fn finish(&self, submission: wgpu::SubmissionIndex) -> Flight {
        let (sender, receiver) = futures_channel::oneshot::channel();
        self.queue.on_submitted_work_done(move || {
            let _ = sender.send(()); // The flight may have been dropped by a disposed session.
        });
        let poller = self.poller.clone();
        Box::pin(async move {
            // The callback comes for a lost device as well, or never.
            let _ = poller.finish(Some(submission), receiver).await;
            poller.check()?;
            Ok(Readback::Host(HostWords::default()))
        })
    }

    /// Submits nothing, which makes some browsers notice sooner that earlier work is done.
    pub fn nudge(&mut self) {
        self.queue.submit([]);
        self.counters.nudges += 1;
    }

    pub(super) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None })
    }
}

/// The slots that a dispatch binds. Bindings that its kernel does not read get the operands'
/// slot.
pub(super) fn bindings_of(work: &Dispatch) -> Bindings {
    let operand = |k| match work.operands.get(k) {
        Some(Operand::Rows { slot, .. }) => *slot,
        Some(Operand::Scalar) | None => Slot::INPUTS,
    };
    Bindings {
        operands: std::array::from_fn(operand),
        output: work.output,
    }
}
