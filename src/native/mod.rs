//! The native face: a handle for any thread, and one worker that sends.
//!
//! Futures here need no particular runtime, and what waits has a blocking twin.
//! Nothing here computes, plans or decides when to send.

mod arrival;
mod blending;
mod blocking;
mod builder;
mod calibration;
mod call;
mod clips;
mod compile_jobs;
mod compiles;
mod config;
mod copies;
mod deadlines;
mod delivery;
mod device_event;
mod embedder;
mod gpu;
mod gpu_driver_threads;
mod gpus;
mod import;
mod index;
mod indexes;
mod insertion;
mod kernels;
mod listeners;
mod lru;
mod operations;
mod page_writes;
mod parameter;
mod profile;
mod profile_sizes;
mod recipient;
mod recovery;
mod request;
mod residents;
mod result_buffer;
mod room;
mod run_all;
mod shared;
mod state;
mod state_lock;
mod storage;
mod store;
mod stream;
mod submission;
mod supervision;
mod tensor;
mod tensor_buffer;
#[cfg(feature = "tracing")]
mod tracing;
mod transfer;
mod waiters;
mod warmup;
mod watch;
mod worker;

#[cfg(not(test))]
mod platform;
#[cfg(test)]
#[path = "tests/platform.rs"]
mod platform;

pub use blending::Layer;
pub use blocking::Blocking;
pub use builder::{
    Attention, Axes, Batch, Function, FunctionCall, FunctionResults, Part, Value, Verification,
    VerifiedElement, VerifyCase, VerifyData, VerifyValue,
};
pub use call::Call;
pub use clips::Clip;
pub use config::{Config, EngineChoice};
pub use device_event::DeviceEvent;
pub use embedder::{
    Arithmetic, Conversion, Embedder, EmbedderOptions, EmbedderStats, Embedding, Embeddings,
    LongTexts, ModelFiles, Ranked, Ranking, Reranker, RerankerOptions, Scores, convert,
};
pub use gpu::Gpu;
pub use gpus::{Gpus, adapters};
pub use index::{Filter, Hit, Index, Search};
pub use insertion::Download;
pub use kernels::{Kernel, KernelDefinition, KernelElement, KernelInput, Number};
pub use parameter::Parameter;
pub use profile::{Profile, Spread};
pub use profile_sizes::{SizedProfile, SizesProfile};
pub use run_all::{Outcome, RunAll, RunOutcome};
pub use storage::{Storage, TensorData};
pub use stream::Results;
pub use tensor::Tensor;
pub use tensor_buffer::TensorBuffer;
pub use warmup::Warmup;
pub use watch::Watch;

/// Runs a test that uses a device without a session: the test's own thread ends.
#[cfg(test)]
pub(crate) fn on_gpu_driver_thread(test: impl FnOnce() + Send + 'static) {
    gpu_driver_threads::run(test).expect("a thread");
}

#[cfg(test)]
mod tests;
