//! Holds the import order: WHAT, HOW, WHEN and WHERE meet in the session, and
//! the faces stand on it. Each WebAssembly file is a crate that links the library.
//!
//! It reads source text, not types: comments and tests are left out, and what
//! is left names other folders as `crate::folder`, or `framebatch::folder` from
//! other crates.

#![cfg(not(target_arch = "wasm32"))]

use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the workspace, by where their sources lie. That of the library is the
/// first; each other one counts as a folder.
const CRATES: [&str; 3] = ["src", "core-web/src", "embeddings-web/src"];

/// A folder, and those it may import besides itself.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("tensor", &["error"]),
    ("graph", &["tensor", "error"]),
    ("program", &["graph", "tensor", "error"]),
    ("kernel", &["program", "graph", "tensor", "error"]),
    ("plan", &["kernel", "program", "graph", "tensor", "error"]),
    ("batch", &["error"]),
    ("device", &["plan", "kernel", "program", "tensor", "error"]),
    (
        "session",
        &[
            "graph", "program", "plan", "kernel", "batch", "device", "tensor", "error",
        ],
    ),
    ("driver", &["session", "batch", "device", "error"]),
    ("ops", &["program", "graph", "tensor", "error"]),
    ("embed", &["graph", "tensor", "error"]),
    ("native", FACES),
    ("wasm", FACES),
    // Links the JavaScript face and has no code of its own.
    ("core-web", &[]),
    // No device and no session: the WebAssembly file of embeddings computes nothing.
    ("embeddings-web", &["embed", "graph", "tensor", "error"]),
];

/// Driver, session, ops and embed, and what it takes to name their types.
const FACES: &[&str] = &[
    "driver", "session", "ops", "embed", "batch", "device", "graph", "program", "plan", "tensor",
    "error",
];

/// Parts of a session that stand alone: each may import those before it, and none the
/// session.
const PARTS: [&str; 21] = [
    "devices",
    "cost_model",
    "drift",
    "router",
    "batch_metrics",
    "stats",
    "metrics",
    "recovery",
    "life",
    "program_cache",
    "tensor_table",
    "compile_gate",
    "arena_pool",
    "payload",
    "scatter",
    "chunking",
    "in_flight",
    "budget",
    "limits",
    "batch_cost",
    "tuning",
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
            "native/platform.rs",
            "native/tensor_buffer.rs",
        ],
    ),
    ("wasm_bindgen", WEB),
    ("js_sys", WEB),
    ("web_sys", WEB),
];
const WEB: &[&str] = &["wasm/", "embeddings-web/", "error/web.rs", "_web.rs"];

/// The world outside, which comes in as an argument.
const OUTSIDE: [&str; 6] = [
    "Instant",
    "SystemTime",
    "Future",
    "async",
    "std::thread",
    "std::env",
];
const SECLUDED: [&str; 9] = [
    "tensor", "graph", "program", "kernel", "plan", "batch", "driver", "ops", "embed",
];

/// What a source file does that it may not. Paths begin with the folder under `src`, or
/// with the crate.
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
    if code.contains("#[path = \"../") {
        found.push("takes in sources of another crate".into());
    }
    let folder = folder(path);
    let is_native = folder == "native" || path.ends_with("_native.rs");
    if !is_native && code.contains(":?}") {
        // The package's Debug is gone (tools/strip-panics.mjs): it would end the page's session.
        found.push("prints with Debug".into());
    }
    if SECLUDED.contains(&folder) {
        let outside = OUTSIDE.iter().filter(|name| code.contains(**name));
        found.extend(outside.map(|name| format!("uses {name}")));
    }
    if path != "lib.rs" {
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

/// A path in the repository as the order has it.
fn in_order(path: &str) -> String {
    match path.strip_prefix("src/") {
        Some(path) => path.into(),
        None => path.replacen("/src/", "/", 1),
    }
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

/// Folders named behind `crate::` and `framebatch::`, singly or in braces; `super::`
/// where it means the crate. In another crate only `framebatch::` leads to them.
fn imports<'a>(path: &str, code: &'a str) -> Vec<&'a str> {
    let is_top = path.ends_with("/mod.rs") && path.matches('/').count() == 1 || !path.contains('/');
    let roots: &[&str] = match folder(path) {
        "core-web" | "embeddings-web" => &["framebatch::"],
        _ if is_top => &["crate::", "super::"],
        _ => &["crate::", "super::super::"],
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
        // A whole crate may be of one target.
        if !line.contains("target_arch") || line.starts_with("#![cfg(") {
            continue;
        }
        let below = lines[i + 1..].iter().find(|line| !line.starts_with("#["));
        let is_attribute = line.starts_with("#[cfg(");
        let picks = |below: &&str| {
            [
                "mod ",
                "pub mod ",
                "pub(crate) mod ",
                "pub use ",
                "pub(crate) use ",
            ]
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = CRATES.iter().map(|sources| root.join(sources)).collect();
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
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            let name = name.replace('\\', "/");
            let source = fs::read_to_string(&path).unwrap();
            let wrong = violations(&in_order(&name), &source).into_iter();
            found.extend(wrong.map(|wrong| format!("{name} {wrong}")));
        }
    }
    assert!(files > 30, "only {files} files were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

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
fn architecture_has_the_same_table() {
    let text = include_str!("../ARCHITECTURE.md");
    for (folder, allowed) in MAY_IMPORT {
        let places = [
            format!("| `src/{folder}/` |"),
            format!("| `{folder}/src/` |"),
        ];
        let is_row = |line: &&str| places.iter().any(|place| line.contains(place));
        let row = text.lines().find(is_row).expect("a row for each folder");
        let listed = match allowed {
            [] => "nothing".to_owned(),
            names => names.join(", "),
        };
        assert!(row.ends_with(&format!("| {listed} |")), "{folder}: {row}");
    }
}

/// Folders whose files import one another one way.
const ORDERED: [&str; 10] = [
    "program",
    "kernel",
    "plan",
    "plan/fuse",
    "wasm",
    "embed",
    "embed/tokenizer",
    "device/cpu",
    "device/cpu/program",
    "device/cpu/kernels",
];

/// The files and folders in a folder, each with those that it imports; `mod` is what the
/// folder's own file defines.
fn neighbors(folder: &Path) -> Vec<(String, Vec<String>)> {
    let read = |path: &Path| code(&fs::read_to_string(path).expect("a source"));
    let of_folder = read(&folder.join("mod.rs"));
    let exports: Vec<&str> = statements(&of_folder, "use ").collect();
    let names: Vec<String> = statements(&of_folder, "mod ").map(str::to_owned).collect();
    let is_name = |name: &str| names.iter().any(|known| known == name);
    // The file that something of the folder is defined in.
    let home = |name: &str| {
        let mut exports = exports.iter().filter_map(|export| export.split_once("::"));
        match exports.find(|(_, items)| words(items).any(|item| item == name)) {
            _ if is_name(name) => Some(name.to_owned()),
            Some((file, _)) => is_name(file).then(|| file.to_owned()),
            None => Some("mod".to_owned()),
        }
    };
    let mut found = Vec::new();
    for name in &names {
        let path = [format!("{name}.rs"), format!("{name}/mod.rs")];
        let path = path
            .iter()
            .map(|path| folder.join(path))
            .find(|path| path.exists());
        let code = read(&path.expect("a file for each module"));
        let mut imported = Vec::new();
        for (at, root) in code.match_indices("super::") {
            let is_own = !code[..at].ends_with("::");
            let rest = &code[at + root.len()..];
            let named = match rest.strip_prefix('{') {
                Some(group) => &group[..group.find(';').unwrap_or(group.len())],
                None => words(rest).next().unwrap_or(""),
            };
            // Of a path the first name; in braces of each path the first.
            let firsts = named
                .split([',', '{', '}'])
                .filter_map(|path| words(path.trim()).next());
            imported.extend(
                firsts
                    .filter(|first| is_own && !first.is_empty())
                    .filter_map(home),
            );
        }
        imported.retain(|other| other != name);
        found.push((name.clone(), imported));
    }
    // What it only re-exports is nothing that its own items need.
    let own: Vec<&str> = of_folder
        .split(';')
        .filter(|part| !part.contains("pub use"))
        .collect();
    let used: Vec<&str> = own.iter().flat_map(|part| words(part)).collect();
    // Each is named once where it is declared.
    let is_used = |name: &&String| used.iter().filter(|word| **word == **name).count() > 1;
    let mut imported: Vec<String> = names.iter().filter(is_used).cloned().collect();
    imported.extend(
        used.iter()
            .filter(|word| !is_name(word))
            .filter_map(|word| home(word)),
    );
    imported.retain(|file| file != "mod");
    found.push(("mod".to_owned(), imported));
    found
}

/// What follows a keyword in statements, up to their ends.
fn statements<'a>(code: &'a str, keyword: &str) -> impl Iterator<Item = &'a str> {
    code.split(';').filter_map(move |statement| {
        let statement = statement.trim();
        let at = statement.find(keyword)?;
        let is_start = statement[..at].lines().last().is_none_or(|line| {
            let line = line.trim();
            line.is_empty() || line.starts_with("pub")
        });
        is_start.then(|| statement[at + keyword.len()..].trim_start_matches("self::"))
    })
}

/// Takes away what imports nothing that is left, as long as there is such a file; the rest
/// are cycles.
fn cycles(mut files: Vec<(String, Vec<String>)>) -> Vec<(String, Vec<String>)> {
    loop {
        let left: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        for (_, imported) in &mut files {
            imported.retain(|name| left.contains(name));
        }
        let count = files.len();
        files.retain(|(_, imported)| !imported.is_empty());
        if files.len() == count {
            return files;
        }
    }
}

#[test]
fn files_of_a_folder_import_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for folder in ORDERED {
        let files = neighbors(&root.join(folder));
        assert!(files.len() > 4, "{folder}: {files:?}");
        assert!(
            files.iter().any(|(_, imported)| imported.len() > 1),
            "{folder}: {files:?}"
        );
        let cycles = cycles(files);
        assert!(cycles.is_empty(), "{folder}: {cycles:?}");
    }
}

#[test]
fn a_cycle_is_found() {
    let file = |name: &str, imported: &[&str]| {
        (
            name.to_owned(),
            imported.iter().map(|&name| name.to_owned()).collect(),
        )
    };
    let one_way = vec![
        file("a", &["b", "mod"]),
        file("b", &["mod"]),
        file("mod", &[]),
    ];
    assert!(cycles(one_way).is_empty());
    let around = vec![
        file("a", &["b"]),
        file("b", &["c"]),
        file("c", &["a"]),
        file("d", &[]),
    ];
    assert_eq!(cycles(around).len(), 3);
}

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
