//! The life of the device in use: which one it is, since when it works, and how it was
//! lost.
//!
//! Pure: a life has no clock and no device. What is done about a loss is the matter of
//! `recovery`.

use super::recovery::Loss;
use crate::batch::Millis;
use crate::device::Generation;

/// Milliseconds from the first batch on after which a device counts as working if it was
/// not lost: longer than a system lets a device hang.
const PROVEN_MS: f64 = 60_000.0;

/// What is known of the device in use.
#[derive(Debug, Default)]
pub(super) struct Life {
    generation: Generation,
    /// How the device was lost, until it is replaced. Nothing is sent to a lost device.
    loss: Option<Loss>,
    /// Whether the device has answered a call.
    has_answered: bool,
    /// When the device was sent its first batch.
    first_sent: Option<Millis>,
    /// When this device or one before last answered something that can be read.
    heard: Millis,
}

impl Life {
    /// The number of the device in use. The number changes when the device is lost and when another
    /// one takes its place: what was sent before is not what is sent from here on.
    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// How the device was lost, until it is replaced.
    pub(super) fn loss(&self) -> Option<Loss> {
        self.loss
    }

    pub(super) fn is_lost(&self) -> bool {
        self.loss.is_some()
    }

    /// Notes that the device is lost.
    pub(super) fn end(&mut self, loss: Loss) {
        self.loss = Some(loss);
        self.generation = Generation(self.generation.0 + 1);
    }

    /// Begins the life of another device.
    pub(super) fn begin(&mut self) {
        *self = Life {
            generation: Generation(self.generation.0 + 1),
            heard: self.heard,
            ..Life::default()
        };
    }

    /// Notes that the device is sent a batch.
    pub(super) fn sent(&mut self, now: Millis) {
        self.first_sent.get_or_insert(now);
    }

    /// Notes that the device has answered something that can be read.
    pub(super) fn heard(&mut self, now: Millis) {
        self.heard = now;
    }

    /// Since when the device owes the answer to what was sent at a moment: it answers in
    /// order.
    pub(super) fn owes_since(&self, sent: Millis) -> Millis {
        if sent < self.heard { self.heard } else { sent }
    }

    /// Notes that the device has answered a call, so it works.
    pub(super) fn proved(&mut self) {
        self.has_answered = true;
    }

    /// Whether the device has answered a call.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Whether the device had worked for a minute at the moment when something was sent.
    pub(super) fn is_old(&self, sent: Millis) -> bool {
        sent.0 - self.first_sent.unwrap_or(sent).0 > PROVEN_MS
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_told_from_those_before_it() {
        let mut life = Life::default();
        let first = life.generation();
        life.sent(Millis(0.0));
        life.proved();
        life.end(Loss::Idle);
        assert!(life.is_lost() && life.generation() != first);
        let lost = life.generation();
        life.begin();
        assert!(!life.is_lost() && !life.has_answered());
        assert!(![first, lost].contains(&life.generation()));
    }

    #[test]
    fn a_device_is_old_a_minute_after_its_first_batch() {
        let mut life = Life::default();
        assert!(!life.is_old(Millis(1e6)), "nothing was sent yet");
        life.sent(Millis(1000.0));
        life.sent(Millis(50_000.0));
        assert!(!life.is_old(Millis(61_000.0)) && life.is_old(Millis(61_001.0)));
        life.begin();
        assert!(!life.is_old(Millis(61_001.0)), "another device is young");
    }

    #[test]
    fn an_answer_is_owed_since_the_last_one() {
        let mut life = Life::default();
        life.heard(Millis(5.0));
        let owed = [1.0, 5.0, 9.0].map(|sent| life.owes_since(Millis(sent)).0);
        assert_eq!(owed, [5.0, 5.0, 9.0]);
        life.begin();
        assert_eq!(life.owes_since(Millis(1.0)), Millis(5.0));
    }
}
