//! The templates are valid kernels as they lie in `shaders/`, and as products in 16 bits.

use std::fs;
use std::path::Path;

use super::source;
use crate::graph::chain::{Chain, Home, Op};
use crate::graph::shape::Shape;
use crate::graph::{CallerFn, FnContent, FnForm, FnInput, NodeId, Precision, ValueType};
use crate::plan::fuse::fuse;
use crate::program::Tiles;
use crate::tensor::DType;

#[test]
fn templates_are_valid_as_they_lie() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let functions = ["lib/builtin.wgsl", "lib/functions.wgsl"];
    let beside = |name: &'static str| [&functions[..], &[name]].concat();
    let folds = beside("lib/folds.wgsl");
    let tiles = [&beside("lib/factors.wgsl")[..], &["lib/quads.wgsl"]].concat();
    let heads = beside("lib/heads.wgsl");
    for (name, more) in [
        ("map.wgsl", &functions[..]),
        ("rows.wgsl", &folds),
        ("wide_rows.wgsl", &folds),
        ("tile.wgsl", &tiles),
        ("small_tile.wgsl", &tiles),
        ("half_tile.wgsl", &tiles),
        ("attention.wgsl", &heads),
        ("wide_attention.wgsl", &heads),
        ("top_k_scan.wgsl", &["lib/top_k_list.wgsl"]),
    ] {
        let parts = ["lib/segments.wgsl", name];
        let parts = parts.iter().chain(more);
        let source = parts.map(|part| read(part)).collect::<Vec<_>>().join("\n");
        let module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(&source)));
        naga::valid::Validator::new(
            naga::valid::ValidationFlags::all(),
            naga::valid::Capabilities::empty(),
        )
        .validate(&module)
        .unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
}

#[test]
fn products_in_16_bits_are_valid_and_ask_for_them_where_the_device_has_them() {
    let mut chain = Chain::default();
    let shape = Shape::new(&[64, 64]).unwrap();
    let mut input = || chain.input(shape, DType::F32, Home::Resident).unwrap();
    let [a, b]: [NodeId; 2] = [input(), input()];
    let y = chain.matmul_in(Precision::F16, a, b).unwrap();
    chain.output(y).unwrap();
    let (program, _) = fuse(&chain);
    for tiles in [Tiles::Large, Tiles::Small] {
        for (offered, needs) in [
            (Precision::F16, naga::valid::Capabilities::SHADER_FLOAT16),
            (Precision::F32, naga::valid::Capabilities::empty()),
        ] {
            let text = source(&program.stages[0], tiles, offered);
            assert_eq!(text.starts_with("enable f16;"), offered == Precision::F16);
            let module = naga::front::wgsl::parse_str(&text)
                .unwrap_or_else(|error| panic!("{tiles:?}: {}", error.emit_to_string(&text)));
            naga::valid::Validator::new(naga::valid::ValidationFlags::all(), needs)
                .validate(&module)
                .unwrap_or_else(|error| panic!("{tiles:?}: {error:?}"));
        }
    }
}

/// A loop of a caller's function may have an end for every element and none for what lies behind
/// the last one.
#[test]
fn functions_of_callers_compute_no_more_than_the_elements_there_are() {
    let content = FnContent {
        name: "own".into(),
        code: "fn element(x: f32) -> f32 { return x; }".into(),
        form: FnForm::Element,
        inputs: vec![FnInput {
            of: ValueType::F32,
            is_whole: false,
        }],
        result: ValueType::F32,
        max_passes: None,
        flops: None,
        params: Vec::new(),
        told_by: None,
    };
    let text = |number| {
        let beside = CallerFn::beside(number);
        format!("fn {beside}result(x: f32) -> f32 {{ return x; }}")
    };
    let own = CallerFn::define(content, text, None);
    let shape = Shape::new(&[3, 5]).unwrap();
    for is_strided in [false, true] {
        let mut chain = Chain::default();
        let x = chain.input(shape, DType::F32, Home::Call).unwrap();
        let x = match is_strided {
            true => chain.transpose(x, &[]).unwrap(),
            false => x,
        };
        let y = chain.apply(Op::Call(own.clone()), &[x]).unwrap();
        chain.output(y).unwrap();
        let (program, sizes) = fuse(&chain);
        let text = source(&program.stages[0], Tiles::Large, Precision::F32);
        let lanes = "let lanes = min(U(0u, 1u, 2u, 3u), U(operand(entry, ";
        assert!(text.contains(lanes), "{text}");
        assert!(
            text.contains("lanes)") || text.contains("[lanes.y]"),
            "{text}"
        );
        assert_eq!(sizes.stages[0].words[0], 15, "the count of elements");
        naga::front::wgsl::parse_str(&text)
            .unwrap_or_else(|error| panic!("{}", error.emit_to_string(&text)));
    }
}
