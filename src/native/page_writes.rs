//! Calls that write the device pages of indexes: insertions of vectors of tensors, and removals.
//!
//! Which vector goes where is the matter of `ops::search`. Pages are made in `indexes`.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, Weak};

use super::indexes::{Held, Known};
use super::platform::Mutex;
use super::recipient::Recipient;
use super::request::{Chained, Request, Structure};
use super::state::State;
use super::submission::Terms;
use super::tensor::Resident;
use crate::batch::{Millis, Ticket};
use crate::error::Error;
use crate::graph::insertion::{Insertion, ROW};
use crate::ops::search::PageRows;
use crate::session::Submission;

/// An insertion whose source may still have the vectors.
#[derive(Debug)]
pub(super) struct Inserted {
    /// The tensor whose rows the vectors are, which the index does not keep alive.
    source: Weak<Resident>,
    /// The number of that tensor.
    number: u32,
    /// The call.
    ticket: Ticket,
    call: PageRows,
}

/// How and when a call is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) terms: Terms,
    pub(super) now: Millis,
}

impl Asked {
    /// A call of the session itself.
    fn at(now: Millis) -> Asked {
        let terms = Terms::default();
        Asked { terms, now }
    }
}

/// Calls of an index that failed, until the index takes note.
pub(super) type Failures = Arc<Mutex<Vec<FailedWrite>>>;

/// A call that failed to write a device page.
#[derive(Debug)]
pub(super) struct FailedWrite {
    ticket: Ticket,
    call: PageRows,
}

/// A call that writes a device page, of which the index hears if the call fails.
#[derive(Debug)]
pub(super) struct PageWrite {
    failures: Failures,
    write: FailedWrite,
}

impl PageWrite {
    /// Tells the index that the call wrote nothing.
    pub(super) fn fail(self) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(self.write);
    }
}

impl Held {
    /// Takes calls that write device pages, of vectors of a tensor of this number if there is one:
    /// all of them, or none.
    pub(super) fn write(
        &self,
        state: &mut State,
        calls: &[PageRows],
        source: Option<u32>,
        asked: Asked,
    ) -> Result<Vec<Ticket>, Error> {
        let mut tickets = Vec::with_capacity(calls.len());
        for call in calls {
            match self.write_page(state, call, source, asked) {
                Ok(ticket) => tickets.push(ticket),
                Err(error) => {
                    for ticket in tickets {
                        state.answers.remove(&ticket);
                        state.driver.session.abort(ticket);
                    }
                    return Err(error);
                }
            }
        }
        Ok(tickets)
    }

    fn write_page(
        &self,
        state: &mut State,
        call: &PageRows,
        source: Option<u32>,
        Asked { terms, now }: Asked,
    ) -> Result<Ticket, Error> {
        let insertion = Insertion {
            has_source: source.is_some(),
            ..self.vectors.config().insertion()
        };
        let page = self.device_pages[call.page].number;
        let request = Request {
            structure: Structure::Insertion(insertion),
            rows: call.rows.len() / ROW as usize,
            scalar: 0,
            operands: [bytemuck::cast_slice(&call.rows), &[], &[], &[], &[]],
            chained: Chained {
                tensors: source.into_iter().chain([page]).collect(),
                ..Chained::default()
            },
        };
        let submission = Submission {
            recipe: state.recipe(&request.structure)?,
            rows: u32::try_from(request.rows).expect("a call has few rows"),
            scalar: 0,
            key: None, // No other call may take the place of one that writes.
        };
        state.copy(&request)?;
        let session = &mut state.driver.session;
        let accepted = session.submit_with(terms.priority, terms.engine, &submission, now)?;
        let write = PageWrite {
            failures: Arc::clone(&self.failures),
            write: FailedWrite {
                ticket: accepted.ticket,
                call: call.clone(),
            },
        };
        let recipient = Recipient::Page(Box::new(write));
        state.answers.insert(accepted.ticket, recipient);
        Ok(accepted.ticket)
    }

    /// Notes insertions that were taken, of the vectors of a tensor.
    pub(super) fn note_inserted(
        &mut self,
        source: &Arc<Resident>,
        number: u32,
        calls: impl Iterator<Item = (Ticket, PageRows)>,
    ) {
        // Sources that are gone give nothing back.
        if self.inserted.len() == self.inserted.capacity() {
            self.inserted
                .retain(|known| known.source.strong_count() > 0);
        }
        self.inserted.extend(calls.map(|(ticket, call)| Inserted {
            source: Arc::downgrade(source),
            number,
            ticket,
            call,
        }));
    }

    /// Sends removals again that a failure undid, but for places that other vectors have taken.
    pub(super) fn remove_again(&mut self, state: &mut State, now: Millis) -> Result<(), Error> {
        if self.undone.is_empty() {
            return Ok(());
        }
        let device = self.vectors.device();
        let free = self
            .undone
            .iter()
            .map(|call| device.filtered(call, |id, _| id.is_none()));
        let free: Vec<PageRows> = free.filter(|call| !call.rows.is_empty()).collect();
        self.write(state, &free, None, Asked::at(now))?;
        self.undone.clear();
        Ok(())
    }

    /// Inserts the vectors of an empty page again whose tensors have their words. Vectors that are
    /// neither among these nor still to be inserted are lost.
    pub(super) fn insert_again(
        &mut self,
        state: &mut State,
        page: usize,
        known: &Known,
        now: Millis,
    ) {
        let device = self.vectors.device();
        let mut lost: BTreeSet<u32> = device.ids_of_page(page).into_values().collect();
        let mut inserted = std::mem::take(&mut self.inserted);
        for own in inserted.iter_mut().filter(|own| own.call.page == page) {
            let is_own = |id: Option<u32>, row: &[u32]| id == row[2].checked_sub(1);
            let call = self.vectors.device().filtered(&own.call, is_own);
            let is_coming = known.waiting.contains(&own.ticket);
            let is_kept = own.source.strong_count() > 0 && known.kept.contains(&own.number);
            if !is_coming {
                if !is_kept || call.rows.is_empty() {
                    continue;
                }
                match self.write_page(state, &call, Some(own.number), Asked::at(now)) {
                    Ok(ticket) => own.ticket = ticket,
                    Err(_) => continue,
                }
            }
            for id in ids(&call) {
                lost.remove(&id);
            }
        }
        self.inserted = inserted;
        self.lost.extend(lost);
    }

    /// Takes note of calls that failed: the vectors that they were to insert are lost, and those
    /// that they were to remove are to be removed again.
    pub(super) fn note_failures(&mut self) {
        let failed = self
            .failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .split_off(0);
        for FailedWrite { ticket, call } in failed {
            let is_again = |own: &Inserted| own.ticket != ticket && own.call == call;
            if self.inserted.iter().any(is_again) {
                continue; // After a loss, another call has inserted the vectors.
            }
            let device = self.vectors.device();
            self.lost.extend(ids(&call).filter(|id| device.has(*id)));
            let rows = call.rows.chunks_exact(ROW as usize);
            let rows: Vec<u32> = rows.filter(|row| row[2] == 0).flatten().copied().collect();
            // The pages may have been given up since.
            if !rows.is_empty() && call.page < self.device_pages.len() {
                self.undone.push(PageRows { rows, ..call });
            }
        }
    }

    /// Refuses what reads an index with lost vectors.
    pub(super) fn check_whole(&self, name: &str) -> Result<(), Error> {
        match self.lost.len() {
            0 => Ok(()),
            count => Err(Error::TensorLost(format!(
                "{name}: {count} vectors of the index are lost; remove those that `lost` names, and add them again"
            ))),
        }
    }
}

/// The ids of the vectors that a call inserts.
fn ids(call: &PageRows) -> impl Iterator<Item = u32> {
    let rows = call.rows.chunks_exact(ROW as usize);
    rows.filter_map(|row| row[2].checked_sub(1))
}
