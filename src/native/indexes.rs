//! The indexes of a session, as its lock guards them: vectors that are kept on the host, and
//! the tensors that the device has them in.
//!
//! How vectors lie in a tensor is `ops::search`'s matter, and who searches is not known here.

use std::sync::{Arc, PoisonError};

use super::platform::{AnyDevice, Mutex};
use crate::error::Error;
use crate::ops::search::{Change, Vectors};
use crate::session::Session;

/// The indexes of a session.
#[derive(Debug, Default)]
pub(super) struct Indexes(pub(super) Vec<Arc<Mutex<Held>>>);

impl Indexes {
    /// Fills them again after a loss.
    pub(super) fn restore(&self, session: &mut Session<AnyDevice>) {
        for index in &self.0 {
            let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
            held.vectors.forget();
            // Where one finds no room, its calls are given up as those of any tensor.
            let _ = held.tell(session);
        }
    }
}

/// Invariant: the session's lock is never waited for under this one's, nor this one's
/// under the session's, but for a moment after a loss: who adds or saves takes long.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) vectors: Vectors,
    /// The tensor of each page that the device was told of.
    pub(super) pages: Vec<u32>,
}

impl Held {
    /// Whether the device knows all, or is told all when there is one again.
    pub(super) fn is_told(&self, session: &Session<AnyDevice>) -> bool {
        let has_pages = self.pages.len() == self.vectors.pages();
        has_pages && (session.is_lost() || self.vectors.is_told())
    }

    /// Tells the device what changed.
    pub(super) fn tell(&mut self, session: &mut Session<AnyDevice>) -> Result<(), Error> {
        let Held { vectors, pages } = self;
        pages.resize_with(vectors.pages(), || session.hold());
        if session.is_lost() {
            return Ok(()); // All is told when there is a device.
        }
        vectors.tell(|change| match change {
            Change::Page(page, words) => session.fill(pages[page], words),
            Change::Part(page, at, words) => session.patch(pages[page], at, words),
        })
    }
}
