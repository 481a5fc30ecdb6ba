//! Whose turn it is: which of the waiting batches goes next, by priority and by what the
//! device's time was spent on.
//!
//! High goes before normal, and normal before low, but for a tenth of the time: while low
//! work waits, every nine milliseconds of other work earn one that goes before all others.
//! Batches that wait are in `tiers`, and how large a slice is says `slices`.

use super::slices::{Length, Slices};
use super::{Batch, Millis, Policy, Priority, Queue};

/// Milliseconds for which a call of high priority counts as recent.
const RECENT_MS: f64 = 1000.0;

/// Milliseconds of other work that earn one of low work.
const OTHERS_PER_LOW: f64 = 9.0;

/// The least that a batch counts as taking: clocks of browsers are coarse.
const LEAST_MS: f64 = 0.1;

/// The most that a batch counts as taking: a page may be suspended, and its device with it.
const MOST_MS: f64 = 100.0;

/// Long slices in flight at once: while one is on its way back, the device works on the other.
const SLICES_IN_FLIGHT: usize = 2;

/// Whether low work may be sent just now, as far as the caller is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LowWork {
    /// Low work may be sent.
    #[default]
    Goes,
    /// One short slice may be sent: the caller is kept from other things while it is computed.
    GoesBriefly,
    /// The caller has other things to do first, and says when it may.
    Rests,
}

/// What turns are decided by.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) low_work: LowWork,
    pub(super) slices: Slices,
    /// When the newest call of high priority came.
    newest_high: Option<Millis>,
    /// Milliseconds of the device that low work is owed, while some waits.
    owed: f64,
}

impl Turns {
    /// Notes that a call of high priority came.
    pub(super) fn called_high(&mut self, now: Millis) {
        self.newest_high = Some(now);
    }

    /// How long slices may be: short ones where others would wait for them.
    pub(super) fn length(&self, now: Millis) -> Length {
        let is_recent = |high: Millis| now.0 - high.0 < RECENT_MS;
        let is_brief = self.low_work == LowWork::GoesBriefly;
        match is_brief || self.newest_high.is_some_and(is_recent) {
            true => Length::Short,
            false => Length::Long,
        }
    }

    fn took_low(&mut self, ms: f64) {
        let ms = ms.clamp(LEAST_MS, MOST_MS);
        // Slices that found the device idle are not held against those to come.
        self.owed = (self.owed - ms).max(-ms);
    }

    fn took_other(&mut self, ms: f64) {
        self.owed += ms.clamp(LEAST_MS, MOST_MS) / OTHERS_PER_LOW;
    }
}

impl<W, P, F> Queue<W, P, F> {
    /// The priority of the batch that goes next; `None` where none may go now.
    pub(super) fn turn(&self, now: Millis) -> Option<Priority> {
        if self.has_restoring() {
            let goes = self.restores_next() && self.may_take();
            return goes.then_some(Priority::Normal);
        }
        let normal = || (self.may_take() && self.is_ready()).then_some(Priority::Normal);
        if self.tiers.is_empty() {
            return normal();
        }
        let is_owed = self.is_low_owed();
        let goes = self.tiers.turns.low_work != LowWork::Rests;
        if is_owed && goes && self.may_fly() {
            return Some(Priority::Low);
        }
        if self.tiers.has_high() {
            let is_free = self.may_take_high();
            return is_free.then_some(Priority::High).or_else(normal);
        }
        let is_last_place = self.in_flight.len() + 1 >= self.config.max_in_flight;
        if is_owed && is_last_place && !self.is_urgent() {
            return None; // The place is kept for low work that rests.
        }
        normal().or_else(|| (goes && self.may_take_low(now)).then_some(Priority::Low))
    }

    /// Whether a batch of another priority than normal may be taken now.
    pub fn has_turn(&self, now: Millis) -> bool {
        !matches!(self.turn(now), None | Some(Priority::Normal))
    }

    /// Whether calls of high priority wait.
    pub fn has_high(&self) -> bool {
        self.tiers.has_high()
    }

    /// Whether calls of low priority wait.
    pub fn has_low_calls(&self) -> bool {
        self.tiers.has_low()
    }

    /// Whether low work waits that nobody has to ask for.
    pub fn has_low(&self) -> bool {
        let is_manual = self.config.policy == Policy::Manual;
        self.tiers.has_low() && (!is_manual || self.tiers.is_low_flushed)
    }

    /// Says whether low work may be sent from here on.
    pub fn set_low_work(&mut self, low_work: LowWork) {
        self.tiers.turns.low_work = low_work;
    }

    /// Units of work that the slice which goes now may have; at least a call goes.
    pub fn slice(&self, now: Millis) -> f64 {
        let turns = &self.tiers.turns;
        turns.slices.most(turns.length(now))
    }

    /// Notes that the device took so long for a batch; of low work, for so many units.
    pub fn took(&mut self, priority: Priority, units: f64, ms: f64) {
        let has_low = self.has_low();
        let turns = &mut self.tiers.turns;
        match priority {
            Priority::Low => {
                turns.slices.took(units, ms);
                turns.took_low(ms);
            }
            Priority::Normal | Priority::High if has_low => turns.took_other(ms),
            Priority::Normal | Priority::High => turns.owed = 0.0,
        }
    }

    /// A batch of high priority waits for no place in flight but for one that another such
    /// batch has: that one will be back first.
    fn may_take_high(&self) -> bool {
        let is_high = |flying: &super::InFlight<W, P, F>| flying.batch.priority == Priority::High;
        self.may_fly() || !self.in_flight.iter().any(is_high) || self.tiers.is_high_urgent()
    }

    /// Whether a slice may go beside what is in flight. A place is left for other calls, if
    /// there are several.
    fn may_take_low(&self, now: Millis) -> bool {
        let turns = &self.tiers.turns;
        let most = match turns.length(now) {
            Length::Short => 1,
            Length::Long => SLICES_IN_FLIGHT.min(self.config.max_in_flight - 1).max(1),
        };
        self.has_low()
            && self.may_fly()
            && self.slices_in_flight() < most
            && !self.has_parked_slice()
    }

    /// Whether low work that waits did not get its tenth of the time.
    fn is_low_owed(&self) -> bool {
        let is_served = self.slices_in_flight() > 0 || self.has_parked_slice();
        // Low work that was raised comes before what is left of low work.
        let is_raised = |batch: &Batch<W, P>| batch.is_raised;
        let is_behind = || {
            let high = self.any_in(Priority::High, is_raised);
            high || self.sealed.iter().any(is_raised)
        };
        self.tiers.turns.owed > 0.0 && self.has_low() && !is_served && !is_behind()
    }

    /// Whether a slice waits for its kernels, say. Others would join it, until all low work
    /// was one batch.
    fn has_parked_slice(&self) -> bool {
        let mut parked = self.parked.iter();
        parked.any(|batch| batch.priority == Priority::Low && !batch.is_empty())
    }

    fn slices_in_flight(&self) -> usize {
        let slices = self.in_flight.iter().map(|flying| flying.batch.priority);
        slices.filter(|priority| *priority == Priority::Low).count()
    }
}
