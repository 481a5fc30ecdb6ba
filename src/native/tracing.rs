//! Events of the crate `tracing`, with the feature of that name: one for each batch that came back,
//! and one for what becomes of the device.
//!
//! They are what listeners are told, who are told whether or not anybody traces.

use tracing::{Level, debug, enabled, info, warn};

use super::device_event::DeviceEvent;
use super::platform;
use super::shared::Shared;
use crate::device::Engine;
use crate::session::Facts;

/// The target of events about batches.
const BATCH: &str = "framebatch::batch";
/// The target of events about the device.
const DEVICE: &str = "framebatch::device";

/// Has what becomes of a session that was just opened traced, as far as anybody wants to know:
/// batches are measured only then.
pub(super) fn trace(shared: &Shared) {
    let mut state = shared.lock();
    if enabled!(target: BATCH, Level::DEBUG) {
        state.listeners.add(Box::new(note_batch));
        let session = &mut state.driver.session;
        session.measure_batches(Some(platform::now_ms));
    }
    if enabled!(target: DEVICE, Level::WARN) {
        state.device_listeners.add(Box::new(note_device));
    }
}

fn note_batch(facts: &Facts) {
    debug!(
        target: BATCH,
        id = facts.id.0,
        engine = match facts.engine {
            Engine::Gpu => "gpu",
            Engine::Cpu => "cpu",
        },
        calls = facts.calls,
        items = facts.items,
        failed = facts.failed,
        pieces = facts.pieces,
        submits = facts.submits,
        bytes_up = facts.bytes_up,
        bytes_down = facts.bytes_down,
        flops = facts.flops,
        kernel_bytes = facts.kernel_bytes,
        memory_bytes = facts.memory_bytes,
        wait_ms = facts.wait_ms,
        encode_ms = facts.encode_ms,
        transfer_ms = facts.transfer_ms,
        gpu_ms = facts.gpu_ms,
        read_ms = facts.read_ms,
        wall_ms = facts.wall_ms,
        items_per_second = facts.items_per_second(),
        flops_per_second = facts.flops_per_second(),
        kernel_bytes_per_second = facts.kernel_bytes_per_second(),
        "batch"
    );
}

fn note_device(event: &DeviceEvent) {
    match event {
        DeviceEvent::Lost => warn!(target: DEVICE, "the GPU was lost; its calls wait"),
        DeviceEvent::Fallback => warn!(target: DEVICE, "the CPU took over"),
        DeviceEvent::Restored => info!(target: DEVICE, "a GPU is in use again"),
    }
}
