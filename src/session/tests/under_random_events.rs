//! The session against a model: submit, abort, seal, launch, land, fail, lose
//! the device, replace it and dispose in any order.
//!
//! `PROPTEST_CASES` is how many orders are tried.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fences::Fences;
use super::*;
use crate::Code;
use crate::batch::{Capacity, Overflow};

#[derive(Clone, Debug)]
enum Event {
    Submit {
        rows: u32,
        key: Option<u32>,
        engine: Option<Engine>,
    },
    Abort(prop::sample::Index),
    Seal,
    Launch,
    Land {
        which: prop::sample::Index,
        fate: Fate,
    },
    /// The platform says that the device is gone.
    Lose,
    Replace,
    Dispose,
}

/// What becomes of a batch in flight.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Fails,
    /// There is no memory for the batch.
    Short,
    /// The device is lost with the batch.
    Lost,
}

fn event() -> impl Strategy<Value = Event> {
    let key = prop::option::of(0..3_u32);
    let engine = prop::option::of(prop_oneof![Just(Engine::Gpu), Just(Engine::Cpu)]);
    prop_oneof![
        60 => (1..12_u32, key, engine).prop_map(|(rows, key, engine)| Event::Submit { rows, key, engine }),
        10 => any::<prop::sample::Index>().prop_map(Event::Abort),
        10 => Just(Event::Seal),
        20 => Just(Event::Launch),
        20 => (any::<prop::sample::Index>(), fate()).prop_map(|(which, fate)| Event::Land { which, fate }),
        5 => Just(Event::Lose),
        10 => Just(Event::Replace),
        1 => Just(Event::Dispose),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![7 => Just(Fate::Arrives), 2 => Just(Fate::Fails), 2 => Just(Fate::Short), 2 => Just(Fate::Lost)]
}

/// The model: what was asked and not yet answered, and the counts that follow.
#[derive(Default)]
struct Model {
    pending: BTreeMap<Ticket, Vec<f32>>,
    /// Results that have come in part.
    begun: BTreeMap<Ticket, Vec<f32>>,
    calls: u64,
    settled: u64,
    rejected: u64,
}

impl Model {
    fn take(&mut self, settlement: &Settlement) -> Result<(), TestCaseError> {
        let tickets = settlement.answers.iter().map(|answer| answer.ticket);
        prop_assert!(tickets.is_sorted(), "in the order of submission");
        for answer in &settlement.answers {
            let ticket = answer.ticket;
            if settlement.outcome.is_err() {
                prop_assert!(self.pending.remove(&ticket).is_some(), "settled twice");
                self.rejected += 1;
                continue;
            }
            let begun = self.begun.entry(ticket).or_default();
            begun.truncate(answer.at as usize); // Sent again, the result begins anew.
            prop_assert_eq!(begun.len(), answer.at as usize, "parts come in order");
            begun.extend(floats(settlement, answer));
            if answer.is_last() {
                let floats = self.begun.remove(&ticket);
                prop_assert_eq!(self.pending.remove(&ticket), floats);
                self.settled += 1;
            }
        }
        Ok(())
    }

    /// Forgets everything pending, which was given up.
    fn give_up(&mut self, mut tickets: Vec<Ticket>) -> Result<(), TestCaseError> {
        tickets.sort_unstable();
        let pending = std::mem::take(&mut self.pending);
        prop_assert_eq!(&tickets, &pending.into_keys().collect::<Vec<_>>());
        self.rejected += tickets.len() as u64;
        Ok(())
    }
}

/// The devices of a session.
#[derive(Clone, Copy, Debug)]
enum Devices {
    /// One device.
    One,
    /// A GPU, and a CPU for the calls that ask for it.
    Asked,
    /// A GPU and a CPU, each for what it answers sooner.
    Routed,
}

impl Devices {
    fn session(self, device: Frail, limits: BatchConfig) -> Session<Frail> {
        let beside = Frail::new(1 << 20);
        // A row takes the CPU two milliseconds, and a flush the GPU forty.
        let mut model = cost_model::Model([0.0; FACTS.len()]);
        model.0[0] = 40.0;
        model.0[FACTS.len() - crate::plan::KINDS + 1] = 2e6;
        let routing = match self {
            Devices::One => return Session::new(device, limits).expect("valid settings"),
            Devices::Asked => None,
            Devices::Routed => Some(model.into()),
        };
        let session = Session::new(device.gpu(), limits).expect("valid settings");
        session.with_companion(beside, routing)
    }
}

proptest! {
    /// Whatever happens in whatever order, each call is answered once and with
    /// what was asked.
    #[test]
    fn every_call_gets_its_own_answer_once(
        events in prop::collection::vec(event(), 1..120),
        target in prop_oneof![Just(u64::MAX), 16..200_u64],
        devices in prop_oneof![Just(Devices::One), Just(Devices::Asked), Just(Devices::Routed)],
    ) {
        let is_one = matches!(devices, Devices::One);
        let device = || match Frail::in_chunks(1200, target) {
            device if is_one => device,
            device => device.gpu(),
        };
        let limits = BatchConfig {
            overflow: Overflow::Latest,
            queue_capacity: Capacity { calls: 12, bytes: 4096 },
            max_batch_size: Some(12),
            ..config()
        };
        let mut session = devices.session(device(), limits);
        let mut model = Model::default();
        let mut flying = Vec::new();
        // Flights before this one were disposed of.
        let (mut launches, mut disposed) = (0, 0);
        let mut peak = loads(&session);
        let (mut fences, mut newest) = (Fences::default(), None);
        for (value, event) in (0_u16..).map(f32::from).zip(events) {
            match event {
                Event::Submit { rows, key, engine } => match ask_of(
                    &mut session,
                    (value, rows),
                    key,
                    engine.filter(|_| !is_one),
                ) {
                    Ok(accepted) => {
                        model.calls += 1;
                        newest = Some(accepted.ticket);
                        model.pending.insert(accepted.ticket, vec![value + 1.0; rows as usize]);
                        if let Some(older) = accepted.superseded {
                            prop_assert!(model.pending.remove(&older).is_some());
                            model.rejected += 1;
                        }
                    }
                    Err(error) => prop_assert_eq!(error.code(), Code::QueueFull),
                },
                Event::Abort(which) if !model.pending.is_empty() => {
                    let tickets: Vec<Ticket> = model.pending.keys().copied().collect();
                    let ticket = *which.get(&tickets);
                    prop_assert!(session.abort(ticket));
                    model.pending.remove(&ticket);
                    model.rejected += 1;
                }
                Event::Seal => session.flush(),
                Event::Launch => {
                    if let Some(launch) = session.launch(NOW) {
                        let own = (launch.batch, launch.generation);
                        let flights = flights(&mut session, launch);
                        if !flights.is_empty() {
                            flying.push((launches, own, flights));
                        }
                        launches += 1;
                    }
                }
                Event::Land { which, fate } if !flying.is_empty() => {
                    // A batch's chunks land in order.
                    let index = which.index(flying.len());
                    let (number, (batch, generation), flights) = &mut flying[index];
                    let (number, batch, generation) = (*number, *batch, *generation);
                    let outcome = pollster::block_on(flights.remove(0));
                    if flights.is_empty() {
                        flying.remove(index);
                    }
                    let outcome = match fate {
                        Fate::Arrives => outcome,
                        Fate::Fails => Err(Error::Fatal("test".into())),
                        Fate::Short => Err(Error::OutOfMemory("test".into())),
                        Fate::Lost => Err(Error::DeviceLost("test".into())),
                    };
                    let mine = session.place_in_flight(batch, generation);
                    let is_short = mine.is_some_and(|at| session.queue.in_flight()[at].way.retry.is_some());
                    let goes_again = !is_one && matches!(fate, Fate::Short) || is_short;
                    match session.settle(batch, generation, outcome) {
                        Some(settlement) => model.take(&settlement)?,
                        // The batch is sent again later, was sent on another device
                        // already, or given up.
                        None => prop_assert!(
                            number < disposed
                                || goes_again
                                || session.is_lost()
                                || generation != session.generation()
                        ),
                    }
                }
                Event::Replace => {
                    session.replace_device(device(), NOW);
                    prop_assert!(!session.is_lost() && session.arenas.spare().is_empty());
                    peak = loads(&session);
                }
                Event::Lose => {
                    session.lose(session.generation());
                    prop_assert!(session.is_lost());
                    prop_assert!(!is_one || session.launch(NOW).is_none());
                }
                Event::Dispose => {
                    model.give_up(session.dispose())?;
                    disposed = launches;
                    prop_assert_eq!(session.queue.pending_bytes(), 0);
                    peak = loads(&session);
                    prop_assert_eq!(open(&session).payload.arena.capacity(), 0);
                }
                Event::Abort(_) | Event::Land { .. } => {}
            }
            fences.put(&session, newest);
            fences.check(&session);
            peak = peak.max(loads(&session));
            assert_held(&session, peak);
            prop_assert_eq!(session.pending(), model.pending.len());
            let stats = session.stats();
            let counts = (stats.calls, stats.settled, stats.rejected, stats.pending);
            let pending = model.pending.len() as u64;
            prop_assert_eq!(counts, (model.calls, model.settled, model.rejected, pending));
        }
        model.give_up(session.dispose())?;
        prop_assert_eq!((session.pending(), session.queue.pending_bytes()), (0, 0));
        fences.assert_passed(&session);
    }
}
