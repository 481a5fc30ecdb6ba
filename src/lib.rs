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
pub use error::{Code, Error};
pub use graph::Mode;
#[cfg(not(target_arch = "wasm32"))]
pub use native::{
    Attention, Batch, Blocking, Call, Clip, Config, EngineChoice, Gpu, Layer, Parameter, Results,
    Storage, Tensor, TensorData, Value, Warmup, Watch,
};
pub use ops::{Field, State, clips};
pub use session::{Facts, Measured, Stats, TensorBytes};

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
