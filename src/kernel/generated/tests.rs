//! The templates are valid kernels as they lie in `shaders/`.

use std::fs;
use std::path::Path;

#[test]
fn templates_are_valid_as_they_lie() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    for name in ["map.wgsl", "rows.wgsl", "wide_rows.wgsl"] {
        let parts = [
            "lib/segments.wgsl",
            "lib/builtin.wgsl",
            "lib/functions.wgsl",
            "lib/folds.wgsl",
            name,
        ];
        let parts = parts
            .iter()
            .filter(|part| name != "map.wgsl" || **part != "lib/folds.wgsl");
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
