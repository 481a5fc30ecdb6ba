//! When a face opens another GPU, gives up, and looks again: by tables of what happens,
//! and when.

use super::*;

/// What happens to a session's GPU.
#[derive(Clone, Copy, Debug)]
enum Event {
    Lost(Loss),
    /// A face asked what to do, and was told this.
    Told(Option<Remedy>),
    /// The face opened a GPU.
    Found,
    /// The face found no GPU, or was told to fall back.
    FellBack,
    /// The GPU answered a call.
    Proved,
}

use Event::{FellBack, Found, Lost, Proved, Told};
use Loss::{AtWork, Exhausted, Idle};

const REOPEN: Event = Told(Some(Remedy::Reopen));
const FALL_BACK: Event = Told(Some(Remedy::FallBack));
const LOOK: Event = Told(Some(Remedy::Look));

/// Tells a story, each event at its second.
fn check(story: &[(f64, Event)]) -> Recovery {
    let mut recovery = Recovery::new(Engine::Gpu);
    for (at, (second, event)) in story.iter().enumerate() {
        let now = Millis(second * 1e3);
        match event {
            Lost(loss) => recovery.lost(*loss, now),
            Told(remedy) => assert_eq!(recovery.due(now), *remedy, "{at}: {second} s"),
            Found => recovery.found(now),
            FellBack => recovery.fell_back(now),
            Proved => recovery.proved(),
        }
    }
    recovery
}

/// A number of devices that are lost, one after the other, and the next one.
fn losses(loss: Loss, seconds: &[f64]) -> Vec<(f64, Event)> {
    let each = |second: &f64| [(*second, Lost(loss)), (*second, REOPEN), (*second, Found)];
    seconds.iter().flat_map(each).collect()
}

#[test]
fn a_session_without_a_gpu_looks_for_none() {
    let mut recovery = Recovery::new(Engine::Cpu);
    assert_eq!(recovery.due(Millis(1e9)), None);
    assert_eq!(recovery.next_look(), None);
}

#[test]
fn the_cpu_takes_over_after_losses_in_a_row() {
    for loss in [AtWork, Idle] {
        // Each device goes as soon as it is there.
        let mut story = losses(loss, &[0.1, 0.2, 0.3]);
        story.extend([(0.4, Lost(loss)), (0.4, FALL_BACK), (0.4, FALL_BACK)]);
        check(&story);
    }
}

#[test]
fn an_answer_in_between_keeps_the_gpu() {
    let mut story = losses(AtWork, &[0.1, 0.2, 0.3]);
    story.push((0.4, Proved));
    story.extend(losses(AtWork, &[0.5, 0.6, 0.7]));
    check(&story);
}

#[test]
fn losses_of_idle_devices_that_stayed_do_not_add_up() {
    let seconds = [5.0, 19.0, 25.0, 35.0, 37.0, 39.0, 41.0, 43.0, 45.0];
    check(&losses(Idle, &seconds));
}

#[test]
fn losses_far_apart_do_not_add_up() {
    check(&losses(AtWork, &[1.0, 62.0, 123.0, 184.0, 245.0]));
    let mut story = losses(AtWork, &[1.0, 30.0, 60.0]);
    story.extend([(90.0, Lost(AtWork)), (90.0, FALL_BACK)]);
    check(&story);
}

#[test]
fn a_loss_is_heard_once() {
    check(&[
        (1.0, Lost(AtWork)),
        (1.0, Lost(AtWork)),
        (1.0, REOPEN),
        (1.1, Lost(AtWork)),
        (1.1, Lost(AtWork)),
        (1.1, Told(None)),
        (1.2, Found),
        (1.3, Lost(AtWork)),
        (1.3, REOPEN),
    ]);
}

#[test]
fn pauses_between_looks_grow_to_a_minute() {
    let mut recovery = check(&[(1.0, Lost(AtWork)), (1.0, REOPEN), (1.0, FellBack)]);
    let mut now = Millis(1000.0);
    for pause in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0] {
        let next = recovery.next_look().expect("it looks again");
        assert_eq!(next.0 - now.0, pause * 1e3);
        assert_eq!(recovery.due(Millis(next.0 - 1.0)), None);
        assert_eq!(recovery.due(next), Some(Remedy::Look));
        assert_eq!((recovery.due(next), recovery.next_look()), (None, None));
        now = next;
        recovery.fell_back(now);
    }
}

#[test]
fn a_gpu_that_is_found_again_has_to_prove_itself() {
    let until_found = [
        (1.0, Lost(AtWork)),
        (1.0, REOPEN),
        (1.0, FellBack),
        (2.0, LOOK),
        (2.0, Found),
    ];
    let again = |story: &[(f64, Event)]| check(&[&until_found, story].concat());
    // The GPU is as bad as before: one loss is enough, and the pauses go on growing.
    let recovery = again(&[(3.0, Lost(AtWork)), (3.0, FALL_BACK), (3.0, FellBack)]);
    assert_eq!(recovery.next_look(), Some(Millis(5000.0)));
    // A GPU that answers, or stays for a minute, makes all forgotten.
    for (second, proof) in [(3.0, Some(Proved)), (63.0, None)] {
        let proof = proof.map(|proof| (second, proof));
        let then = [(second, Lost(AtWork)), (second, REOPEN), (second, FellBack)];
        let recovery = again(&[proof.as_slice(), &then].concat());
        let next = Millis(second * 1e3 + 1000.0);
        assert_eq!(recovery.next_look(), Some(next));
    }
    // Somebody destroyed the device while it had nothing to do.
    again(&[(4.0, Lost(Idle)), (4.0, REOPEN)]);
}

#[test]
fn a_gpu_without_memory_is_looked_for_after_the_longest_pause() {
    let recovery = check(&[
        (1.0, Lost(Exhausted)),
        (1.0, FALL_BACK),
        (1.0, FellBack),
        (60.9, Told(None)),
    ]);
    assert_eq!(recovery.next_look(), Some(Millis(61_000.0)));
}
