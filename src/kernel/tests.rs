//! Holds the WGSL against what Rust says of it, without a GPU.

use super::*;
use crate::plan::Params;

fn module(kernel: &Kernel) -> naga::Module {
    naga::front::wgsl::parse_str(&kernel.source()).unwrap_or_else(|error| {
        panic!(
            "{}: {}",
            kernel.name(),
            error.emit_to_string(&kernel.source())
        )
    })
}

#[test]
fn every_kernel_is_valid_wgsl() {
    for kernel in Kernel::ALL {
        let module = module(&kernel);
        naga::valid::Validator::new(
            naga::valid::ValidationFlags::all(),
            naga::valid::Capabilities::empty(),
        )
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}: {error:?}", kernel.name()));
    }
}

#[test]
fn workgroups_and_bindings_are_as_the_device_assumes() {
    for kernel in Kernel::ALL {
        let module = module(&kernel);
        let main = &module.entry_points[0];
        assert_eq!(main.name, "main", "{}", kernel.name());
        assert_eq!(main.workgroup_size, [WORKGROUP, 1, 1], "{}", kernel.name());
        let mut bindings: Vec<(u32, bool)> = module
            .global_variables
            .iter()
            .filter_map(|(_, var)| {
                let writes = matches!(var.space, naga::AddressSpace::Storage { access }
                    if access.contains(naga::StorageAccess::STORE));
                var.binding.map(|binding| (binding.binding, writes))
            })
            .collect();
        bindings.sort_unstable();
        let places =
            (0..kernel.operands()).chain([RESULT, SEGMENTS, PARAMS].map(|place| place as usize));
        let expected: Vec<(u32, bool)> = places
            .map(|place| (place as u32, place as u32 == RESULT))
            .collect();
        assert_eq!(bindings, expected, "{}", kernel.name());
    }
}

#[test]
fn every_webgpu_device_binds_this_many_storage_buffers() {
    let limits = wgpu::Limits::default();
    assert_eq!(PARAMS, limits.max_storage_buffers_per_shader_stage);
}

#[test]
fn params_have_one_layout_in_both_languages() {
    let module = module(&Kernel::Lerp);
    let (_, params) = module
        .types
        .iter()
        .find(|(_, ty)| ty.name.as_deref() == Some("Params"))
        .expect("every kernel has Params");
    let naga::TypeInner::Struct { members, span } = &params.inner else {
        panic!("Params is a struct");
    };
    assert_eq!(*span as usize, size_of::<Params>());
    let names: Vec<&str> = members.iter().filter_map(|m| m.name.as_deref()).collect();
    assert_eq!(names, Params::FIELDS);
}
