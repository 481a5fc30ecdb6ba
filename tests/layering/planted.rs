//! Sources that break a rule and sources that break none, as the rules judge them.

use crate::rules::violations;

/// Paths, sources, and what is found there.
const PLANTED: &[(&str, &str, &str)] = &[
    ("graph/mod.rs", "use crate::plan::Plan;", "imports plan"),
    (
        "graph/op.rs",
        "fn f() { crate::session::run() }",
        "imports session",
    ),
    (
        "batch/queue.rs",
        "use crate::{error::Error, tensor::Arena};",
        "imports tensor",
    ),
    (
        "plan/mod.rs",
        "use super::device::Device;",
        "imports device",
    ),
    (
        "device/gpu/mod.rs",
        "use super::super::session::Session;",
        "imports session",
    ),
    (
        "session/mod.rs",
        "use crate::native::Gpu;",
        "imports native",
    ),
    (
        "session/mod.rs",
        "use crate::driver::Driver;",
        "imports driver",
    ),
    ("session/life.rs", "use super::Session;", "imports Session"),
    (
        "session/router.rs",
        "use super::metrics::Metrics;",
        "imports metrics",
    ),
    ("driver/mod.rs", "async fn next() {}", "uses async"),
    ("error/mod.rs", "use super::graph::Op;", "imports graph"),
    (
        "session/mod.rs",
        "fn f(x: u8) -> String { format!(\"{x:?}\") }",
        "prints with Debug",
    ),
    ("ops/states.rs", "use crate::device::Cpu;", "imports device"),
    (
        "session/mod.rs",
        "fn f(device: &wgpu::Device) {}",
        "names wgpu",
    ),
    ("device/mod.rs", "pub use wgpu::Buffer;", "names wgpu"),
    ("native/shared.rs", "use wgpu as gpu;", "names wgpu"),
    ("device/gpu/mod.rs", "use js_sys::Reflect;", "names js_sys"),
    (
        "native/name_web.rs",
        "use web_sys::Worker;",
        "names web_sys",
    ),
    (
        "session/mod.rs",
        "use wasm_bindgen::JsValue;",
        "names wasm_bindgen",
    ),
    (
        "batch/queue.rs",
        "let now = std::time::Instant::now();",
        "uses Instant",
    ),
    ("plan/mod.rs", "async fn plan() {}", "uses async"),
    ("kernel/mod.rs", "std::env::var(name)", "uses std::env"),
    (
        "session/mod.rs",
        "#[cfg(target_arch = \"wasm32\")]\nfn f() {}",
        "has a cfg(target_arch) over code: #[cfg(target_arch = \"wasm32\")]",
    ),
    (
        "plan/mod.rs",
        "if cfg!(target_arch = \"wasm32\") {}",
        "has a cfg(target_arch) over code: if cfg!(target_arch = \"wasm32\") {}",
    ),
    ("error/mod.rs", "use js_sys::Reflect;", "names js_sys"),
    (
        "embeddings-web/encoder.rs",
        "use framebatch::{embed::Config, session::Session};",
        "imports session",
    ),
    (
        "core-web/lib.rs",
        "use framebatch::session::Session;",
        "imports session",
    ),
    (
        "embeddings-web/lib.rs",
        "#[path = \"../../src/tensor/mod.rs\"]\nmod tensor;",
        "takes in sources of another crate",
    ),
    ("helpers/mod.rs", "", "helpers has no place in the order"),
];

#[test]
fn planted_violations_are_found() {
    for (path, source, expected) in PLANTED {
        assert_eq!(violations(path, source), [*expected], "{path}: {source}");
    }
}

#[test]
fn what_is_allowed_is_not_found() {
    let cases = [
        ("graph/mod.rs", "use crate::tensor::Format;"),
        (
            "graph/mod.rs",
            "// As crate::plan does with Instant.\nmod op;",
        ),
        (
            "plan/mod.rs",
            "#[cfg(test)]\nmod tests {\n    use crate::ops;\n}",
        ),
        ("plan/tests.rs", "use crate::ops;"),
        (
            "device/gpu/open.rs",
            "wgpu::Instance::new(super::super::plan::x)",
        ),
        ("device/gpu/raw_web.rs", "use js_sys::Reflect;"),
        (
            "wasm/table.rs",
            "use web_sys::console;\nuse crate::session::Session;",
        ),
        ("native/platform.rs", "use std::time::Instant;"),
        (
            "device/gpu/mod.rs",
            "#[cfg(target_arch = \"wasm32\")]\n#[path = \"poll_web.rs\"]\nmod poll;",
        ),
        (
            "lib.rs",
            "#[cfg(not(target_arch = \"wasm32\"))]\npub use native::Gpu;",
        ),
    ];
    for (path, source) in cases {
        assert_eq!(violations(path, source), [""; 0], "{path}: {source}");
    }
}
