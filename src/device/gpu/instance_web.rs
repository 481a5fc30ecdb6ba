//! wgpu in the browser: a new one each time, it is only a name for the page's.

/// An instance.
pub(super) fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle())
}
