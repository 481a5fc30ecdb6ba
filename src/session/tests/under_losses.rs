//! A session and the moves of its face, under losses at every moment: while calls are on
//! their way, kernels are compiled, the model is measured, devices are opened and a GPU
//! takes over from the processor. When nothing happens any more, everybody has been
//! answered, nothing is left running, and a GPU is in use.
//!
//! The face here does what `src/wasm` and `src/native` do, and no more often: what they
//! would wait for in vain is waited for in vain here.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::recovery::Remedy;
use super::writing::{Pose, fill, pose, read, write};
use super::*;
use crate::Code;
use crate::device::Compile;
use crate::plan::KINDS;

/// Milliseconds without an answer after which a face takes a GPU for lost.
const STALL_MS: f64 = 10_000.0;

#[derive(Clone, Debug)]
enum Event {
    Submit(Call, Option<Engine>),
    Abort(prop::sample::Index),
    Flush,
    Land(prop::sample::Index, Fate),
    Compile(prop::sample::Index, Fate),
    /// Whoever looks for a device is done.
    Opened(Found),
    /// The model is to be measured, or the next step of that is done.
    Calibrate(Fate),
    /// The platform says that the device is gone.
    Lose,
    Pass(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Lerp(u32),
    Write,
    Read,
}

/// What becomes of something on its way to a device.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Arrives,
    /// There is no memory for it.
    Short,
    /// The device is lost with it.
    Lost,
    /// It never comes.
    Hangs,
}

#[derive(Clone, Copy, Debug)]
enum Found {
    Gpu,
    Nothing,
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
        6 => index().prop_map(Event::Abort),
        15 => Just(Event::Flush),
        25 => (index(), fate()).prop_map(|(which, fate)| Event::Land(which, fate)),
        15 => (index(), fate()).prop_map(|(which, fate)| Event::Compile(which, fate)),
        12 => found.prop_map(Event::Opened),
        4 => fate().prop_map(Event::Calibrate),
        8 => Just(Event::Lose),
        10 => ms.prop_map(Event::Pass),
    ]
}

/// A batch whose pieces land one after the other.
struct Sent {
    batch: BatchId,
    generation: Generation,
    /// And who computes each of them.
    flights: VecDeque<(Flight, Engine)>,
    /// Whether the next of them comes only when its device is destroyed.
    hangs: bool,
}

/// How far the measuring of a model is.
enum Calibrating {
    No,
    /// It waits until nothing is on its way.
    Waits,
    Measures {
        sample: Flight,
        generation: Generation,
        since: Millis,
        hangs: bool,
    },
}

struct Face {
    session: Session<Frail>,
    pose: Pose,
    now: Millis,
    sent: Vec<Sent>,
    /// Kernels that are compiled, and whether that never ends.
    works: Vec<(Generation, Compile, bool)>,
    opening: Option<Remedy>,
    calibrating: Calibrating,
    /// The calls that wait, and the floats that each is to give if that is known.
    pending: BTreeMap<Ticket, Option<Vec<f32>>>,
}

fn gpu() -> Frail {
    Frail::in_pieces(1 << 20, 200).gpu().compiling()
}

fn lost() -> Error {
    Error::DeviceLost("test".into())
}

impl Face {
    fn new(routing: Option<Model>) -> Face {
        let limits = BatchConfig {
            max_batch_size: Some(30),
            max_in_flight: 2,
            ..config()
        };
        let session = Session::new(gpu(), limits).expect("valid settings");
        let routing = routing.map(|model| (model, f64::INFINITY));
        let mut session = session.beside(Frail::new(1 << 20), routing);
        let pose = pose(&mut session);
        Face {
            session,
            pose,
            now: NOW,
            sent: Vec::new(),
            works: Vec::new(),
            opening: None,
            calibrating: Calibrating::No,
            pending: BTreeMap::new(),
        }
    }

    fn submit(&mut self, call: Call, engine: Option<Engine>, value: f32) {
        let Face { session, pose, .. } = self;
        let (accepted, floats) = match call {
            Call::Lerp(rows) => {
                let floats = vec![value + 1.0; rows as usize];
                (ask_of(session, (value, rows), None, engine), Some(floats))
            }
            Call::Write => (
                write(session, *pose, value, (None, engine)),
                Some(Vec::new()),
            ),
            Call::Read => (read(session, *pose, (None, engine)), None),
        };
        match accepted {
            Ok(accepted) => {
                self.pending.insert(accepted.ticket, floats);
            }
            Err(error) => assert!(
                [Code::NoAdapter, Code::InvalidInput].contains(&error.code()),
                "{error}"
            ),
        }
        if self.session.is_ready() {
            self.pump();
        }
    }

    fn abort(&mut self, which: prop::sample::Index) {
        if self.pending.is_empty() {
            return;
        }
        let tickets: Vec<Ticket> = self.pending.keys().copied().collect();
        let ticket = *which.get(&tickets);
        assert!(self.session.abort(ticket));
        self.pending.remove(&ticket);
        if self.session.is_ready() {
            self.pump();
        }
    }

    /// Sends what may go.
    fn pump(&mut self) {
        loop {
            if self.session.take_over(self.now) {
                continue;
            }
            let Some(launch) = self.session.launch(self.now) else {
                break;
            };
            let (batch, generation) = (launch.batch, launch.generation);
            let is_parted = launch.is_parted;
            let flights = flights(&mut self.session, launch).into_iter().enumerate();
            let engine = self.session.info().engine;
            let flights = flights.map(|(at, flight)| match at {
                0 if is_parted => (flight, Engine::Cpu),
                _ => (flight, engine),
            });
            self.sent.push(Sent {
                batch,
                generation,
                flights: flights.collect(),
                hangs: false,
            });
        }
        let generation = self.session.generation();
        let works = self.session.compiles().into_iter();
        self.works
            .extend(works.map(|work| (generation, work, false)));
    }

    /// Whether nothing comes of a device of this life any more: it was destroyed.
    fn is_gone(&self, generation: Generation) -> bool {
        generation != self.session.generation() && !self.session.is_lost()
    }

    fn land(&mut self, index: usize, fate: Fate) {
        let is_gone = self.is_gone(self.sent[index].generation);
        let engine = self.session.info().engine;
        let sent = &mut self.sent[index];
        // What the processor computes always comes.
        let fate = match sent.flights[0].1 {
            Engine::Gpu => fate,
            Engine::Cpu => Fate::Arrives,
        };
        let is_gone = is_gone && sent.flights[0].1 == Engine::Gpu;
        if (sent.hangs || fate == Fate::Hangs) && !is_gone {
            sent.hangs = true;
            return;
        }
        let (flight, _) = sent.flights.pop_front().expect("one more");
        let outcome = pollster::block_on(flight);
        let outcome = match fate {
            _ if is_gone => Err(lost()),
            Fate::Short => Err(Error::OutOfMemory("test".into())),
            Fate::Lost => Err(lost()),
            Fate::Arrives | Fate::Hangs => outcome,
        };
        let own = (sent.batch, sent.generation);
        self.session.note_landing(own, &outcome, self.now);
        if let Some(settlement) = self.session.settle(own.0, own.1, outcome) {
            self.answer(&settlement);
            let next = settlement.next.into_iter();
            let next = next.map(|flight| (flight, engine));
            self.sent[index].flights.extend(next);
        }
        if self.sent[index].flights.is_empty() {
            self.sent.remove(index);
        }
        self.recover();
        self.pump();
    }

    fn answer(&mut self, settlement: &Settlement) {
        for answer in &settlement.answers {
            if settlement.outcome.is_err() {
                assert!(self.pending.remove(&answer.ticket).is_some());
            } else if answer.is_last() {
                let asked = self.pending.remove(&answer.ticket).expect("answered once");
                let whole = answer.is_whole().then(|| floats(settlement, answer));
                if let (Some(asked), Some(floats)) = (asked, whole) {
                    assert_eq!(asked, floats);
                }
            }
        }
    }

    fn compile(&mut self, index: usize, fate: Fate) {
        let (generation, _, hangs) = &mut self.works[index];
        *hangs |= fate == Fate::Hangs;
        let (generation, hangs) = (*generation, *hangs);
        if hangs && !self.is_gone(generation) {
            return;
        }
        let (_, work, _) = self.works.remove(index);
        let mut compiled = pollster::block_on(work);
        if fate == Fate::Lost || self.is_gone(generation) {
            compiled.outcome = Err(lost());
        }
        self.session.compiled(generation, compiled, self.now);
        self.recover();
        self.pump();
    }

    fn lose(&mut self, generation: Generation) {
        self.session.lose(generation);
        self.recover();
    }

    fn recover(&mut self) {
        match self.session.remedy(self.now) {
            None => {}
            Some(Remedy::FallBack) => self.go_on_with(Frail::new(1 << 20)),
            Some(remedy) => assert_eq!(self.opening.replace(remedy), None, "one at a time"),
        }
    }

    fn opened(&mut self, found: Found) {
        let Some(_) = self.opening.take() else {
            return;
        };
        match (found, self.session.is_lost()) {
            (Found::Gpu, true) => return self.go_on_with(gpu()),
            (Found::Nothing, true) => return self.go_on_with(Frail::new(1 << 20)),
            (Found::Gpu, false) => self.session.welcome(gpu(), self.now),
            (Found::Nothing, false) => self.session.missed(self.now),
        }
        self.pump();
    }

    fn go_on_with(&mut self, device: Frail) {
        self.session.replace_device(device, self.now);
        fill(&mut self.session, self.pose);
        assert_eq!(self.session.give_up_unreadable(), []);
        self.pump();
    }

    fn calibrate(&mut self, fate: Fate) {
        match std::mem::replace(&mut self.calibrating, Calibrating::Waits) {
            Calibrating::No => self.session.calibrate(),
            Calibrating::Waits if self.session.in_flight() > 0 => {}
            Calibrating::Waits => {
                self.calibrating = match self.session.next_sample() {
                    Some(sample) => Calibrating::Measures {
                        sample,
                        generation: self.session.generation(),
                        since: self.now,
                        hangs: false,
                    },
                    None => Calibrating::No,
                };
            }
            Calibrating::Measures {
                sample,
                generation,
                since,
                hangs,
            } => {
                let hangs = hangs || fate == Fate::Hangs;
                let is_late = self.now.0 - since.0 > STALL_MS;
                if hangs && !is_late && !self.is_gone(generation) {
                    self.calibrating = Calibrating::Measures {
                        sample,
                        generation,
                        since,
                        hangs,
                    };
                    return;
                }
                if hangs && is_late {
                    self.lose(generation);
                }
                let is_well = fate == Fate::Arrives && pollster::block_on(sample).is_ok();
                let took = if is_well { 1.0 } else { f64::INFINITY };
                self.session.note_sample(took);
            }
        }
    }

    /// Time passes; the face's timers ring.
    fn pass(&mut self, ms: f64) {
        // What the processor has computed lands before any timer rings.
        let is_there = |sent: &Sent| sent.flights[0].1 == Engine::Cpu;
        while let Some(at) = self.sent.iter().position(is_there) {
            self.land(at, Fate::Arrives);
        }
        self.now.0 += ms;
        let oldest = self.session.oldest_in_flight();
        if oldest.is_some_and(|oldest| self.now.0 - oldest.0 > STALL_MS) {
            self.lose(self.session.generation());
        }
        if self
            .session
            .next_look()
            .is_some_and(|moment| moment <= self.now)
        {
            self.recover();
        }
    }

    fn happen(&mut self, event: Event, value: f32) {
        match event {
            Event::Submit(call, engine) => self.submit(call, engine, value),
            Event::Abort(which) => self.abort(which),
            Event::Flush => {
                self.session.flush();
                self.pump();
            }
            Event::Land(which, fate) if !self.sent.is_empty() => {
                self.land(which.index(self.sent.len()), fate);
            }
            Event::Compile(which, fate) if !self.works.is_empty() => {
                self.compile(which.index(self.works.len()), fate);
            }
            Event::Opened(found) => self.opened(found),
            Event::Calibrate(fate) => self.calibrate(fate),
            // A processor is lost to nobody.
            Event::Lose if self.session.info().engine == Engine::Gpu => {
                self.lose(self.session.generation());
            }
            Event::Pass(ms) => self.pass(ms),
            Event::Land(..) | Event::Compile(..) | Event::Lose => {}
        }
    }

    /// Nothing goes wrong from here on: everything on its way comes, and time passes.
    fn settle_down(&mut self) {
        self.session.flush();
        self.pump();
        for _ in 0..20_000 {
            let lands = |sent: &Sent| !sent.hangs || self.is_gone(sent.generation);
            let compiles = |(generation, _, hangs): &(Generation, Compile, bool)| {
                !hangs || self.is_gone(*generation)
            };
            if let Some(at) = self.sent.iter().position(lands) {
                self.land(at, Fate::Arrives);
            } else if let Some(at) = self.works.iter().position(compiles) {
                self.compile(at, Fate::Arrives);
            } else if self.opening.is_some() {
                self.opened(Found::Gpu);
            } else if self.is_settled() {
                return;
            } else {
                // A face looks every 20 ms whether it can measure.
                match self.calibrating {
                    Calibrating::No => self.pass(1000.0),
                    _ => self.pass(20.0),
                }
                if !matches!(self.calibrating, Calibrating::No) {
                    self.calibrate(Fate::Arrives);
                }
            }
        }
        let waiting: Vec<&Ticket> = self.pending.keys().collect();
        panic!(
            "it never settles: calls {waiting:?}, {} batches, {} kernels, {:?}",
            self.sent.len(),
            self.works.len(),
            self.session.recovery
        );
    }

    fn is_settled(&self) -> bool {
        self.pending.is_empty()
            && matches!(self.calibrating, Calibrating::No)
            && self.session.info().engine == Engine::Gpu
            && !self.session.is_lost()
    }
}

proptest! {
    /// Whatever was lost and whenever, everybody is answered once the events stop, and the
    /// GPU is back, with its router and the processor beside it.
    #[test]
    fn everything_settles(
        events in prop::collection::vec(event(), 1..150),
        is_routed in any::<bool>(),
    ) {
        // A row takes the processor two milliseconds, and a flush the GPU ten.
        let mut model = Model([0.0; FACTS.len()]);
        model.0[0] = 10.0;
        model.0[FACTS.len() - KINDS + 1] = 2e6;
        let mut face = Face::new(is_routed.then_some(model));
        for (value, event) in (0_u16..).map(f32::from).zip(events) {
            face.happen(event, value);
            prop_assert_eq!(face.session.pending(), face.pending.len());
            // Nobody else comes to send what could go.
            prop_assert_ne!(face.session.due(face.now), Due::Now);
            prop_assert!(!face.session.is_unheard());
        }
        face.settle_down();
        let session = &face.session;
        prop_assert_eq!((session.pending(), session.in_flight(), loads(session)), (0, 0, 1));
        prop_assert!(session.beside.is_some() && session.router.is_some() == is_routed);
        let stats = session.stats();
        prop_assert_eq!(stats.calls, stats.settled + stats.rejected);
        // And it works.
        let mut face = face;
        let values = [(Call::Lerp(3), None), (Call::Write, None), (Call::Read, Some(Engine::Gpu))];
        for (call, engine) in values {
            face.submit(call, engine, 5.0);
        }
        prop_assert_eq!(face.pending.len(), 3);
        face.settle_down();
    }
}
