//! A driver under random events: calls, losses, devices that hang, compilations, probes and
//! time, in any order. Once the events stop, all calls have been answered, nothing is left
//! running, memory is freed, and a GPU is in use.
//!
//! `PROPTEST_CASES` is how many orders are tried.

use proptest::prelude::*;

use super::face::{Call, Face, Fate, Found, Sent};
use super::*;
use crate::Model;
use crate::batch::Policy;
use crate::device::Compile;
use crate::plan::KINDS;
use crate::session::FACTS;

#[derive(Clone, Debug)]
enum Event {
    Submit(Call, Option<Engine>),
    WarmUp,
    Abort(prop::sample::Index),
    Flush,
    Land(prop::sample::Index, Fate),
    Compile(prop::sample::Index, Fate),
    /// Looking for a GPU has ended.
    EndLook(Found),
    /// The cost model is to be measured.
    Calibrate,
    /// A probe has ended.
    Measure(Fate),
    /// The platform says that the device is lost.
    Lose,
    Pass(f64),
}

fn event() -> impl Strategy<Value = Event> {
    let index = any::<prop::sample::Index>;
    let call = prop_oneof![4 => (1..12_u32).prop_map(Call::Lerp), 1 => Just(Call::Write), 2 => Just(Call::Read)];
    let engine =
        prop_oneof![6 => Just(None), 1 => Just(Some(Engine::Gpu)), 2 => Just(Some(Engine::Cpu))];
    let fate = || prop_oneof![8 => Just(Fate::Arrives), 1 => Just(Fate::Short), 2 => Just(Fate::Lost), 1 => Just(Fate::Hangs)];
    let found = prop_oneof![3 => Just(Found::Gpu), 1 => Just(Found::Nothing)];
    let ms = prop_oneof![6 => 0.0..20.0, 2 => 20.0..3000.0, 1 => 3000.0..70_000.0];
    prop_oneof![
        40 => (call, engine).prop_map(|(call, engine)| Event::Submit(call, engine)),
        2 => Just(Event::WarmUp),
        6 => index().prop_map(Event::Abort),
        15 => Just(Event::Flush),
        25 => (index(), fate()).prop_map(|(which, fate)| Event::Land(which, fate)),
        15 => (index(), fate()).prop_map(|(which, fate)| Event::Compile(which, fate)),
        12 => found.prop_map(Event::EndLook),
        2 => Just(Event::Calibrate),
        6 => fate().prop_map(Event::Measure),
        8 => Just(Event::Lose),
        10 => ms.prop_map(Event::Pass),
    ]
}

/// Who flushes open batches, and by which policy.
fn pace() -> impl Strategy<Value = (Pace, BatchConfig)> {
    let batch = |policy, max_wait| BatchConfig {
        policy,
        max_wait,
        max_batch_size: Some(30),
        max_in_flight: 2,
        ..config()
    };
    prop_oneof![
        2 => Just((Pace::Frames, batch(Policy::Manual, None))),
        1 => Just((Pace::Policy, batch(Policy::Manual, Some(50.0)))),
        1 => Just((Pace::Policy, batch(Policy::Eager, Some(5.0)))),
    ]
}

/// A cost model by which the CPU takes two milliseconds for a row, and the GPU ten for a flush.
fn model() -> Model {
    let mut model = Model([0.0; FACTS.len()]);
    model.0[0] = 10.0;
    model.0[FACTS.len() - KINDS + 1] = 2e6;
    model
}

fn happen(face: &mut Face, event: Event, value: f32) {
    match event {
        Event::Submit(call, engine) => face.submit(call, engine, value),
        Event::WarmUp => face.warm_up(),
        Event::Abort(which) => face.abort(which),
        Event::Flush => face.flush(),
        Event::Land(which, fate) if !face.sent.is_empty() => {
            face.land(which.index(face.sent.len()), fate);
        }
        Event::Compile(which, fate) if !face.works.is_empty() => {
            face.compile(which.index(face.works.len()), fate);
        }
        Event::EndLook(found) => face.opened(found),
        Event::Calibrate => face.calibrate(),
        Event::Measure(fate) => face.measure(fate),
        Event::Lose => face.lose(),
        Event::Pass(ms) => face.pass(ms),
        Event::Land(..) | Event::Compile(..) => {}
    }
}

/// Lets everything in flight arrive, and time pass, until the session is at rest.
fn settle_down(face: &mut Face) {
    face.flush();
    for _ in 0..20_000 {
        let lands = |sent: &Sent| !sent.hangs() || face.is_gone(sent.generation());
        let compiles = |(generation, _, hangs): &(Generation, Compile, bool)| {
            !hangs || face.is_gone(*generation)
        };
        if let Some(at) = face.sent.iter().position(lands) {
            face.land(at, Fate::Arrives);
        } else if let Some(at) = face.works.iter().position(compiles) {
            face.compile(at, Fate::Arrives);
        } else if face.opening {
            face.opened(Found::Gpu);
        } else if is_settled(face) {
            return;
        } else {
            face.measure(Fate::Arrives);
            face.pass(if face.probe.is_some() { 1.0 } else { 100.0 });
        }
    }
    panic!(
        "it never settles: calls {:?}, {} batches, {} kernels",
        face.pending.keys(),
        face.sent.len(),
        face.works.len(),
    );
}

fn is_settled(face: &Face) -> bool {
    let session = &face.driver.session;
    face.pending.is_empty()
        && face.warming.is_empty()
        && (face.calibrating == 0 || face.rests())
        && session.in_flight() == 0
        && session.info().engine == Engine::Gpu
        && !session.is_lost()
}

proptest! {
    /// Whatever was lost and whenever, all calls are answered once the events stop, and a GPU
    /// is in use again, with its router.
    #[test]
    fn everything_settles(
        events in prop::collection::vec(event(), 1..150),
        is_routed in any::<bool>(),
        (pace, batch) in pace(),
    ) {
        let mut face = Face::new(pace, batch, is_routed.then(model));
        for (value, event) in (0_u16..).map(f32::from).zip(events) {
            happen(&mut face, event, value);
            prop_assert_eq!(face.driver.session.pending(), face.pending.len());
        }
        let start = face.now;
        settle_down(&mut face);
        // The longest pause between looks, and a stall for each flight that hangs.
        prop_assert!(face.now.0 - start.0 < 60_000.0 + 8.0 * STALL_MS);
        let session = &face.driver.session;
        prop_assert_eq!((session.pending(), session.in_flight()), (0, 0));
        prop_assert_eq!(session.model().is_some(), is_routed);
        let stats = session.stats();
        prop_assert_eq!(stats.calls, stats.settled + stats.rejected);
        // Memory that is kept for the next batch is freed.
        face.pass(2001.0);
        prop_assert!(!face.driver.session.may_trim());
        // The session still answers.
        let values = [(Call::Lerp(3), None), (Call::Write, None), (Call::Read, Some(Engine::Gpu))];
        for (call, engine) in values {
            face.submit(call, engine, 5.0);
        }
        let start = face.now;
        settle_down(&mut face);
        // Memory is kept for the next batch, unless nothing came for long.
        let is_late = face.now.0 - start.0 > 2000.0;
        prop_assert!(face.driver.session.may_trim() || is_late);
    }

    /// A session that ends at any moment answers every call, and does nothing more, whatever
    /// happens afterwards.
    #[test]
    fn nothing_happens_once_it_is_closed(
        events in prop::collection::vec(event(), 1..60),
        later in prop::collection::vec(event(), 1..20),
        is_routed in any::<bool>(),
        (pace, batch) in pace(),
    ) {
        let mut face = Face::new(pace, batch, is_routed.then(model));
        for (value, event) in (0_u16..).map(f32::from).zip(events) {
            happen(&mut face, event, value);
        }
        face.dispose();
        for event in later {
            if !matches!(event, Event::Submit(..) | Event::WarmUp | Event::Calibrate) {
                happen(&mut face, event, 0.0);
            }
        }
        prop_assert_eq!(face.driver.session.pending(), 0);
    }
}
