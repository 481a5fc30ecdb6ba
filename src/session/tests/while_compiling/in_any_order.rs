//! Calls, compilations, failures and losses in any order: every call is answered, and calls
//! that read a tensor find what was written before.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::fences::Fences;
use super::super::writing::{Pose, fill};
use super::*;

/// Ops besides those that compute: one writes to a tensor, one reads it.
const WRITE: usize = OPS;
const READ: usize = OPS + 1;
const KINDS: usize = OPS + 2;

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
        40 => (0..KINDS, key).prop_map(|(op, key)| Event::Submit { op, key }),
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
    pose: Pose,
    pending: BTreeMap<Ticket, (usize, f32)>,
    flying: Vec<Launch>,
    works: Vec<(Generation, Compile)>,
    /// The newest call of each op that was sent to this device.
    newest: [Option<Ticket>; KINDS],
    /// The first call that was made with this device. Of the calls before, some were in
    /// flight, and others had joined the parked ones.
    since: Ticket,
    /// What the tensor holds, unless it is lost, and what launched calls that read it are to find
    /// there.
    content: Option<f32>,
    /// Whether a call was launched that writes the tensor, since the tensor was filled.
    is_written: bool,
    /// The youngest call that was launched to write the tensor.
    writer: Option<Ticket>,
    found: BTreeMap<Ticket, f32>,
    /// Answers without words that were not looked at yet.
    told: Vec<(Ticket, Result<(), Code>)>,
    peak: usize,
}

impl Run {
    /// Kernels that did not compile, of which no call has heard yet.
    fn failures(&self) -> usize {
        let kernels = self.session.devices.primary().kernels.iter().flatten();
        kernels.filter(|(_, fate)| *fate == Fate::Failed).count()
    }

    fn launch(&mut self) -> bool {
        let failures = self.failures();
        let sent = self.session.launch(NOW);
        self.told.extend(told(&mut self.session));
        let generation = self.session.generation();
        let works = self.session.compiles().into_iter();
        self.works.extend(works.map(|work| (generation, work)));
        let Some(sent) = sent else {
            self.assert_nothing_could_go();
            return false;
        };
        let batch = last_sent(&self.session);
        let tickets = tickets(batch);
        // A call that may lose the device waits for no kernel, also not for its turn among those of
        // the kernel.
        let keeps_order = batch.payload.losses + 1 < ATTEMPTS;
        let is_new = |ticket: &&Ticket| keeps_order && **ticket >= self.since;
        for ticket in tickets.iter().filter(is_new) {
            let newest = &mut self.newest[self.pending[ticket].0];
            assert!(*newest < Some(*ticket), "an op's calls keep their order");
            *newest = Some(*ticket);
        }
        let is_well = self.failures() == failures; // A kernel that failed computes nothing.
        if is_well {
            self.assert_order_on_the_tensor(&tickets);
        }
        for ticket in tickets.iter().filter(|_| is_well) {
            match self.pending[ticket] {
                (WRITE, value) => {
                    self.content = Some(value);
                    self.is_written = true;
                    self.writer = self.writer.max(Some(*ticket));
                }
                (READ, _) => {
                    let content = self.content.expect("nothing reads a lost tensor");
                    self.found.insert(*ticket, content);
                }
                _ => {}
            }
        }
        self.flying.push(sent);
        true
    }

    /// Holds that a call that reads the tensor is launched behind every older one that is waited
    /// for and writes it, and a call that writes behind all of both kinds.
    fn assert_order_on_the_tensor(&self, tickets: &[Ticket]) {
        let kind = |ticket: &Ticket| self.pending[ticket].0;
        for (own, others) in [(READ, &[WRITE][..]), (WRITE, &[READ, WRITE])] {
            let Some(newest) = tickets.iter().rfind(|ticket| kind(ticket) == own) else {
                continue;
            };
            let older = self.pending.range(..newest);
            for (ticket, _) in older.filter(|(_, (kind, _))| others.contains(kind)) {
                // A launch refuses calls that read what is lost.
                if self.told.iter().any(|(told, _)| told == ticket) {
                    continue;
                }
                let mut flying = self.session.queue.in_flight().iter();
                assert!(
                    flying.any(|flying| super::tickets(&flying.batch).contains(ticket)),
                    "{newest:?} goes before {ticket:?}"
                );
            }
        }
    }

    /// Holds that a parked batch waits for a kernel, unless too many batches are in flight.
    fn assert_nothing_could_go(&mut self) {
        if !self.session.queue.may_fly() || self.session.is_lost() {
            return;
        }
        // For each parked call whether it uses the tensor, and whether its kernel compiles.
        let mut parked = Vec::new();
        for batch in self.session.queue.parked() {
            for call in batch.calls() {
                let recipe = call.work.planned.recipe.0 as usize;
                let recipe = &self.session.programs.recipes()[recipe];
                let mut fates = recipe
                    .kernels()
                    .map(|kernel| self.session.devices.primary().fate(kernel));
                let compiles = fates.any(|fate| fate == Some(Fate::Compiling));
                let uses = batch.payload.tensors_of(call).contains(&self.pose.target);
                parked.push((uses, compiles));
            }
        }
        let is_held = parked.contains(&(true, true));
        for (uses, compiles) in parked {
            assert!(compiles || uses && is_held);
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
                    let (op, value) = self.pending.remove(&ticket).expect("settled once");
                    match op {
                        READ => assert_eq!(floats, [self.found[&ticket]; 4]),
                        _ => assert_eq!(floats, [value + 1.0; 4]),
                    }
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
        self.session
            .replace_device(Frail::new(1 << 20).compiling(), NOW);
        fill(&mut self.session, self.pose);
        self.session.give_up_unreadable();
        self.content = self
            .content
            .filter(|_| !std::mem::take(&mut self.is_written));
        self.newest = Default::default();
        let last = self.pending.keys().last();
        self.since = last.map_or(self.since, |last| Ticket(last.0 + 1));
        self.peak = loads(&self.session);
    }

    /// Takes answers without words: of calls that write, and of calls that read what is lost.
    fn hear(&mut self) {
        self.told.extend(told(&mut self.session));
        for (ticket, outcome) in std::mem::take(&mut self.told) {
            let (op, _) = self.pending.remove(&ticket).expect("answered once");
            match outcome {
                Ok(()) => assert_eq!(op, WRITE),
                Err(code) => {
                    // A write whose kernel failed goes again after a loss, unless another one
                    // has gone since.
                    let is_late = op == WRITE && self.writer > Some(ticket);
                    assert!(op == READ || is_late, "{ticket:?} of {op}");
                    assert_eq!(code, Code::DeviceLost);
                }
            }
        }
    }

    /// Makes a face's moves until all is answered.
    fn finish(&mut self) {
        self.session.flush();
        for _ in 0..1000 {
            if self.session.is_lost() {
                self.replace();
            }
            while self.launch() {}
            self.hear();
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
    /// Every call is answered once, with its own values or its own kernel's error, in the
    /// order of its kind; and no call waits that could go.
    #[test]
    fn every_call_is_answered_while_kernels_compile(events in prop::collection::vec(event(), 1..100)) {
        let limits = BatchConfig {
            overflow: Overflow::Latest,
            queue_capacity: Capacity { calls: 12, bytes: 4096 },
            max_batch_size: Some(12),
            max_batch_bytes: 300,
            max_in_flight: 2,
            ..config()
        };
        let mut session = Session::new(Frail::new(1 << 20).compiling(), limits).unwrap();
        let peak = loads(&session);
        let mut run = Run {
            pose: pose(&mut session),
            session,
            pending: BTreeMap::new(),
            flying: Vec::new(),
            works: Vec::new(),
            newest: Default::default(),
            since: Ticket(0),
            content: Some(0.0),
            is_written: false,
            writer: None,
            found: BTreeMap::new(),
            told: Vec::new(),
            peak,
        };
        let (mut fences, mut newest) = (Fences::default(), None);
        for (value, event) in (0_u16..).map(f32::from).zip(events) {
            match event {
                Event::Submit { op, key } => {
                    let accepted = match op {
                        WRITE => write(&mut run.session, run.pose, value, (key, None)).ok(),
                        READ => read(&mut run.session, run.pose, (key, None)).ok(),
                        _ => call(&mut run.session, op, value, key),
                    };
                    if let Some(accepted) = accepted {
                        if let Some(older) = accepted.superseded {
                            prop_assert!(run.pending.remove(&older).is_some());
                        }
                        newest = Some(accepted.ticket);
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
            run.hear();
            fences.put(&run.session, newest);
            fences.check(&run.session);
            run.peak = run.peak.max(loads(&run.session));
            assert_held(&run.session, run.peak);
            prop_assert_eq!(run.session.pending(), run.pending.len());
        }
        run.finish();
        let session = &mut run.session;
        prop_assert_eq!((session.pending(), session.queue.pending_bytes()), (0, 0));
        prop_assert_eq!(loads(session), 1);
        fences.assert_passed(session);
    }
}
