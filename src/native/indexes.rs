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
    /// Fills all indexes again after a loss.
    pub(super) fn restore(&self, session: &mut Session<AnyDevice>) {
        for index in &self.0 {
            let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
            held.vectors.forget();
            // Where there is no room for an index, calls that read its pages are given up.
            let _ = held.synchronize(session);
        }
    }
}

/// An index's vectors, behind a lock of their own. Invariant: nobody waits for the session's lock
/// under this lock, nor for this lock under the session's, except for a moment after a loss:
/// adding and saving take long.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) vectors: Vectors,
    /// The tensor of each page that the device has.
    pub(super) pages: Vec<u32>,
}

impl Held {
    /// Whether the device has all changes, or is lost and gets everything with the next one.
    pub(super) fn is_synchronized(&self, session: &Session<AnyDevice>) -> bool {
        let has_pages = self.pages.len() == self.vectors.pages();
        has_pages && (session.is_lost() || self.vectors.is_told())
    }

    /// Writes what changed to the device.
    pub(super) fn synchronize(&mut self, session: &mut Session<AnyDevice>) -> Result<(), Error> {
        let Held { vectors, pages } = self;
        pages.resize_with(vectors.pages(), || session.hold());
        if session.is_lost() {
            return Ok(()); // The next device gets everything.
        }
        vectors.tell(|change| match change {
            Change::Page(page, words) => session.fill(pages[page], words),
            Change::Part(page, at, words) => session.patch(pages[page], at, words),
        })
    }
}
