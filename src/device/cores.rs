//! A thread for each of the CPU's cores, which only this crate uses. Native only.
//!
//! Work on these threads computes or copies, and waits for nothing. In the program's own pool it
//! might never begin, because all threads of that pool may wait for calls.

use std::sync::LazyLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

static CORES: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let named = ThreadPoolBuilder::new().thread_name(|core| format!("framebatch-core-{core}"));
    named.build().ok()
});

/// A thread for each core; `None` where the system has no threads to give.
pub(crate) fn cores() -> Option<&'static ThreadPool> {
    CORES.as_ref()
}
