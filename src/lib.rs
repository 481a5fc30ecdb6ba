//! **framebatch**: DataLoader for the GPU.
//!
//! Small independent GPU calls, made anywhere, become one upload, one
//! submission and one read-back. The same core runs in the browser (wasm32
//! over WebGPU) and natively. `ARCHITECTURE.md` says how it is laid out.
//!
//! ```
//! use framebatch::{Config, Error, Gpu};
//!
//! async fn example() -> Result<(), Error> {
//!     let gpu = Gpu::open(Config::default()).await?;
//!     // Made before they are awaited, both calls are one submission.
//!     let near = gpu.lerp(&[0.0, 1.0], &[1.0, 3.0], 0.25);
//!     let far = gpu.lerp(&[0.0, 1.0], &[1.0, 3.0], 0.75);
//!     println!("{:?} {:?}", near.await?, far.await?);
//!     Ok(())
//! }
//! ```
//!
//! Natively a `Gpu` is a session, for any async runtime; `Gpu::blocking` is for plain
//! threads. A `Batch` records several operations as one call, a `Tensor` keeps data on
//! the device, an `Index` finds the nearest of many vectors, an `Embedder` makes vectors
//! of texts. For the browser there is the npm package of the same name, which this crate
//! is the core of; the feature `javascript` is that package's face, and nobody else needs it. The
//! feature `tracing` makes events of the crate of that name of each batch, with the target
//! `framebatch::batch`, and of what becomes of the device, with `framebatch::device`, as far as
//! these are enabled when the session opens.

// Whether a session may go to another thread is found through the whole of wgpu's types.
#![recursion_limit = "256"]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        reason = "tests count in small numbers"
    )
)]

#[cfg(feature = "engine")]
pub mod batch;
#[cfg(feature = "engine")]
pub mod device;
#[cfg(feature = "engine")]
pub mod driver;
pub mod embed;
mod error;
pub mod graph;
#[cfg(feature = "engine")]
pub mod kernel;
#[cfg(feature = "engine")]
pub mod ops;
#[cfg(feature = "engine")]
pub mod plan;
#[cfg(feature = "engine")]
pub mod program;
#[cfg(feature = "engine")]
pub mod session;
pub mod tensor;

#[cfg(all(not(target_arch = "wasm32"), feature = "engine"))]
mod native;
#[cfg(all(target_arch = "wasm32", feature = "javascript"))]
mod wasm;

#[cfg(feature = "engine")]
pub use batch::{BatchConfig, Capacity, Overflow, Policy, Preset, Priority};
#[cfg(all(not(target_arch = "wasm32"), feature = "engine"))]
pub use device::{Adapter, AdapterKind};
#[cfg(feature = "engine")]
pub use device::{CpuReason, DeviceInfo};
pub use error::{Code, Error};
pub use graph::Mode;
#[cfg(all(not(target_arch = "wasm32"), feature = "engine"))]
pub use native::{
    Arithmetic, Attention, Axes, Batch, Blocking, Call, Clip, Config, Conversion, DeviceEvent,
    Download, Embedder, EmbedderOptions, EmbedderStats, Embedding, Embeddings, EngineChoice,
    Filter, Function, FunctionCall, FunctionResults, Gpu, Gpus, Hit, Index, Kernel,
    KernelDefinition, KernelElement, KernelInput, Layer, LongTexts, ModelFiles, Number, Outcome,
    Parameter, Part, Profile, Ranked, Ranking, Reranker, RerankerOptions, Results, RunAll,
    RunOutcome, Scores, Search, SizedProfile, SizesProfile, Spread, Storage, Tensor, TensorBuffer,
    TensorData, Value, Verification, VerifiedElement, VerifyCase, VerifyData, VerifyValue, Warmup,
    Watch, adapters, convert,
};
#[cfg(feature = "engine")]
pub use ops::search::{IndexConfig, Metric};
#[cfg(feature = "engine")]
pub use ops::{Field, State, clips};
#[cfg(feature = "engine")]
pub use session::{Facts, Measured, Model, Stats, TensorBytes, Tuning};

/// Compiles what the README and the pages of `docs/` show.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/configuration.md")]
    struct Configuration;
    #[doc = include_str!("../docs/embeddings.md")]
    struct Embeddings;
    #[doc = include_str!("../docs/kernels.md")]
    struct Kernels;
    #[doc = include_str!("../docs/migration.md")]
    struct Migration;
    #[doc = include_str!("../docs/native.md")]
    struct Native;
    #[doc = include_str!("../docs/recovery.md")]
    struct Recovery;
    #[doc = include_str!("../docs/search.md")]
    struct Search;
    #[doc = include_str!("../docs/start.md")]
    struct Start;
    #[doc = include_str!("../docs/tensors.md")]
    struct Tensors;
}
