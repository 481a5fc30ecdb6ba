//! The processor's cores: threads of our own, and nobody else's. Native only.
//!
//! Work that is given to them computes or copies, and waits for nothing. On the
//! threads of a program's pool, all of which may wait for calls, it would never begin.

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
