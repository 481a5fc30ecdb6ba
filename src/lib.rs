//! **framebatch**: DataLoader for the GPU.
//!
//! Small independent GPU calls, made anywhere, become one upload, one
//! submission and one read-back. The same core runs in the browser (wasm32
//! over WebGPU) and natively. `ARCHITECTURE.md` says how it is laid out.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        reason = "tests count in small numbers"
    )
)]

pub mod batch;
pub mod device;
pub mod embed;
mod error;
pub mod graph;
pub mod kernel;
pub mod ops;
pub mod plan;
pub mod session;
pub mod tensor;

#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use batch::{BatchConfig, Capacity, Overflow, Policy, Preset};
pub use device::DeviceInfo;
#[cfg(not(target_arch = "wasm32"))]
pub use device::{Adapter, AdapterKind};
pub use error::{Code, Error};
pub use graph::Mode;
#[cfg(not(target_arch = "wasm32"))]
pub use native::{
    Attention, Axes, Batch, Blocking, Call, Clip, Config, Embedder, EmbedderOptions, EmbedderStats,
    Embedding, Embeddings, EngineChoice, Filter, Gpu, Gpus, Hit, Index, Layer, LongTexts,
    ModelFiles, Parameter, Part, Results, Search, Storage, Tensor, TensorBuffer, TensorData, Value,
    Warmup, Watch, adapters,
};
pub use ops::search::{IndexConfig, Metric};
pub use ops::{Field, State, clips};
pub use session::{Facts, Measured, Model, Stats, TensorBytes};

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
