//! Holds up a worker, so that a queue fills for certain.

use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use framebatch::{Call, Gpu};

/// A worker that stands still until this is dropped.
///
/// Workers wake the tasks that wait for them. This one wakes a task whose waker
/// does not return.
pub(crate) struct Stall {
    _release: SyncSender<()>,
    _call: Pin<Box<Call<f32>>>,
}

struct Blocker {
    reached: SyncSender<()>,
    released: Mutex<Receiver<()>>,
}

impl Wake for Blocker {
    fn wake(self: Arc<Self>) {
        self.reached.send(()).expect("the test waits for this");
        // Returns with an error as soon as the other end is dropped.
        let _ = self.released.lock().expect("one user").recv();
    }
}

impl Stall {
    /// Stalls the worker of a handle that has nothing pending.
    pub(crate) fn new(gpu: &Gpu) -> Stall {
        Stall::behind(gpu, gpu.lerp(&[0.0; 4], &[1.0; 4], 0.5))
    }

    /// Stalls it as soon as it has answered a call.
    pub(crate) fn behind(gpu: &Gpu, call: Call<f32>) -> Stall {
        Stall::prepared(call).reached(gpu)
    }

    /// A stall behind a call, for whoever makes calls that may send the first one before it is
    /// [`reached`](PreparedStall::reached).
    pub(crate) fn prepared(call: Call<f32>) -> PreparedStall {
        let (release, released) = sync_channel(0);
        let (reached, is_reached) = sync_channel(1);
        let waker = Waker::from(Arc::new(Blocker {
            reached,
            released: Mutex::new(released),
        }));
        let mut call = Box::pin(call);
        let state = call.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(
            matches!(state, Poll::Pending),
            "open it with a manual policy"
        );
        PreparedStall {
            is_reached,
            stall: Stall {
                _release: release,
                _call: call,
            },
        }
    }
}

/// A stall whose call may wait still.
pub(crate) struct PreparedStall {
    is_reached: Receiver<()>,
    stall: Stall,
}

impl PreparedStall {
    /// Sends what waits, and returns when the worker is stalled.
    pub(crate) fn reached(self, gpu: &Gpu) -> Stall {
        gpu.flush();
        self.is_reached.recv().expect("the worker gets there");
        self.stall
    }
}
