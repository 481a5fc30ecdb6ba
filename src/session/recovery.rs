//! Recovery: when a face opens another GPU, when the CPU takes over, and when a face looks
//! for a GPU again.
//!
//! Pure: recovery has no clock and opens nothing. A face asks what there is to do, does it,
//! and says what came of it. What becomes of calls meanwhile is `device_loss`'s matter.

use crate::batch::Millis;
use crate::device::Engine;

/// How many devices at work on a batch are lost, with no call of it answered in between,
/// before its calls are refused. A loss does not count for the batches behind, in flight or
/// queued.
pub(super) const ATTEMPTS: u32 = 3;

/// Losses in a row after which the CPU takes over: more than a single batch survives, so
/// that a batch which brings every device down is refused and the other batches keep the
/// GPU.
const LOSSES: u32 = ATTEMPTS + 1;

/// Losses that are more milliseconds apart do not add up.
const FAR_MS: f64 = 60_000.0;

/// The loss of a device that was idle and had been there for so many milliseconds says
/// nothing about the next one: a GPU driver was updated, or somebody destroyed the device.
const STAYED_MS: f64 = 1000.0;

/// Milliseconds until a face first looks for a GPU after the CPU took over. Each
/// pause is twice as long as the one before, up to the longest.
const FIRST_PAUSE_MS: f64 = 1000.0;
const LONGEST_PAUSE_MS: f64 = 60_000.0;

/// What a face is to do about the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Open a GPU and replace the lost one with it, while calls wait. Where no GPU opens,
    /// the CPU is to replace the lost one.
    Reopen,
    /// Replace the lost device with the CPU.
    FallBack,
    /// Try once to open a GPU, while the CPU answers: [`Session::welcome`] takes the GPU,
    /// [`Session::missed`] hears that there is none.
    ///
    /// [`Session::welcome`]: super::Session::welcome
    /// [`Session::missed`]: super::Session::missed
    Look,
}

/// How a device was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The device was idle: nothing of the session was in flight.
    Idle,
    /// The device was at work on a batch, or compiled kernels for calls.
    AtWork,
    /// The session gives the device up, because it lacks memory for work that the CPU
    /// beside it cannot do.
    Exhausted,
}

/// The states of a session's GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The session was opened without a GPU, and stays so.
    Without,
    /// A GPU is in use since this moment.
    InUse { since: Millis },
    /// The GPU is lost, and no face has heard of that.
    Lost,
    /// A face opens another GPU.
    Reopening,
    /// The CPU has taken over until a face looks for a GPU.
    FellBack { until: Millis },
    /// A face looks for a GPU, and the CPU answers.
    Looking,
}

/// How a session stands with its GPU, and what is remembered of losses.
#[derive(Debug)]
pub(super) struct Recovery {
    state: State,
    /// Losses in a row: no device answered a call in between.
    pub(super) losses: u32,
    /// When the last loss in this row was.
    last: Millis,
    /// The next pause until a face looks for a GPU, in milliseconds.
    pause: f64,
}

impl Recovery {
    /// The recovery of a session that is opened on a device of this kind.
    pub(super) fn new(engine: Engine) -> Self {
        let since = Millis::default();
        Recovery {
            state: match engine {
                Engine::Gpu => State::InUse { since },
                Engine::Cpu => State::Without,
            },
            losses: 0,
            last: Millis::default(),
            pause: FIRST_PAUSE_MS,
        }
    }

    /// Notes that the GPU has answered a call, so it works.
    pub(super) fn proved(&mut self) {
        self.losses = 0;
        self.pause = FIRST_PAUSE_MS;
    }

    /// Notes that the device in use is lost; counts once for each device.
    pub(super) fn lost(&mut self, loss: Loss, now: Millis) {
        let since = match self.state {
            State::InUse { since } => since,
            // A CPU is never lost, but a session may be told so.
            State::Without => now,
            _ => return,
        };
        self.state = State::Lost;
        if now.0 - self.last.0 > FAR_MS {
            self.proved();
        }
        match loss {
            Loss::Idle if now.0 - since.0 > STAYED_MS => return,
            Loss::Idle | Loss::AtWork => self.losses += 1,
            Loss::Exhausted => {
                // Another GPU has hardly more memory, and to fill it takes long.
                self.losses = LOSSES;
                self.pause = LONGEST_PAUSE_MS;
            }
        }
        self.last = now;
    }

    /// What a face is to do now; each remedy is told once.
    pub(super) fn due(&mut self, now: Millis) -> Option<Remedy> {
        match self.state {
            State::Lost if self.losses >= LOSSES => Some(Remedy::FallBack),
            State::Lost => {
                self.state = State::Reopening;
                Some(Remedy::Reopen)
            }
            State::FellBack { until } if until <= now => {
                self.state = State::Looking;
                Some(Remedy::Look)
            }
            _ => None,
        }
    }

    /// Whether no loss was noted of the device in use.
    pub(super) fn is_in_use(&self) -> bool {
        matches!(self.state, State::InUse { .. } | State::Without)
    }

    /// When a face is to look for a GPU, if the CPU is in its place.
    pub(super) fn next_look(&self) -> Option<Millis> {
        match self.state {
            State::FellBack { until } => Some(until),
            _ => None,
        }
    }

    /// Notes that a GPU is in use from now on.
    pub(super) fn found(&mut self, now: Millis) {
        if self.state == State::Looking {
            // The GPU has to prove itself: if it is lost as those before were, the CPU is
            // back at once.
            self.losses = LOSSES - 1;
            self.last = now;
        }
        self.state = State::InUse { since: now };
    }

    /// Notes that the CPU is in use from now on, because no GPU is.
    pub(super) fn fell_back(&mut self, now: Millis) {
        let until = Millis(now.0 + self.pause);
        self.state = State::FellBack { until };
        self.pause = (self.pause * 2.0).min(LONGEST_PAUSE_MS);
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/recovery.rs"]
mod tests;
