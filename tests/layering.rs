//! Holds the import order: WHAT, HOW, WHEN and WHERE meet in the session, and
//! the faces stand on it.
//!
//! It reads source text, not types: comments and tests are left out, and what
//! is left names other folders as `crate::folder`.

#![cfg(not(target_arch = "wasm32"))]

use std::fs;
use std::path::Path;

/// A folder, and those it may import besides itself.
const MAY_IMPORT: [(&str, &[&str]); 12] = [
    ("error", &[]),
    ("tensor", &["error"]),
    ("graph", &["tensor", "error"]),
    ("kernel", &["graph", "plan", "tensor", "error"]),
    ("plan", &["graph", "kernel", "tensor", "error"]),
    ("batch", &["error"]),
    ("device", &["plan", "kernel", "tensor", "error"]),
    (
        "session",
        &[
            "graph", "plan", "kernel", "batch", "device", "tensor", "error",
        ],
    ),
    ("ops", &["graph", "tensor", "error"]),
    ("embed", &["graph", "tensor", "error"]),
    ("native", FACES),
    ("wasm", FACES),
];

/// Session, ops and embed, and what it takes to name their types.
const FACES: &[&str] = &[
    "session", "ops", "embed", "batch", "device", "graph", "plan", "tensor", "error",
];

/// Parts of a session that stand alone: each may import those before it, and none the
/// session.
const PARTS: [&str; 13] = [
    "model",
    "route",
    "facts",
    "stats",
    "metrics",
    "recovery",
    "life",
    "tensor_table",
    "compile_gate",
    "payload",
    "answers",
    "cut",
    "in_flight",
];

/// Words that belong to some places only, by the start or end of their path.
const HOMES: [(&str, &[&str]); 4] = [
    // The native face hands out the device, which programs share with it, and the
    // buffers of tensors, and takes theirs.
    (
        "wgpu",
        &[
            "device/gpu/",
            "native/gpu.rs",
            "native/import.rs",
            "native/outside.rs",
            "native/shown.rs",
        ],
    ),
    ("wasm_bindgen", WEB),
    ("js_sys", WEB),
    ("web_sys", WEB),
];
const WEB: &[&str] = &["wasm/", "_web.rs"];

/// The world outside, which comes in as an argument.
const OUTSIDE: [&str; 6] = [
    "Instant",
    "SystemTime",
    "Future",
    "async",
    "std::thread",
    "std::env",
];
const SECLUDED: [&str; 7] = ["tensor", "graph", "kernel", "plan", "batch", "ops", "embed"];

/// What a file under `src` does that it may not.
fn violations(path: &str, source: &str) -> Vec<String> {
    let is_test = path.ends_with("tests.rs") || path.contains("tests/");
    if is_test {
        return Vec::new();
    }
    let code = code(source);
    let mut found = misplaced_cfgs(&code);
    for (word, homes) in HOMES {
        let at_home = |home: &&str| {
            path.starts_with(*home) || path.ends_with(*home) && path.starts_with("device/gpu/")
        };
        if !homes.iter().any(at_home) && words(&code).any(|known| known == word) {
            found.push(format!("names {word}"));
        }
    }
    let folder = folder(path);
    let is_native = folder == "native" || path.ends_with("_native.rs");
    if !is_native && code.contains(":?}") {
        // The package's Debug is gone (tools/traps.mjs): it would end the page's session.
        found.push("prints with Debug".into());
    }
    if SECLUDED.contains(&folder) {
        let outside = OUTSIDE.iter().filter(|name| code.contains(**name));
        found.extend(outside.map(|name| format!("uses {name}")));
    }
    if folder != "lib" {
        let allowed = MAY_IMPORT.iter().find(|(name, _)| *name == folder);
        let Some((_, allowed)) = allowed else {
            return vec![format!("{folder} has no place in the order")];
        };
        let imports = imports(path, &code).into_iter();
        let uphill = imports.filter(|name| *name != folder && !allowed.contains(name));
        found.extend(uphill.map(|name| format!("imports {name}")));
    }
    found.extend(uphill_parts(path, &code));
    found
}

/// What a part of a session imports of the session that is not before it.
fn uphill_parts(path: &str, code: &str) -> Vec<String> {
    let name = path.strip_prefix("session/").unwrap_or_default();
    let name = name.strip_suffix(".rs").unwrap_or_default();
    let Some(own) = PARTS.iter().position(|part| *part == name) else {
        return Vec::new();
    };
    let imported = code.match_indices("super::").map(|(at, root)| {
        let rest = &code[at + root.len()..];
        words(rest).next().unwrap_or_default()
    });
    let uphill = imported.filter(|name| !name.is_empty() && !PARTS[..own].contains(name));
    uphill.map(|name| format!("imports {name}")).collect()
}

/// The part of a path that the order is about.
fn folder(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap_or(path)
}

/// The source without comments, and up to its tests.
fn code(source: &str) -> String {
    let lines = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    let lines: Vec<&str> = lines.collect();
    let tests = lines
        .windows(2)
        .position(|pair| pair[0].starts_with("#[cfg(") && pair[1].starts_with("mod tests {"));
    lines[..tests.unwrap_or(lines.len())].join("\n")
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Folders named behind `crate::`, singly or in braces; `super::` where it
/// means the crate.
fn imports<'a>(path: &str, code: &'a str) -> Vec<&'a str> {
    let is_top = path.ends_with("/mod.rs") && path.matches('/').count() == 1 || !path.contains('/');
    let roots: &[&str] = if is_top {
        &["crate::", "super::"]
    } else {
        &["crate::", "super::super::"]
    };
    let is_folder = |name: &&str| MAY_IMPORT.iter().any(|(folder, _)| folder == name);
    let mut names = Vec::new();
    for root in roots {
        for (at, _) in code.match_indices(root) {
            let rest = &code[at + root.len()..];
            let named = match rest.strip_prefix('{') {
                Some(group) => &group[..group.find(';').unwrap_or(group.len())],
                None => {
                    &rest[..rest
                        .find(|c: char| !c.is_alphanumeric() && c != '_')
                        .unwrap_or(rest.len())]
                }
            };
            names.extend(words(named).filter(is_folder));
        }
    }
    names
}

/// `cfg` picks files: below a target there is a `mod`, or the re-export of one.
fn misplaced_cfgs(code: &str) -> Vec<String> {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if !line.contains("target_arch") {
            continue;
        }
        let below = lines[i + 1..].iter().find(|line| !line.starts_with("#["));
        let is_attribute = line.starts_with("#[cfg(");
        let picks = |below: &&str| {
            ["mod ", "pub mod ", "pub use ", "pub(crate) use "]
                .iter()
                .any(|start| below.starts_with(start))
        };
        if !is_attribute || !below.is_some_and(picks) {
            found.push(format!("has a cfg(target_arch) over code: {line}"));
        }
    }
    found
}

#[test]
fn the_source_keeps_the_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut files = 0;
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue; // A table.
            }
            files += 1;
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let name = name.replace('\\', "/");
            let source = fs::read_to_string(&path).unwrap();
            let wrong = violations(&name, &source).into_iter();
            found.extend(wrong.map(|wrong| format!("src/{name} {wrong}")));
        }
    }
    assert!(files > 30, "only {files} files were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    let cases = [
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
        ("error.rs", "use super::graph::Op;", "imports graph"),
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
        ("session/life.rs", "use super::Session;", "imports Session"),
        (
            "session/route.rs",
            "use super::metrics::Metrics;",
            "imports metrics",
        ),
        ("helpers/mod.rs", "", "helpers has no place in the order"),
    ];
    for (path, source, expected) in cases {
        assert_eq!(violations(path, source), [expected], "{path}: {source}");
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
        ("native/outside.rs", "use std::time::Instant;"),
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
