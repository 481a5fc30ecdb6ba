//! The examples run: programs on tokio, on threads of their own, and with commands of their own
//! for the GPU.

#![cfg(not(target_arch = "wasm32"))]

use std::process::Command;

/// An example, its arguments, and words that it prints.
const EXAMPLES: [(&str, &[&str], &str); 8] = [
    ("tokio", &["gpu"], "1000 calls in"),
    ("tokio", &["cpu"], "1000 calls in"),
    ("threads", &["gpu"], "30 calls in"),
    ("threads", &["cpu"], "30 calls in"),
    ("chain", &["gpu"], "running on"),
    ("wgpu_device", &[], "the last of 64 heights is 31.5"),
    (
        "embed_file",
        &[
            "tests/data/tiny-model",
            "README.md",
            "What is a batch?",
            "cpu",
        ],
        "paragraphs in",
    ),
    ("stream_states", &["4096", "1024", "1"], "with overlap"),
];

#[test]
fn the_examples_run() {
    for (name, arguments, printed) in EXAMPLES {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args([
            "run",
            "--quiet",
            "--locked",
            "--example",
            name,
        ]);
        if cfg!(feature = "tracing") {
            cargo.args(["--features", "tracing"]); // As `cargo test` has built it.
        }
        let output = cargo
            .arg("--")
            .args(arguments)
            .output()
            .expect("cargo runs");
        let [out, errors] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(
            output.status.success() && out.contains(printed),
            "{name} {arguments:?}:\n{out}\n{errors}"
        );
    }
}
