//! The wgpu instance in the browser: only a handle for `navigator.gpu`, made anew each time.

/// An instance.
pub(super) fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle())
}
