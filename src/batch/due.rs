//! When a batch is due: what the policy, the waits and the batches in flight say.
//!
//! What goes then is decided in `turns`.

use super::{BatchConfig, InFlight, Millis, Policy, Priority, Queue};

/// When the caller should flush, or take a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Due {
    /// Nothing depends on time now; a push or a settlement may change that.
    Idle,
    /// A batch can be taken at once.
    Now,
    /// At the end of the current task.
    TaskEnd,
    /// At this moment.
    At(Millis),
}

/// What sets the pace of calls just now, as far as the caller knows.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// Frames: a page makes calls in its frame callbacks.
    Frames,
    /// Tasks: calls come at any time.
    Tasks,
}

/// How long a frame is taken to be where none come, in milliseconds. The wait while the device is
/// busy starts there.
pub const FRAME_MS: f64 = 16.0;

impl<W, P, F> Queue<W, P, F> {
    /// What should happen next, and when.
    pub fn due(&self, now: Millis) -> Due {
        self.due_by(now, Pace::Tasks)
    }

    /// The same while the caller flushes at the end of each frame anyway.
    pub fn due_in_frames(&self, now: Millis) -> Due {
        self.due_by(now, Pace::Frames)
    }

    fn due_by(&self, now: Millis, pace: Pace) -> Due {
        if !self.may_take() {
            return Due::Idle;
        }
        if self.is_ready() {
            return Due::Now;
        }
        if self.open.is_empty() {
            return Due::Idle;
        }
        // Low work leaves a device to all others.
        let is_low = |flying: &InFlight<W, P, F>| flying.batch.priority == Priority::Low;
        let is_device_idle = self.in_flight.iter().all(is_low);
        let BatchConfig {
            policy,
            min_batch_size,
            max_wait,
            ..
        } = self.config;
        let wait = match (policy, pace) {
            (Policy::Manual, _) => return Due::Idle,
            (Policy::Frame, _) | (Policy::Auto, Pace::Frames) => max_wait,
            // An idle device waits for nothing but for a larger batch.
            (Policy::Auto | Policy::Eager, _)
                if is_device_idle && self.open.items >= min_batch_size =>
            {
                Some(0.0)
            }
            (Policy::Auto, Pace::Tasks) if is_device_idle => max_wait.or(Some(FRAME_MS)),
            (Policy::Eager, _) if is_device_idle => max_wait.or(Some(0.0)),
            (Policy::Auto, Pace::Tasks) => max_wait.or(Some(self.busy_wait)),
            (Policy::Eager, _) => max_wait,
        };
        match wait.map(|wait| Millis(self.open.oldest.0 + wait)) {
            Some(moment) if moment <= now => Due::TaskEnd,
            Some(moment) => Due::At(moment),
            None => Due::Idle,
        }
    }
}
