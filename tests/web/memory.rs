//! Memory of a page, of which there may be no more.

use framebatch::tensor::Arena;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
fn operands_that_no_allocation_holds_are_refused() {
    let mut arena = Arena::default();
    // Two operands of a gibibyte, nearly: in whole regions they are what no allocation may be.
    assert!(!arena.reserve(2 * (1 << 28) - 112));
    assert_eq!((arena.capacity(), arena.push(&[1; 8]).at), (0, 0));
}
