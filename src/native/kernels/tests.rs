//! What stands in code, and what is made of it, by the table that TypeScript shares.

use super::source::read;
use super::words::{REFUSED, WGSL};

#[test]
fn nothing() {
    let source = read(
        "fn element(x: f32) -> f32 { for (var i = 0; i < 3; i++) { } return x; }",
        &[],
    )
    .unwrap();
    println!("{source:?} {} {}", WGSL.len(), REFUSED.len());
}
