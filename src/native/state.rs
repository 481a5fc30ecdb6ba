//! What a session's lock guards: the driver with its session, and the records of who waits
//! for what.
//!
//! The lock itself is in `state_lock`, and what is done under it in `shared`, `submission` and
//! the worker.

use std::collections::HashMap;

use super::compile_jobs::CompileJobs;
use super::deadlines::Deadlines;
use super::device_event::DeviceEvent;
use super::indexes::Indexes;
use super::listeners::Listeners;
use super::lru::Recent;
use super::platform::{AnyDevice, Task};
use super::recipient::Recipient;
use super::request::Structure;
use super::residents::Residents;
use super::result_buffer::Spare;
use super::store::Clips;
use super::waiters::Waiters;
use crate::batch::{Millis, Ticket};
use crate::driver::Driver;
use crate::error::Error;
use crate::plan::RecipeId;
use crate::session::Facts;

#[derive(Debug)]
pub(super) struct State {
    pub(super) driver: Driver<AnyDevice>,
    pub(super) answers: HashMap<Ticket, Recipient>,
    pub(super) deadlines: Deadlines,
    pub(super) recipes: Recent<Structure, RecipeId>,
    pub(super) residents: Residents,
    pub(super) listeners: Listeners<Facts>,
    pub(super) device_listeners: Listeners<DeviceEvent>,
    pub(super) clips: Clips,
    pub(super) indexes: Indexes,
    /// Memory that callers gave back, for results to come.
    pub(super) spare: Spare,
    /// Tasks that wait for room in the queue.
    pub(super) waiting: Waiters,
    pub(super) compiles: CompileJobs,
    /// Jobs that free devices which were replaced.
    pub(super) freeing: Vec<Task>,
    /// Why no more calls are taken.
    pub(super) closed: Option<Error>,
    /// Whether a thread panicked with the state locked and left it half changed.
    pub(super) is_broken: bool,
    /// Whether the worker sleeps. Waking a thread that is awake still costs a
    /// system call.
    pub(super) asleep: bool,
}

impl State {
    /// Whether producers should wait. A full queue is sent whatever the policy.
    pub(super) fn is_full(&self) -> bool {
        self.driver.session.desired_size() <= 0
    }

    /// Gives up the calls whose deadlines have passed: who is to be told, with nothing locked.
    pub(super) fn expire(&mut self, now: Millis) -> Vec<Recipient> {
        let mut expired = Vec::new();
        while let Some(ticket) = self.deadlines.take_passed(now) {
            // Without a recipient the call is over.
            if let Some(recipient) = self.take_failed(ticket, &Error::Timeout) {
                self.driver.session.abort(ticket);
                expired.push(recipient);
            }
        }
        expired
    }

    /// Keeps a result's memory for later results, or hands the result back. Memory is kept only
    /// where the driver will trim it, which it does after a batch.
    pub(super) fn keep(&mut self, result: Vec<f32>) -> Option<Vec<f32>> {
        match self.closed.is_none() && self.driver.session.may_trim() {
            true => self.spare.give(result),
            false => Some(result),
        }
    }
}
