//! all-MiniLM-L6-v2 beside a float64 implementation in NumPy. `make model` fetches it.

use framebatch::Storage;

use crate::engines::both;
use crate::reference::Reference;

#[test]
fn minilm_is_as_its_reference() {
    let minilm = Reference {
        model: "minilm",
        file: "minilm-reference.jsonl",
        texts: 35,
        // Storage is tested by models that take less time.
        verify: false,
    };
    for gpu in both() {
        minilm.hold(&gpu, &[Storage::F32, Storage::F16, Storage::Int8]);
    }
}
