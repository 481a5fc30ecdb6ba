//! The templates are valid kernels as they lie in `shaders/`.

use std::fs;
use std::path::Path;

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
