//! Calls that write tensors under random events: losses, shortages of memory, refused buffers and
//! cancellations at every point, with several batches and chunks in flight.
//!
//! Steps add to what a tensor holds, so that a step that ran twice, or not at all, shows in every
//! later read. `PROPTEST_CASES` is how many orders are tried.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::graph::chain::{Chain, Home, Store, StoreExtent};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, NodeId};
use crate::tensor::DType;

/// Tensors that calls write.
const STATES: usize = 3;

/// Elements of a tensor: as many bytes as a small chunk.
const ELEMENTS: u32 = 64;

/// What a call does with tensors, by their numbers.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// Adds one to a tensor.
    Step(usize),
    /// Adds one to a tensor, by a tensor in a buffer of the program's.
    StepByImport(usize),
    /// Writes a tensor whole, without reading it.
    Copy {
        from: usize,
        to: usize,
    },
    Read(usize),
    /// Names no tensor.
    Lerp,
}

/// What goes wrong with a chunk that is launched.
#[derive(Clone, Debug)]
enum Fault {
    /// The chunk is not submitted.
    AtLaunch(Error),
    /// The chunk is submitted and never computed, as its flight tells.
    InFlight(Error),
}

#[derive(Clone, Debug)]
enum Event {
    Ask(Call),
    Abort(prop::sample::Index),
    Flush,
    Launch,
    /// Some chunks from now on, something goes wrong with one.
    Plan {
        spared: usize,
        fault: Fault,
    },
    /// The next flight lands, well or with an error although the chunk was computed.
    Land(Option<Error>),
    /// The program destroys its buffer, or makes it again.
    Import {
        is_usable: bool,
    },
    Lose,
    Replace,
}

/// Whether anything fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum World {
    Failing,
    Sound,
}

/// What there is beside the GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Beside {
    Nothing,
    Cpu,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Read(f32),
    Written,
    Refused(Code),
    Aborted { in_flight: bool },
}

fn error() -> impl Strategy<Value = Error> {
    prop_oneof![
        3 => Just(Error::OutOfMemory("planned".into())),
        1 => Just(Error::Fatal("planned".into())),
        1 => Just(Error::DeviceLost("planned".into())),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let state = || 0..STATES;
    prop_oneof![
        4 => state().prop_map(Call::Step),
        1 => state().prop_map(Call::StepByImport),
        2 => (state(), 1..STATES).prop_map(|(from, by)| Call::Copy { from, to: (from + by) % STATES }),
        5 => state().prop_map(Call::Read),
        1 => Just(Call::Lerp),
    ]
}

fn events(world: World) -> impl Strategy<Value = Vec<Event>> {
    let fails = world == World::Failing;
    let often = if fails { 0.2 } else { f64::MIN_POSITIVE };
    let fault = prop_oneof![
        error().prop_map(Fault::AtLaunch),
        error().prop_map(Fault::InFlight)
    ];
    let plan = (0..4_usize, fault).prop_map(move |(spared, fault)| match fails {
        true => Event::Plan { spared, fault },
        false => Event::Flush,
    });
    let land = prop::option::weighted(often, error());
    let usable = prop::bool::weighted(0.7).prop_map(move |is| is || !fails);
    let event = prop_oneof![
        50 => call().prop_map(Event::Ask),
        4 => any::<prop::sample::Index>().prop_map(Event::Abort),
        8 => Just(Event::Flush),
        20 => Just(Event::Launch),
        4 => plan,
        20 => land.prop_map(Event::Land),
        2 => usable.prop_map(|is_usable| Event::Import { is_usable }),
        2 => Just(if fails { Event::Lose } else { Event::Flush }),
        2 => Just(if fails { Event::Replace } else { Event::Flush }),
    ];
    prop::collection::vec(event, 1..120)
}

/// A session, and what was asked of it.
struct Run {
    session: Session<Frail>,
    device: fn() -> Frail,
    states: [u32; STATES],
    ones: u32,
    import: u32,
    asked: BTreeMap<Ticket, Call>,
    fates: BTreeMap<Ticket, Fate>,
    /// Results that have come in part.
    begun: BTreeMap<Ticket, Vec<f32>>,
    flying: VecDeque<(BatchId, Generation, Vec<Flight>)>,
}

/// What a tensor holds at first.
fn initial(state: usize) -> f32 {
    [100.0, 200.0, 300.0][state]
}

fn words(value: f32) -> [u32; ELEMENTS as usize] {
    [value.to_bits(); ELEMENTS as usize]
}

impl Run {
    fn new(device: fn() -> Frail, beside: Beside) -> Run {
        let config = BatchConfig {
            max_in_flight: 3,
            max_batch_size: Some(8),
            ..config()
        };
        let mut session = Session::new(device(), config).expect("valid settings");
        if beside == Beside::Cpu {
            session = session.with_companion(Frail::new(1 << 20), None);
        }
        let states = std::array::from_fn(|_| session.hold());
        let [ones, import] = std::array::from_fn(|_| session.hold());
        let mut run = Run {
            session,
            device,
            states,
            ones,
            import,
            asked: BTreeMap::new(),
            fates: BTreeMap::new(),
            begun: BTreeMap::new(),
            flying: VecDeque::new(),
        };
        run.fill();
        run
    }

    /// Fills the tensors from the program's data.
    fn fill(&mut self) {
        for (number, tensor) in self.states.into_iter().enumerate() {
            let filled = self.session.fill(tensor, &words(initial(number)));
            filled.expect("held");
        }
        self.session.fill(self.ones, &words(1.0)).expect("held");
        let import = self.import;
        let placed = self.session.place_with(import, None, |device| {
            device.fill(import, &words(1.0), None)
        });
        placed.expect("held");
    }

    fn ask(&mut self, call: Call) {
        let ticket = match call {
            Call::Lerp => put(&mut self.session, 1.0, 3),
            Call::Read(from) => self.submit(&[self.states[from]], |_, x| (x[0], None)),
            Call::Step(state) => self.step(state, self.ones),
            Call::StepByImport(state) => self.step(state, self.import),
            Call::Copy { from, to } => {
                let tensors = [self.states[from], self.states[to]];
                self.submit(&tensors, |_, x| (x[0], Some(x[1])))
            }
        };
        self.asked.insert(ticket, call);
    }

    fn step(&mut self, state: usize, one: u32) -> Ticket {
        self.submit(&[self.states[state], one], |chain, x| {
            let sum = chain.binary(BinaryFn::Add, x[0], x[1]);
            (sum.expect("equal shapes"), Some(x[0]))
        })
    }

    fn submit(&mut self, tensors: &[u32], record: Recording) -> Ticket {
        let mut chain = Chain::default();
        let shape = Shape::new(&[ELEMENTS]).expect("a small shape");
        let inputs = tensors.iter().map(|_| {
            let input = chain.input(shape, DType::F32, Home::Resident);
            input.expect("room")
        });
        let inputs: Vec<NodeId> = inputs.collect();
        let (value, target) = record(&mut chain, &inputs);
        match target {
            None => chain.output(value),
            Some(target) => chain.store(
                value,
                Store {
                    target,
                    extent: StoreExtent::Whole,
                },
            ),
        }
        .expect("a good chain");
        let recipe = self.session.recipe(chain);
        let room = self.session.room(8).expect("room");
        room[..tensors.len()].copy_from_slice(tensors);
        super::submit(&mut self.session, recipe, 0).ticket
    }

    /// The calls that wait for an answer.
    fn pending(&self) -> Vec<Ticket> {
        let asked = self.asked.keys();
        asked
            .filter(|ticket| !self.fates.contains_key(ticket))
            .copied()
            .collect()
    }

    fn tell(&mut self, ticket: Ticket, fate: Fate) {
        let before = self.fates.insert(ticket, fate);
        assert!(
            before.is_none(),
            "{ticket:?} was answered twice: {before:?}, {fate:?}"
        );
    }

    /// Takes answers without flights.
    fn hear(&mut self) {
        for (ticket, outcome) in told(&mut self.session) {
            let fate = outcome.map_or_else(Fate::Refused, |()| Fate::Written);
            self.tell(ticket, fate);
        }
        assert_eq!(self.session.pending(), self.pending().len());
    }

    fn abort(&mut self, which: prop::sample::Index) {
        let pending = self.pending();
        if pending.is_empty() {
            return;
        }
        let ticket = *which.get(&pending);
        let mut flying = self.session.queue.in_flight().iter();
        let in_flight = flying.any(|flying| tickets(&flying.batch).contains(&ticket));
        assert!(self.session.abort(ticket));
        self.tell(ticket, Fate::Aborted { in_flight });
    }

    fn launch(&mut self) -> bool {
        let sent = self.session.launch(NOW);
        let is_sent = sent.is_some();
        if let Some(sent) = sent {
            let own = (sent.batch, sent.generation);
            let flights = flights(&mut self.session, sent);
            self.flying.push_back((own.0, own.1, flights));
        }
        is_sent
    }

    /// Lands the next flight: devices answer in the order of submission.
    fn land(&mut self, error: Option<Error>) {
        let Some((batch, generation, flights)) = self.flying.front_mut() else {
            return;
        };
        let (batch, generation) = (*batch, *generation);
        if flights.is_empty() {
            self.flying.pop_front();
            return;
        }
        let outcome = pollster::block_on(flights.remove(0));
        // What was not submitted fails for its own reason.
        let outcome = outcome.and_then(|results| error.map_or(Ok(results), Err));
        let Some(settlement) = self.session.settle(batch, generation, outcome) else {
            return;
        };
        for answer in &settlement.answers {
            let fate = match &settlement.outcome {
                Ok(_) if answer.total == 0 => Fate::Written,
                Ok(_) => {
                    let begun = self.begun.entry(answer.ticket).or_default();
                    begun.truncate(answer.at as usize); // Sent again, the result begins anew.
                    begun.extend(floats(&settlement, answer));
                    if !answer.is_last() {
                        continue;
                    }
                    let first = begun[0];
                    assert!(
                        begun.iter().all(|x| *x == first),
                        "of two moments: {begun:?}"
                    );
                    Fate::Read(first)
                }
                Err(error) => Fate::Refused(error.code()),
            };
            self.tell(answer.ticket, fate);
        }
        let (.., flights) = self.flying.front_mut().expect("in flight");
        flights.extend(settlement.next);
    }

    fn replace(&mut self) {
        self.session.replace_device((self.device)(), NOW);
        self.fill();
        assert_eq!(self.session.give_up_unreadable(), []);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Ask(call) => self.ask(call),
            Event::Abort(which) => self.abort(which),
            Event::Flush => self.session.flush(),
            Event::Launch => {
                self.launch();
            }
            Event::Plan { spared, fault } => {
                let device = self.session.devices.primary_mut();
                device.spared = spared;
                match fault {
                    Fault::AtLaunch(error) => device.fault = Some(error),
                    Fault::InFlight(error) => device.late_fault = Some(error),
                }
            }
            Event::Land(error) => self.land(error),
            Event::Import { is_usable } => {
                let unusable = if is_usable { vec![] } else { vec![self.import] };
                self.session.devices.primary_mut().unusable = unusable;
            }
            Event::Lose => self.session.lose(self.session.generation()),
            Event::Replace => self.replace(),
        }
        self.hear();
    }

    /// Makes a face's moves until all is answered.
    fn finish(&mut self) {
        self.session.flush();
        for _ in 0..2000 {
            if self.session.is_lost() {
                self.replace();
            }
            while self.launch() {}
            self.hear();
            if self.pending().is_empty() && self.flying.is_empty() {
                return;
            }
            self.land(None);
            self.hear();
        }
        panic!("{:?} are never answered", self.pending());
    }

    /// Checks that all calls that read found what the calls before them wrote, each once.
    fn check(&self) {
        // What each tensor holds; nothing where nobody can know.
        let mut held: [Option<f32>; STATES] = std::array::from_fn(|state| Some(initial(state)));
        for (ticket, call) in &self.asked {
            let fate = self.fates[ticket];
            let write = match *call {
                Call::Step(state) | Call::StepByImport(state) => {
                    Some((state, held[state].map(|value| value + 1.0)))
                }
                Call::Copy { from, to } => Some((to, held[from])),
                Call::Read(_) | Call::Lerp => None,
            };
            match (fate, *call, write) {
                (Fate::Read(found), Call::Read(state), _) => {
                    if let Some(expected) = held[state] {
                        assert_eq!(found, expected, "{ticket:?} {call:?} {:#?}", self.fates);
                    }
                }
                (Fate::Read(_), call, _) => assert!(matches!(call, Call::Lerp)),
                (Fate::Written, _, Some((state, value))) => held[state] = value,
                // Part of a batch in flight, the call may be computed all the same.
                (Fate::Aborted { in_flight: true }, _, Some((state, _))) => held[state] = None,
                (Fate::Aborted { .. } | Fate::Refused(_), ..) => {}
                (Fate::Written, call, None) => panic!("{call:?} writes nothing"),
            }
        }
        let stats = self.session.stats();
        assert_eq!(stats.calls, stats.settled + stats.rejected);
        assert_eq!(loads(&self.session), 1);
    }
}

/// What a call computes of its tensors, and the one that the call writes.
type Recording = fn(&mut Chain, &[NodeId]) -> (NodeId, Option<NodeId>);

/// GPUs that take calls together, one by one, and few bytes at a time.
const DEVICES: [fn() -> Frail; 3] = [
    || Frail::new(1 << 20).gpu(),
    || Frail::in_chunks(1 << 20, 128).gpu(),
    || Frail::in_chunks(1 << 20, 512).gpu(),
];

proptest! {
    /// Whatever fails and whenever, no write runs twice, no call reads what a later call writes
    /// or what is lost, and all are answered.
    #[test]
    fn every_write_runs_once(
        events in events(World::Failing),
        device in prop::sample::select(&DEVICES[..]),
        beside in prop_oneof![Just(Beside::Nothing), Just(Beside::Cpu)],
    ) {
        let mut run = Run::new(device, beside);
        for event in events {
            run.happen(event);
        }
        run.finish();
        run.check();
    }

    /// Where nothing fails, nothing is refused.
    #[test]
    fn nothing_is_refused_without_a_failure(
        events in events(World::Sound),
        device in prop::sample::select(&DEVICES[..]),
        beside in prop_oneof![Just(Beside::Nothing), Just(Beside::Cpu)],
    ) {
        let mut run = Run::new(device, beside);
        for event in events {
            run.happen(event);
        }
        run.finish();
        run.check();
        let refused = |fate: &Fate| matches!(fate, Fate::Refused(_));
        prop_assert!(!run.fates.values().any(refused));
    }
}
