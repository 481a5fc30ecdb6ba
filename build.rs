//! Copies the shaders without comments and spaces that separate nothing, which
//! would be a thirtieth of the npm package. What stands between `// HOLE` and `// END` is
//! an example of what fusion fills in; it becomes a `$`. Nothing else changes,
//! so `shaders/` is the source to read.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=shaders");
    let target = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    for folder in ["shaders", "shaders/lib"] {
        for entry in fs::read_dir(folder).expect("the shaders are there") {
            let path = entry.expect("a readable folder").path();
            if path
                .extension()
                .is_some_and(|extension| extension == "wgsl")
            {
                let source = fs::read_to_string(&path).expect("a readable shader");
                let name = path.file_name().expect("a file has a name");
                fs::write(Path::new(&target).join(name), strip(&source))
                    .expect("a writable OUT_DIR");
            }
        }
    }
}

fn strip(source: &str) -> String {
    if let Some((before, rest)) = source.split_once("// HOLE") {
        let (_, after) = rest.split_once("// END").expect("a hole has an end");
        return [strip(before), strip(after)].join("\n$\n");
    }
    let lines = source
        .lines()
        .map(|line| tighten(line.split("//").next().unwrap_or_default()));
    lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Keeps only the spaces that stand between two words or two operators.
fn tighten(line: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_operator = |c: char| "+-*/%&|^~!<>=".contains(c);
    let mut tight = String::new();
    for part in line.split_whitespace() {
        let ends = tight.chars().last().zip(part.chars().next());
        if ends.is_some_and(|(before, next)| {
            is_word(before) && is_word(next) || is_operator(before) && is_operator(next)
        }) {
            tight.push(' ');
        }
        tight.push_str(part);
    }
    tight
}
