//! The order itself, as tables: who may import whom, and which words belong where.

/// The crates of the workspace, by where their sources lie. The library's crate is the first;
/// each other crate counts as a folder.
pub(crate) const CRATES: [&str; 4] = [
    "src",
    "core-web/src",
    "embeddings-web/src",
    "tokenizers-web/src",
];

/// Each folder, and the folders that it may import besides itself.
pub(crate) const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("tensor", &["error"]),
    ("graph", &["tensor", "error"]),
    ("program", &["graph", "tensor", "error"]),
    ("kernel", &["program", "graph", "tensor", "error"]),
    ("plan", &["kernel", "program", "graph", "tensor", "error"]),
    ("batch", &["error"]),
    ("device", &["plan", "kernel", "program", "tensor", "error"]),
    (
        "session",
        &[
            "graph", "program", "plan", "kernel", "batch", "device", "tensor", "error",
        ],
    ),
    ("driver", &["session", "batch", "device", "error"]),
    ("ops", &["program", "graph", "tensor", "error"]),
    ("embed", &["graph", "tensor", "error"]),
    ("native", FACES),
    ("wasm", FACES),
    // The crate links the JavaScript face and has no code of its own.
    ("core-web", &[]),
    // No device and no session: the WebAssembly file of embeddings computes nothing.
    ("embeddings-web", &["embed", "graph", "tensor", "error"]),
    ("tokenizers-web", &["embed", "error"]),
];

/// Driver, session, ops and embed, and what it takes to name their types.
const FACES: &[&str] = &[
    "driver", "session", "ops", "embed", "batch", "device", "graph", "program", "plan", "tensor",
    "error",
];

/// Parts of a session that stand alone: each may import the parts before it, and none the
/// session.
pub(crate) const PARTS: [&str; 24] = [
    "devices",
    "cost_model",
    "drift",
    "router",
    "batch_metrics",
    "stats",
    "metrics",
    "recovery",
    "blame",
    "life",
    "program_cache",
    "residency",
    "slabs",
    "tensor_table",
    "compile_gate",
    "arena_pool",
    "payload",
    "scatter",
    "chunking",
    "in_flight",
    "budget",
    "limits",
    "batch_cost",
    "tuning",
];

/// Words that belong to some places only, by the start or end of their path.
pub(crate) const HOMES: [(&str, &[&str]); 4] = [
    // The native face hands out its device and the buffers of tensors to the program that
    // it is part of, and takes buffers of that program.
    (
        "wgpu",
        &[
            "device/gpu/",
            "native/gpu.rs",
            "native/import.rs",
            "native/platform.rs",
            "native/tensor_buffer.rs",
        ],
    ),
    ("wasm_bindgen", WEB),
    ("js_sys", WEB),
    ("web_sys", WEB),
];
const WEB: &[&str] = &[
    "wasm/",
    "embeddings-web/",
    "tokenizers-web/",
    "error/web.rs",
    "_web.rs",
];

/// The world outside, which comes in as an argument.
pub(crate) const OUTSIDE: [&str; 6] = [
    "Instant",
    "SystemTime",
    "Future",
    "async",
    "std::thread",
    "std::env",
];
pub(crate) const SECLUDED: [&str; 9] = [
    "tensor", "graph", "program", "kernel", "plan", "batch", "driver", "ops", "embed",
];
