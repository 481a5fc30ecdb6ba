//! Background tasks and timers.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &js_sys::Function, ms: f64);
}

/// Starts a background task.
pub(super) fn start(work: impl Future<Output = ()> + 'static) {
    // All tasks are boxed, so that they are one type: each type costs the package bytes.
    let work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(work);
    #[expect(clippy::disallowed_methods, reason = "this is the JavaScript face")]
    spawn_local(work);
}

/// The output of a future, if it comes within `ms` milliseconds.
pub(super) async fn within<T>(ms: f64, mut work: impl Future<Output = T> + Unpin) -> Option<T> {
    let mut late = pin!(sleep(ms));
    let first = poll_fn(|context| match Pin::new(&mut work).poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => late.as_mut().poll(context).map(|()| None),
    });
    first.await
}

pub(super) async fn sleep(ms: f64) {
    let timer = js_sys::Promise::new(&mut |resolve, _| set_timeout(&resolve, ms));
    // A timer's promise is never rejected.
    let _ = JsFuture::from(timer).await;
}
