//! The browser has a WebGPU of its own: nothing that only a native one needs
//! may be in the package.

#![cfg(not(target_arch = "wasm32"))]

use std::process::Command;

#[test]
fn the_wasm_tree_has_wgpu_without_its_native_parts() {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--locked", "--target", "wasm32-unknown-unknown"])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{lib}"])
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).expect("names are text");
    let holds = |name: &str| tree.lines().any(|line| line == name);
    for needed in ["framebatch", "wgpu", "wasm_bindgen"] {
        assert!(holds(needed), "{needed} is missing:\n{tree}");
    }
    for native in [
        "naga",
        "wgpu_core",
        "wgpu_hal",
        "pollster",
        "rayon",
        "tokio",
    ] {
        assert!(!holds(native), "{native} is in the package:\n{tree}");
    }
}
