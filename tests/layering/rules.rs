//! The rules for one source file: who it imports, what it names, where `cfg` stands.

use crate::order::{HOMES, MAY_IMPORT, OUTSIDE, PARTS, SECLUDED};

/// Everything that a source file does and may not do. Paths begin with the folder under `src`, or
/// with the crate.
pub(crate) fn violations(path: &str, source: &str) -> Vec<String> {
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
pub(crate) fn code(source: &str) -> String {
    let lines = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    let lines: Vec<&str> = lines.collect();
    let tests = lines
        .windows(2)
        .position(|pair| pair[0].starts_with("#[cfg(") && pair[1].starts_with("mod tests {"));
    lines[..tests.unwrap_or(lines.len())].join("\n")
}

pub(crate) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Folders named behind `crate::` and `framebatch::`, singly or in braces; `super::`
/// where it means the crate. In another crate only `framebatch::` leads to them.
fn imports<'a>(path: &str, code: &'a str) -> Vec<&'a str> {
    let is_top = path.ends_with("/mod.rs") && path.matches('/').count() == 1 || !path.contains('/');
    let roots: &[&str] = match folder(path) {
        "core-web" | "embeddings-web" | "tokenizers-web" => &["framebatch::"],
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
