//! Holds the order of imports: WHAT, HOW, WHEN and WHERE meet in the session, and the faces
//! stand on the session. Each WebAssembly file is a crate that links the library.
//!
//! The tests read source text, not types: comments and tests are left out, and the code that
//! remains names other folders as `crate::folder`, or `framebatch::folder` from other crates.

#![cfg(not(target_arch = "wasm32"))]

mod files;
mod order;
mod planted;
mod rules;

use std::fs;
use std::path::{Path, PathBuf};

use order::{CRATES, MAY_IMPORT};
use rules::violations;

/// A path in the repository as the order has it.
fn in_order(path: &str) -> String {
    match path.strip_prefix("src/") {
        Some(path) => path.into(),
        None => path.replacen("/src/", "/", 1),
    }
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

#[test]
fn architecture_has_the_same_table() {
    let text = include_str!("../../ARCHITECTURE.md");
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
