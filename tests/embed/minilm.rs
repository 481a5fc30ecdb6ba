//! all-MiniLM-L6-v2 beside a float64 implementation in NumPy. `make model` fetches it.

use framebatch::Storage;

use crate::engines::both;
use crate::reference::Reference;
use crate::samples::times;

#[test]
fn minilm_is_as_its_reference() {
    let minilm = Reference {
        model: "minilm",
        file: "minilm-reference.jsonl",
        texts: 35,
        // Storage is tested by models that take less time, and of this one in pages.
        verify: false,
    };
    let dtypes = [Storage::F32, Storage::F16, Storage::Int8];
    for gpu in both() {
        minilm.hold(&gpu, &dtypes[..times(1, 3)]);
    }
}
