//! The templates are valid kernels as they lie in `shaders/`, and as products in 16 bits.

use std::fs;
use std::path::Path;

use super::source;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::graph::{NodeId, Precision};
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
