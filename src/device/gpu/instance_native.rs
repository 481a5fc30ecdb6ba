//! The wgpu instance natively: one for the whole process.
//!
//! Within an instance wgpu notices a buffer that belongs to another device. Across instances
//! its ids collide, which means another buffer or a panic; so there is only one instance.

use std::sync::OnceLock;

/// The instance that all devices come from.
pub(super) fn instance() -> wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    let make = || wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    INSTANCE.get_or_init(make).clone()
}
