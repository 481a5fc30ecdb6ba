//! The native face: a handle for any thread, and one worker that sends.
//!
//! Futures here need no particular runtime, and what waits has a blocking twin.
//! Nothing here computes, plans or decides when to send.

mod backpressure;
mod blocking;
mod builder;
mod calibration;
mod call;
mod clips;
mod compiles;
mod config;
mod delivery;
mod embedder;
mod free_list;
mod gpu;
mod gpu_driver_threads;
mod gpus;
mod import;
mod index;
mod listeners;
mod lru;
mod operations;
mod recovery;
mod request;
mod result_buffer;
mod shared;
mod storage;
mod store;
mod stream;
mod tensor;
mod tensor_buffer;
mod warmup;
mod worker;

#[cfg(not(test))]
mod platform;
#[cfg(test)]
#[path = "tests/platform.rs"]
mod platform;

pub use blocking::Blocking;
pub use builder::{Attention, Axes, Batch, Part, Value};
pub use call::Call;
pub use clips::{Clip, Layer};
pub use config::{Config, EngineChoice};
pub use embedder::{
    Embedder, EmbedderOptions, EmbedderStats, Embedding, Embeddings, LongTexts, ModelFiles,
};
pub use gpu::Gpu;
pub use gpus::{Gpus, adapters};
pub use index::{Filter, Hit, Index, Search};
pub use listeners::Watch;
pub use request::Parameter;
pub use storage::{Storage, TensorData};
pub use stream::Results;
pub use tensor::Tensor;
pub use tensor_buffer::TensorBuffer;
pub use warmup::Warmup;

/// Runs a test that uses a device without a session: the test's own thread ends.
#[cfg(test)]
pub(crate) fn on_gpu_driver_thread(test: impl FnOnce() + Send + 'static) {
    gpu_driver_threads::run(test).expect("a thread");
}

#[cfg(test)]
mod tests;
