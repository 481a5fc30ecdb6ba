//! Compares the WGSL of kernels with what Rust says of it, without a GPU.

use super::*;
use crate::graph::ExprBuilder;
use crate::graph::shape::MAX_ELEMENTS;
use crate::plan::Params;
use crate::tensor::Packing;

fn module(kernel: &Kernel) -> naga::Module {
    naga::front::wgsl::parse_str(&kernel.source(Precision::F32)).unwrap_or_else(|error| {
        panic!(
            "{}: {}",
            kernel.name(),
            error.emit_to_string(&kernel.source(Precision::F32))
        )
    })
}

/// Every kernel, and those of expressions with each function, and with constants that a compiler
/// could find to be infinite or NaN.
fn kernels() -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Named::ALL.into_iter().map(Kernel::Named).collect();
    let infinite = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, 1e-40];
    for value in infinite {
        let mut expr = ExprBuilder::default();
        let (number, zero) = (expr.number(value), expr.number(0.0));
        let product = expr.push(Term::Binary(BinaryFn::Mul, number, number));
        let quotient = expr.push(Term::Binary(BinaryFn::Div, product, zero));
        kernels.push(Kernel::Named(Named::StateField(expr.finish(quotient))));
    }
    let of_formulas = [UnaryFn::Recip, UnaryFn::Tan];
    for function in UnaryFn::OF_TENSORS.into_iter().chain(of_formulas) {
        let mut expr = ExprBuilder::default();
        let (x, far) = (expr.push(Term::Variable(0)), expr.number(-1000.0));
        let of_x = expr.push(Term::Unary(function, x));
        let of_far = expr.push(Term::Unary(function, far));
        let sum = expr.push(Term::Binary(BinaryFn::Add, of_x, of_far));
        kernels.push(Kernel::Named(Named::StateField(expr.finish(sum))));
    }
    for packing in [None].into_iter().chain(Packing::OF_VECTORS.map(Some)) {
        for (is_distance, is_short) in [(false, true), (true, false), (true, true)] {
            kernels.push(Kernel::Named(Named::TopKScan(searching::Scan {
                packing,
                is_distance,
                is_short,
            })));
        }
    }
    for function in BinaryFn::OF_TENSORS.into_iter().chain([BinaryFn::Same]) {
        let mut expr = ExprBuilder::default();
        let (x, zero) = (expr.push(Term::Variable(2)), expr.number(0.0));
        let value = expr.push(Term::Binary(function, x, zero));
        let value = expr.push(Term::Where([value, x, zero]));
        kernels.push(Kernel::Named(Named::StateField(expr.finish(value))));
    }
    kernels
}

#[test]
fn every_kernel_is_valid_wgsl() {
    for kernel in kernels() {
        let module = module(&kernel);
        naga::valid::Validator::new(
            naga::valid::ValidationFlags::all(),
            // Every WGSL implementation unpacks 16-bit floats.
            naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32,
        )
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}: {error:?}", kernel.name()));
    }
}

#[test]
fn workgroups_and_bindings_are_as_the_device_assumes() {
    for kernel in kernels() {
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

/// A constant array of a WGSL file, as words.
fn table(kernel: &Kernel, name: &str) -> Vec<u32> {
    let module = module(kernel);
    let mut constants = module.constants.iter();
    let (_, constant) = constants
        .find(|(_, constant)| constant.name.as_deref() == Some(name))
        .unwrap_or_else(|| panic!("{} has no {name}", kernel.name()));
    let naga::Expression::Compose { components, .. } = &module.global_expressions[constant.init]
    else {
        panic!("{name} is an array");
    };
    let words = components
        .iter()
        .map(|at| match module.global_expressions[*at] {
            naga::Expression::Literal(naga::Literal::F32(value)) => value.to_bits(),
            naga::Expression::Literal(naga::Literal::U32(value)) => value,
            ref other => panic!("{name} has {other:?}"),
        });
    words.collect()
}

#[test]
fn tables_are_the_same_in_both_languages_and_what_they_say() {
    let bits = |table: [f32; 16]| table.map(f32::to_bits);
    assert_eq!(
        table(&Kernel::Named(Named::StateGradients), "SLOPES"),
        bits(SLOPES)
    );
    assert_eq!(
        table(&Kernel::Named(Named::StateDescend), "SLOPES"),
        FINE_SLOPES
    );
    assert_eq!(
        table(&Kernel::Named(Named::StateDistance), "MAGNITUDES"),
        bits(MAGNITUDES)
    );
    assert_eq!(
        table(&Kernel::Named(Named::StateDistance), "COSINES"),
        bits(COSINES)
    );
    for i in 0..16 {
        let magnitude = if i == 0 {
            0.0
        } else {
            ((f64::from(i) - 8.0) / 4.0).exp2()
        };
        let slope = std::f64::consts::LN_2 / 4.0 * magnitude;
        let cosine = (std::f64::consts::PI * f64::from(i) / 8.0).cos();
        let k = i as usize;
        assert_eq!(MAGNITUDES[k], magnitude as f32, "rho {i} - 8");
        assert_eq!(SLOPES[k], slope as f32, "rho {i} - 8");
        assert!((f64::from(FINE_SLOPES[k]) - slope * 4_294_967_296.0).abs() < 0.51);
        assert!((f64::from(COSINES[k]) - cosine).abs() < 3e-8, "theta {i}");
        // A product with a rate of 31 bits is therefore never half of 2^54.
        assert!(k == 0 || FINE_SLOPES[k].trailing_zeros() < 22);
    }
}

#[test]
fn limits_and_layouts_are_the_same_in_both_languages() {
    for (kernel, name, most) in [
        (Kernel::Named(Named::Clip), "LAYERS", sampling::MOST_LAYERS),
        (Kernel::Named(Named::Lerp), "MOST_ELEMENTS", MAX_ELEMENTS),
        (Kernel::Named(Named::PackVectors), "BLOCK", searching::BLOCK),
        (
            Kernel::Named(Named::PackVectors),
            "HEADER",
            searching::BLOCK_HEADER,
        ),
        (
            Kernel::Named(Named::PackVectors),
            "MAX_FLOAT",
            insertion::MAX_FLOAT.to_bits(),
        ),
        (
            Kernel::Named(Named::PackVectors),
            "MAX_F16",
            insertion::MAX_F16.to_bits(),
        ),
    ] {
        let module = module(&kernel);
        let mut constants = module.constants.iter();
        let (_, constant) = constants
            .find(|(_, constant)| constant.name.as_deref() == Some(name))
            .unwrap_or_else(|| panic!("{} has no {name}", kernel.name()));
        let value = &module.global_expressions[constant.init];
        let expected = naga::Expression::Literal(naga::Literal::U32(most));
        assert_eq!(format!("{value:?}"), format!("{expected:?}"), "{name}");
    }
}

#[test]
fn every_webgpu_device_binds_this_many_storage_buffers() {
    let limits = wgpu::Limits::default();
    assert_eq!(PARAMS, limits.max_storage_buffers_per_shader_stage);
}

#[test]
fn params_have_one_layout_in_both_languages() {
    let module = module(&Kernel::Named(Named::Lerp));
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
