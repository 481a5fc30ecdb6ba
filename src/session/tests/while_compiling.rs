//! Calls whose kernels are still being compiled: by example, and in any order of
//! calls, compilations, failures and losses.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::Code;
use crate::batch::{Capacity, Overflow};
use crate::device::Compile;

/// Kernels that calls are of: each gives `value + 1`.
const OPS: usize = 3;

fn compiling() -> Session<Frail> {
    let config = BatchConfig {
        max_in_flight: 2,
        ..config()
    };
    Session::new(Frail::new(1 << 20).compiling(), config).expect("valid settings")
}

/// The structure of a call of `op`, and its operands of `rows` floats each.
fn structure(session: &mut Session<Frail>, op: usize) -> (RecipeId, usize) {
    let (graph, operands) = match op {
        0 => (ops::lerp(1, Timing::Call), 2),
        1 => (ops::bezier(1, Timing::Call), 4),
        _ => (ops::lerp(1, Timing::Call), 2),
    };
    let graph = graph.expect("a graph");
    if op < 2 {
        return (session.recipe(&graph).expect("a recipe"), operands);
    }
    let shape = crate::graph::shape::Shape::new(&[4]).expect("a small shape");
    let mut chain = crate::graph::chain::Chain::default();
    let home = crate::graph::chain::Home::Call;
    let mut input = || chain.input(shape, crate::tensor::DType::F32, home);
    let (x, y) = (input().expect("room"), input().expect("room"));
    let sum = chain.binary(crate::graph::BinaryFn::Maximum, x, y);
    let least = chain.unary(crate::graph::UnaryFn::Relu, sum.expect("they broadcast"));
    chain.output(least.expect("one tensor")).expect("a node");
    (session.chain(chain), operands)
}

/// Calls `op` on four floats.
fn call(session: &mut Session<Frail>, op: usize, value: f32, key: Option<u32>) -> Option<Accepted> {
    let (recipe, operands) = structure(session, op);
    let room: &mut [f32] = bytemuck::cast_slice_mut(session.room(16).expect("room"));
    for operand in 0..operands {
        let spread = match (op, operand) {
            (0, 0) => 0.0,
            (0, _) => 2.0,
            (1, _) => 1.0,
            (_, 0) => -1.0,
            (_, _) => 1.0,
        };
        room[operand * 4..operand * 4 + 4].fill(value + spread);
    }
    let submission = Submission {
        recipe,
        rows: if op < 2 { 4 } else { 0 },
        scalar: if op < 2 { 0.5_f32.to_bits() } else { 0 },
        key,
    };
    session.submit(&submission, NOW).ok()
}

fn made(session: &mut Session<Frail>, op: usize, value: f32) -> Ticket {
    call(session, op, value, None).expect("taken").ticket
}

/// Ends the next compilation.
fn compile(session: &mut Session<Frail>, works: &mut Vec<Compile>, failed: Option<Error>) {
    works.extend(session.compiles());
    let mut compiled = pollster::block_on(works.remove(0));
    if let Some(error) = failed {
        compiled.outcome = Err(error);
    }
    session.compiled(session.generation(), compiled, NOW);
}

#[test]
fn what_is_ready_goes_and_the_rest_when_it_is() {
    let (mut session, mut works) = (compiling(), Vec::new());
    // Nothing is ready: nothing goes, and each kernel is compiled once.
    let first = [0, 1, 0].map(|op| made(&mut session, op, 1.0));
    session.flush();
    assert!(session.launch(NOW).is_none());
    works.extend(session.compiles());
    assert_eq!(works.len(), 2, "lerp and bezier");
    assert_eq!((session.in_flight(), session.pending()), (0, 3));

    compile(&mut session, &mut works, None);
    assert_eq!(session.due(NOW), Due::Now);
    let sent = session.launch(NOW).expect("lerp is ready");
    assert!(session.launch(NOW).is_none(), "bezier is not");
    let later = [1, 0].map(|op| made(&mut session, op, 5.0));
    let settlement = land(&mut session, sent);
    let two = |value: f32| vec![value + 1.0; 4];
    assert_eq!(
        values(&settlement),
        [(first[0], two(1.0)), (first[2], two(1.0))]
    );

    // Nothing waits for bezier that needs none of it.
    session.flush();
    let sent = session.launch(NOW).expect("lerp is ready");
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(later[1], two(5.0))]);
    assert!(
        session.compiles().is_empty(),
        "both wait for one compilation"
    );

    compile(&mut session, &mut works, None);
    for (ticket, value) in [(first[1], 1.0), (later[0], 5.0)] {
        let sent = session.launch(NOW).expect("bezier is ready");
        let settlement = land(&mut session, sent);
        assert_eq!(values(&settlement), [(ticket, two(value))], "in order");
    }
    assert_eq!((session.pending(), loads(&session)), (0, 1));
    // Divided or not, those were two batches.
    assert_eq!(session.stats().batches, 2);
}

#[test]
fn a_kernel_that_does_not_compile_fails_its_own_calls() {
    let (mut session, mut works) = (compiling(), Vec::new());
    let [good, bad, other] = [0, 1, 2].map(|op| made(&mut session, op, 1.0));
    session.flush();
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, None);
    compile(&mut session, &mut works, Some(Error::Shader("no".into())));
    compile(&mut session, &mut works, None);
    let mut answers = BTreeMap::new();
    while let Some(sent) = session.launch(NOW) {
        let settlement = land(&mut session, sent);
        let code = settlement.outcome.as_ref().err().map(Error::code);
        answers.extend(
            settlement
                .answers
                .iter()
                .map(|answer| (answer.ticket, code)),
        );
    }
    let shader = Some(Code::Shader);
    assert_eq!(
        answers,
        BTreeMap::from([(good, None), (bad, shader), (other, None)])
    );
    // It is tried anew for the next call.
    made(&mut session, 1, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, None);
    let sent = session.launch(NOW).expect("it compiles now");
    assert!(land(&mut session, sent).outcome.is_ok());
}

#[test]
fn what_brings_devices_down_while_it_compiles_is_refused() {
    let mut session = compiling();
    let ticket = made(&mut session, 1, 1.0);
    session.flush();
    for _ in 1..ATTEMPTS {
        assert!(session.launch(NOW).is_none(), "it compiles first");
        assert_eq!(session.compiles().len(), 1);
        session.lose(session.generation());
        session.replace_device(Frail::new(1 << 20).compiling());
    }
    session.device.fault = Some(Error::DeviceLost("test".into()));
    let sent = session.launch(NOW).expect("whatever comes");
    let settlement = land(&mut session, sent);
    assert_eq!(settlement.answers[0].ticket, ticket);
    assert_eq!(settlement.outcome.unwrap_err().code(), Code::DeviceLost);
    assert_eq!(session.pending(), 0);
}

#[test]
fn a_warm_up_is_answered_when_its_kernels_are_compiled() {
    let (mut session, mut works) = (compiling(), Vec::new());
    session.begin_explain();
    for op in [0, 1, 0] {
        made(&mut session, op, 1.0);
    }
    let kernels = session.end_kernels();
    let ticket = session.warm_up(kernels);
    assert_eq!(session.due(NOW), Due::Now, "somebody is to begin");
    assert!(session.warmed().is_none() && session.launch(NOW).is_none());
    assert_eq!(session.due(NOW), Due::Idle);
    compile(&mut session, &mut works, None);
    assert!(session.warmed().is_none(), "bezier is not ready");

    // The next device begins anew.
    session.lose(session.generation());
    assert!(session.warmed().is_none());
    session.replace_device(Frail::new(1 << 20).compiling());
    works.clear();
    assert!(session.warmed().is_none());
    works.extend(session.compiles());
    assert_eq!(works.len(), 2);
    // Calls wait for the same compilations.
    let lerp = made(&mut session, 0, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none() && session.compiles().is_empty());
    compile(&mut session, &mut works, None);
    compile(&mut session, &mut works, Some(Error::Shader("no".into())));
    let (answered, outcome) = session.warmed().expect("it is over");
    assert_eq!(
        (answered, outcome.unwrap_err().code()),
        (ticket, Code::Shader)
    );
    assert!(session.warmed().is_none(), "answered once");
    let sent = session.launch(NOW).expect("lerp is ready");
    assert_eq!(land(&mut session, sent).answers[0].ticket, lerp);
    // It counts nowhere, and ends with the session.
    let stats = session.stats();
    assert_eq!((stats.calls, stats.settled, stats.rejected), (1, 1, 0));
    let last = session.warm_up(Kernels::default());
    assert_eq!(session.dispose(), [last]);
    assert_eq!(session.stats().rejected, 0);
}

#[derive(Clone, Debug)]
enum Event {
    Submit { op: usize, key: Option<u32> },
    Abort(prop::sample::Index),
    Flush,
    Launch,
    Land(prop::sample::Index, Option<Error>),
    Compile(prop::sample::Index, Option<Error>),
    Replace,
}

fn event() -> impl Strategy<Value = Event> {
    let any = any::<prop::sample::Index>;
    let lost = Error::DeviceLost("test".into());
    let broken = Error::Shader("test".into());
    let land = prop_oneof![5 => Just(None), 1 => Just(Some(lost.clone()))];
    let compile = prop_oneof![8 => Just(None), 1 => Just(Some(lost)), 1 => Just(Some(broken))];
    let key = prop::option::of(0..3_u32);
    prop_oneof![
        40 => (0..OPS, key).prop_map(|(op, key)| Event::Submit { op, key }),
        8 => any().prop_map(Event::Abort),
        10 => Just(Event::Flush),
        30 => Just(Event::Launch),
        20 => (any(), land).prop_map(|(which, fate)| Event::Land(which, fate)),
        12 => (any(), compile).prop_map(|(which, fate)| Event::Compile(which, fate)),
        3 => Just(Event::Replace),
    ]
}

/// A session with a compiler, and what is asked of it.
struct Run {
    session: Session<Frail>,
    pending: BTreeMap<Ticket, (usize, f32)>,
    flying: Vec<Launch>,
    works: Vec<(Generation, Compile)>,
    /// The newest call of each op that was sent in this life of the device.
    newest: [Option<Ticket>; OPS],
    peak: usize,
}

impl Run {
    fn launch(&mut self) -> bool {
        let sent = self.session.launch(NOW);
        let generation = self.session.generation();
        let works = self.session.compiles().into_iter();
        self.works.extend(works.map(|work| (generation, work)));
        let Some(sent) = sent else {
            self.assert_nothing_could_go();
            return false;
        };
        let load = &self.session.in_flight.last().expect("just sent").load;
        // One that may lose the device waits for nothing, also not for its turn.
        let keeps_order = load.losses + 1 < ATTEMPTS;
        for ticket in load.tickets.iter().filter(|_| keeps_order) {
            let newest = &mut self.newest[self.pending[ticket].0];
            assert!(*newest < Some(*ticket), "an op's calls keep their order");
            *newest = Some(*ticket);
        }
        self.flying.push(sent);
        true
    }

    /// Unless too many are on their way, what waits aside waits for a kernel.
    fn assert_nothing_could_go(&mut self) {
        if !self.session.batcher.may_fly() || self.session.is_lost() {
            return;
        }
        let aside = self.session.batcher.aside();
        let sealed = &self.session.sealed;
        for load in sealed.iter().filter(|load| aside.contains(&load.id)) {
            for call in &load.calls {
                let recipe = &self.session.structures.recipes()[call.recipe.0 as usize];
                let fates = recipe
                    .kernels()
                    .map(|kernel| self.session.device.fate(kernel));
                assert!(fates.into_iter().any(|fate| fate == Some(Fate::Compiling)));
            }
        }
    }

    fn land(&mut self, index: usize, fate: Option<Error>) {
        let sent = self.flying.remove(index);
        let (batch, generation) = (sent.batch, sent.generation);
        let outcome = pollster::block_on(flight(sent));
        let outcome = fate.map_or(outcome, Err);
        let Some(settlement) = self.session.settle(batch, generation, outcome) else {
            assert!(self.session.is_lost() || generation != self.session.generation());
            return;
        };
        match &settlement.outcome {
            Ok(_) => {
                for (ticket, floats) in values(&settlement) {
                    let (_, value) = self.pending.remove(&ticket).expect("settled once");
                    assert_eq!(floats, [value + 1.0; 4]);
                }
            }
            Err(error) => {
                let ops = settlement.answers.iter().map(|answer| {
                    let known = self.pending.remove(&answer.ticket);
                    known.expect("settled once").0
                });
                let ops: Vec<usize> = ops.collect();
                if error.code() == Code::Shader {
                    assert!(
                        ops.windows(2).all(|two| two[0] == two[1]),
                        "one kernel's calls"
                    );
                }
            }
        }
    }

    fn compile(&mut self, index: usize, fate: Option<Error>) {
        let (generation, work) = self.works.remove(index);
        let mut compiled = pollster::block_on(work);
        if let Some(error) = fate {
            compiled.outcome = Err(error);
        }
        self.session.compiled(generation, compiled, NOW);
    }

    fn replace(&mut self) {
        self.session.replace_device(Frail::new(1200).compiling());
        self.newest = Default::default();
        self.peak = loads(&self.session);
    }

    /// A face's moves until all is answered.
    fn finish(&mut self) {
        self.session.flush();
        for _ in 0..1000 {
            if self.session.is_lost() {
                self.replace();
            }
            while self.launch() {}
            if !self.works.is_empty() {
                self.compile(0, None);
            } else if !self.flying.is_empty() {
                self.land(0, None);
            } else if self.pending.is_empty() {
                return;
            }
        }
        panic!("{} calls are never answered", self.pending.len());
    }
}

proptest! {
    /// Every call is answered once, with its own values or its own kernel's error,
    /// in the order of its kind; and nothing waits that could go.
    #[test]
    fn every_call_is_answered_while_kernels_compile(events in prop::collection::vec(event(), 1..100)) {
        let limits = BatchConfig {
            overflow: Overflow::Latest,
            queue_capacity: Capacity { calls: 12, bytes: 4096 },
            max_batch_size: Some(30),
            max_in_flight: 2,
            ..config()
        };
        let session = Session::new(Frail::new(1200).compiling(), limits).unwrap();
        let peak = loads(&session);
        let mut run = Run {
            session,
            pending: BTreeMap::new(),
            flying: Vec::new(),
            works: Vec::new(),
            newest: Default::default(),
            peak,
        };
        for (value, event) in (0_u16..).map(f32::from).zip(events) {
            match event {
                Event::Submit { op, key } => {
                    if let Some(accepted) = call(&mut run.session, op, value, key) {
                        if let Some(older) = accepted.superseded {
                            prop_assert!(run.pending.remove(&older).is_some());
                        }
                        run.pending.insert(accepted.ticket, (op, value));
                    }
                }
                Event::Abort(which) if !run.pending.is_empty() => {
                    let tickets: Vec<Ticket> = run.pending.keys().copied().collect();
                    let ticket = *which.get(&tickets);
                    prop_assert!(run.session.abort(ticket));
                    run.pending.remove(&ticket);
                }
                Event::Flush => run.session.flush(),
                Event::Launch => {
                    run.launch();
                }
                Event::Land(which, fate) if !run.flying.is_empty() => {
                    let index = which.index(run.flying.len());
                    run.land(index, fate);
                }
                Event::Compile(which, fate) if !run.works.is_empty() => {
                    let index = which.index(run.works.len());
                    run.compile(index, fate);
                }
                Event::Replace => run.replace(),
                Event::Abort(_) | Event::Land(..) | Event::Compile(..) => {}
            }
            run.peak = run.peak.max(loads(&run.session));
            assert_arenas(&run.session, run.peak);
            prop_assert_eq!(run.session.pending(), run.pending.len());
        }
        run.finish();
        let session = &mut run.session;
        prop_assert_eq!((session.pending(), session.batcher.pending_bytes()), (0, 0));
        prop_assert_eq!(loads(session), 1);
    }
}
