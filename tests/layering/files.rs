//! The files of one folder: that they import one another one way.

use std::fs;
use std::path::Path;

use crate::rules::{code, words};

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

/// The files and folders in a folder, each with the neighbors that it imports; `mod` is what the
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
            // The first name of each path: there are several paths in braces.
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
    // The folder's own items need none of the names that it only re-exports.
    let own: Vec<&str> = of_folder
        .split(';')
        .filter(|part| !part.contains("pub use"))
        .collect();
    let used: Vec<&str> = own.iter().flat_map(|part| words(part)).collect();
    // Each name stands once where its module is declared.
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

/// The text that follows a keyword in statements, up to their ends.
fn statements<'a>(code: &'a str, keyword: &str) -> impl Iterator<Item = &'a str> {
    code.split(';').filter_map(move |statement| {
        let statement = statement.trim();
        let at = statement.find(keyword)?;
        let is_start = statement[..at].lines().last().is_none_or(|line| {
            let line = line.trim();
            line.is_empty() || line.starts_with("pub") || line.starts_with("#[")
        });
        is_start.then(|| statement[at + keyword.len()..].trim_start_matches("self::"))
    })
}

/// Takes away files that import none of the files left, as long as there are any; the rest
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
