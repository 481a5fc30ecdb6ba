//! The indexes of a session, as its lock guards them: vectors that are kept on the host, vectors
//! that calls wrote on the device, and the tensors that the device has both in.
//!
//! How vectors lie in a tensor is `ops::search`'s matter, and who searches is not known here. What
//! device pages are written with is said in `page_writes`.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::page_writes::{Failures, Inserted};
use super::platform::{AnyDevice, Mutex};
use super::state::State;
use crate::batch::{Millis, Ticket};
use crate::error::Error;
use crate::ops::search::{Change, PageRows, Vectors};
use crate::session::Session;

/// The indexes of a session.
#[derive(Debug, Default)]
pub(super) struct Indexes(pub(super) Vec<Arc<Mutex<Held>>>);

/// An index's vectors, behind a lock of their own. Invariant: nobody waits for the session's lock
/// under this lock, nor for this lock under the session's, except for a moment after a loss:
/// adding and saving take long.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) vectors: Vectors,
    /// The tensor of each host page that the device has.
    pub(super) pages: Vec<u32>,
    /// The device pages.
    pub(super) device_pages: Vec<DevicePage>,
    /// Insertions whose vectors may come back after a loss.
    pub(super) inserted: Vec<Inserted>,
    /// Calls that wrote device pages and failed.
    pub(super) failures: Failures,
    /// Removals that a failure undid.
    pub(super) undone: Vec<PageRows>,
    /// The vectors of device pages whose words are lost.
    pub(super) lost: BTreeSet<u32>,
    /// Whether vectors were moved from device pages to host pages that searches on their way read.
    pub(super) has_moved: bool,
}

/// A device page.
#[derive(Clone, Copy, Debug)]
pub(super) struct DevicePage {
    /// The page's tensor.
    pub(super) number: u32,
    /// Whether the device has room for the page.
    pub(super) is_there: bool,
}

/// What an index is to be ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A search: the device has all changes.
    Search,
    /// The insertion of so many vectors: there are pages for them.
    Insertion(u32),
    /// A change of places alone.
    Removal,
}

impl Held {
    /// An index of these vectors, of which no device knows.
    pub(super) fn new(vectors: Vectors) -> Held {
        Held {
            vectors,
            pages: Vec::new(),
            device_pages: Vec::new(),
            inserted: Vec::new(),
            failures: Failures::default(),
            undone: Vec::new(),
            lost: BTreeSet::new(),
            has_moved: false,
        }
    }

    /// Whether the index can be used so at once. A lost device's successor gets everything.
    pub(super) fn is_ready(&self, session: &Session<AnyDevice>, of: Use) -> bool {
        if self.has_moved || !self.undone.is_empty() {
            return false;
        }
        let more = match of {
            Use::Removal => return true,
            Use::Insertion(more) => more,
            Use::Search => 0,
        };
        let is_whole = |page: &DevicePage| page.is_there && !session.is_tensor_lost(page.number);
        let has_pages = self.device_pages.len() >= self.vectors.device().pages_for(more)
            && (session.is_lost() || self.device_pages.iter().all(is_whole));
        has_pages && (of != Use::Search || self.is_told(session))
    }

    /// Whether the device has all changes of host pages.
    fn is_told(&self, session: &Session<AnyDevice>) -> bool {
        let has_pages = self.pages.len() == self.vectors.pages();
        has_pages && (session.is_lost() || self.vectors.is_told())
    }

    /// Makes the index ready to be used so.
    pub(super) fn prepare(&mut self, state: &mut State, of: Use, now: Millis) -> Result<(), Error> {
        self.leave_moved(&mut state.driver.session);
        self.remove_again(state, now)?;
        let more = match of {
            Use::Removal => return Ok(()),
            Use::Insertion(more) => more,
            Use::Search => 0,
        };
        self.make_pages(&mut state.driver.session, more)?;
        self.replace_lost_pages(state, now)?;
        match of {
            Use::Search => self.synchronize(&mut state.driver.session),
            Use::Insertion(_) | Use::Removal => Ok(()),
        }
    }

    /// Writes what changed in host pages to the device.
    fn synchronize(&mut self, session: &mut Session<AnyDevice>) -> Result<(), Error> {
        let Held { vectors, pages, .. } = self;
        pages.resize_with(vectors.pages(), || session.hold());
        if session.is_lost() {
            return Ok(()); // The next device gets everything.
        }
        vectors.tell(|change| match change {
            Change::Page(page, words) => session.fill(pages[page], words),
            Change::Part(page, at, words) => session.patch(pages[page], at, words),
        })
    }

    /// Makes device pages for the vectors that there are, and so many more.
    fn make_pages(&mut self, session: &mut Session<AnyDevice>, more: u32) -> Result<(), Error> {
        while self.device_pages.len() < self.vectors.device().pages_for(more) {
            self.device_pages.push(DevicePage {
                number: session.hold(),
                is_there: false,
            });
        }
        if session.is_lost() {
            return Ok(());
        }
        for (at, page) in self.device_pages.iter_mut().enumerate() {
            if !page.is_there {
                session.clear(page.number, self.vectors.device().page_words(at))?;
                page.is_there = true;
            }
        }
        Ok(())
    }

    /// Makes pages again that a failure spoiled.
    fn replace_lost_pages(&mut self, state: &mut State, now: Millis) -> Result<(), Error> {
        let session = &mut state.driver.session;
        if session.is_lost() {
            return Ok(());
        }
        for page in 0..self.device_pages.len() {
            let session = &mut state.driver.session;
            let number = self.device_pages[page].number;
            if session.is_tensor_lost(number) {
                let known = Known {
                    waiting: session.waiting_calls(),
                    // A write may be on its way to others.
                    kept: state.residents.untouched(),
                };
                // Searches that wait read the page behind what comes back.
                session.begin_restoration();
                let made = session.clear(number, self.vectors.device().page_words(page));
                let lost = self.lost.len();
                if made.is_ok() {
                    self.insert_again(state, page, &known, now);
                }
                let session = &mut state.driver.session;
                session.end_restoration();
                if self.lost.len() > lost {
                    session.refuse_readers(number);
                }
                made?;
            }
        }
        Ok(())
    }

    /// Gives the host pages that vectors were moved to other tensors: searches on their way find
    /// these vectors in device pages. Device pages without vectors are given up.
    fn leave_moved(&mut self, session: &mut Session<AnyDevice>) {
        if !std::mem::take(&mut self.has_moved) {
            return;
        }
        for page in self.vectors.renew_changed() {
            let older = std::mem::replace(&mut self.pages[page], session.hold());
            session.release(older);
        }
        if self.vectors.device().count() == 0 {
            self.vectors.leave_device();
            self.undone.clear();
            self.inserted.clear();
            for page in self.device_pages.drain(..) {
                session.release(page.number);
            }
        }
    }

    /// Whether a tensor of this number is one of the device pages.
    pub(super) fn has_device_page(&self, number: u32) -> bool {
        self.device_pages.iter().any(|page| page.number == number)
    }

    /// The tensors of all pages that a search reads, host pages first.
    pub(super) fn searched(&self, count: u32) -> Vec<u32> {
        let device = self.device_pages.iter().map(|page| page.number);
        let pages = self.pages.iter().copied().chain(device);
        pages.take(count as usize).collect()
    }
}

/// What a loss left.
pub(super) struct Known {
    /// The calls that wait, and so are still to come.
    pub(super) waiting: Vec<Ticket>,
    /// The tensors that have the words which they were made with.
    pub(super) kept: Vec<u32>,
}

impl State {
    /// Fills all indexes again after a loss; the waiting calls that read an index some of whose
    /// vectors are lost. `kept` are the tensors that were filled from their data.
    pub(super) fn restore_indexes(&mut self, kept: Vec<u32>, now: Millis) -> Vec<Ticket> {
        let indexes = self.indexes.0.clone();
        let waiting = self.driver.session.waiting_calls();
        let known = Known { waiting, kept };
        let mut given_up = Vec::new();
        self.driver.session.begin_restoration();
        for index in &indexes {
            let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
            held.note_failures();
            held.vectors.forget();
            // Where there is no room for an index, calls that read its pages are given up.
            let _ = held.synchronize(&mut self.driver.session);
            held.restore_pages(self, &known, now);
        }
        self.driver.session.end_restoration();
        for index in &indexes {
            let held = index.lock().unwrap_or_else(PoisonError::into_inner);
            for page in held.device_pages.iter().filter(|_| !held.lost.is_empty()) {
                given_up.extend(self.driver.session.give_up_readers(page.number));
            }
        }
        given_up
    }
}

impl Held {
    /// Makes all device pages again on another device, with the vectors that can come back.
    fn restore_pages(&mut self, state: &mut State, known: &Known, now: Millis) {
        self.undone.clear(); // The new pages have no vector that was removed.
        for at in 0..self.device_pages.len() {
            let page = &mut self.device_pages[at];
            let session = &mut state.driver.session;
            let made = session.clear(page.number, self.vectors.device().page_words(at));
            page.is_there = made.is_ok();
            match made {
                Ok(()) => {
                    self.insert_again(state, at, known, now);
                    let number = self.device_pages[at].number;
                    state.driver.session.heal(number);
                }
                Err(_) => self
                    .lost
                    .extend(self.vectors.device().ids_of_page(at).values()),
            }
        }
    }
}
