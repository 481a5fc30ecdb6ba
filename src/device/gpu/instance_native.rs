//! wgpu natively: one for the process.
//!
//! wgpu tells buffers of two devices apart only within an instance; in another
//! one their numbers mean other buffers, or none, at which it panics.

use std::sync::OnceLock;

/// The instance that all devices come from.
pub(super) fn instance() -> wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    let make = || wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    INSTANCE.get_or_init(make).clone()
}
