//! The native face: a handle for any thread, and one worker that sends.
//!
//! Futures here need no particular runtime, and what waits has a blocking twin.
//! Nothing here computes, plans or decides when to send.

mod blocking;
mod builder;
mod calibration;
mod call;
mod clips;
mod compiles;
mod config;
mod delivery;
mod driver_threads;
mod embedder;
mod gpu;
mod gpus;
mod import;
mod index;
mod operations;
mod places;
mod recent;
mod recovery;
mod request;
mod room;
mod shared;
mod shown;
mod storage;
mod store;
mod stream;
mod tensor;
mod warmup;
mod watch;
mod words;
mod worker;

#[cfg(not(test))]
mod outside;
#[cfg(test)]
#[path = "tests/outside.rs"]
mod outside;

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
pub use request::Parameter;
pub use shown::TensorBuffer;
pub use storage::{Storage, TensorData};
pub use stream::Results;
pub use tensor::Tensor;
pub use warmup::Warmup;
pub use watch::Watch;

/// Runs a test that uses a device without a session: the test's own thread ends.
#[cfg(test)]
pub(crate) fn on_driver_thread(test: impl FnOnce() + Send + 'static) {
    driver_threads::run(test).expect("a thread");
}

#[cfg(test)]
mod tests;
