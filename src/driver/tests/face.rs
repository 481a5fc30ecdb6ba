//! A face that does what its driver says and nothing else. What comes of that, a test says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::Code;
use crate::device::{Compile, Flight};
use crate::session::tests::writing::{Pose, fill, pose, read, write};
use crate::session::tests::{ask_of, floats};

/// What a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Call {
    Lerp(u32),
    Write,
    Read,
}

/// What becomes of a flight or a compilation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    Arrives,
    /// The flight or the compilation fails for lack of memory.
    Short,
    /// The flight or the compilation fails with the device.
    Lost,
    /// The flight or the compilation never ends while its device is there.
    Hangs,
}

/// The outcome of looking for a GPU.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Gpu,
    Nothing,
}

/// A batch whose chunks land one after the other.
pub(super) struct Sent {
    batch: BatchId,
    generation: Generation,
    at: Millis,
    /// The flights to come, and who computes each.
    flights: VecDeque<(Flight, Engine)>,
    /// Whether the next flight comes only when its device is destroyed.
    hangs: bool,
}

impl Sent {
    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// Whether the next flight never comes while its device is there.
    pub(super) fn hangs(&self) -> bool {
        self.hangs
    }
}

/// A probe on its way.
pub(super) struct Probe {
    generation: Generation,
    flight: Flight,
    hangs: bool,
}

pub(super) struct Face {
    pub(super) driver: Driver<Frail>,
    pace: Pace,
    pose: Pose,
    pub(super) now: Millis,
    pub(super) sent: Vec<Sent>,
    /// Compilations, and whether each hangs.
    pub(super) works: Vec<(Generation, Compile, bool)>,
    pub(super) opening: bool,
    pub(super) probe: Option<Probe>,
    /// Calibrations that have not ended.
    pub(super) calibrating: usize,
    /// When the driver is to be asked again, as its last `Work::Sleep` said.
    alarm: Option<Millis>,
    /// When a GPU answered last.
    heard: Millis,
    /// The calls that wait, and the floats of each one's answer, if they are known.
    pub(super) pending: BTreeMap<Ticket, Option<Vec<f32>>>,
    /// The warm-ups that wait.
    pub(super) warming: BTreeSet<Ticket>,
    is_closed: bool,
}

impl Face {
    pub(super) fn new(pace: Pace, batch: BatchConfig, routing: Option<crate::Model>) -> Face {
        let mut driver = driver(gpu(), batch, routing);
        let pose = pose(&mut driver.session);
        Face {
            driver,
            pace,
            pose,
            now: Millis(0.0),
            sent: Vec::new(),
            works: Vec::new(),
            opening: false,
            probe: None,
            calibrating: 0,
            alarm: None,
            heard: Millis(0.0),
            pending: BTreeMap::new(),
            warming: BTreeSet::new(),
            is_closed: false,
        }
    }

    pub(super) fn submit(&mut self, call: Call, engine: Option<Engine>, value: f32) {
        let (session, pose) = (&mut self.driver.session, self.pose);
        let (accepted, floats) = match call {
            Call::Lerp(rows) => {
                let floats = vec![value + 1.0; rows as usize];
                (ask_of(session, (value, rows), None, engine), Some(floats))
            }
            Call::Write => (
                write(session, pose, value, (None, engine)),
                Some(Vec::new()),
            ),
            Call::Read => (read(session, pose, (None, engine)), None),
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
        // Real faces do the same: a queued call that is not due costs the driver nothing.
        if self.pace == Pace::Policy || self.driver.session.is_ready() {
            self.run();
        }
    }

    pub(super) fn warm_up(&mut self) {
        let session = &mut self.driver.session;
        session.begin_explain();
        ask_of(session, (0.0, 3), None, None).expect("taken");
        let kernels = session.end_kernels();
        self.warming.insert(session.warm_up(kernels));
        self.run();
    }

    pub(super) fn abort(&mut self, which: prop::sample::Index) {
        if self.pending.is_empty() {
            return;
        }
        let tickets: Vec<Ticket> = self.pending.keys().copied().collect();
        let ticket = *which.get(&tickets);
        assert!(self.driver.session.abort(ticket));
        self.pending.remove(&ticket);
        self.run();
    }

    pub(super) fn flush(&mut self) {
        self.driver.session.flush();
        self.run();
    }

    pub(super) fn calibrate(&mut self) {
        if self.calibrating == 0 {
            self.calibrating += 1;
            self.driver.calibrate();
            self.run();
        }
    }

    /// Whether a model that could not be measured is measured again after some later answer.
    pub(super) fn rests(&self) -> bool {
        matches!(self.driver.calibration, Calibration::AfterAnswer { .. })
    }

    pub(super) fn lose(&mut self) {
        // Only a GPU is ever lost.
        if self.driver.session.info().engine == Engine::Gpu {
            self.driver.lose(self.driver.session.generation());
            self.run();
        }
    }

    pub(super) fn dispose(&mut self) {
        self.driver.close();
        let mut tickets = self.driver.session.dispose();
        tickets.sort_unstable();
        let mut waiting: Vec<Ticket> = std::mem::take(&mut self.pending).into_keys().collect();
        waiting.extend(std::mem::take(&mut self.warming));
        waiting.sort_unstable();
        assert_eq!(tickets, waiting, "everybody who waits is told");
        self.is_closed = true;
        self.run();
    }

    /// Does what the driver says, until there is nothing to do.
    pub(super) fn run(&mut self) {
        // A worker has nothing on hand where nothing is in flight.
        if self.pace == Pace::Policy && self.sent.is_empty() {
            self.driver.wake(self.now);
        }
        for _ in 0..1000 {
            match self.pace.next(&mut self.driver, self.now) {
                Work::Sleep { until } => return self.sleep(until),
                work => {
                    assert!(!self.is_closed, "it goes on");
                    self.work(work);
                }
            }
        }
        panic!("there is always more to do");
    }

    fn work(&mut self, work: Work) {
        match work {
            Work::Launch(launch) => self.follow(launch),
            Work::Settle(settlement) => {
                assert!(self.driver.session.is_lost() && settlement.outcome.is_err());
                self.answer(&settlement);
            }
            Work::Compile {
                generation,
                compiles,
            } => {
                assert_eq!(generation, self.driver.session.generation());
                let compiles = compiles.into_iter();
                self.works
                    .extend(compiles.map(|work| (generation, work, false)));
            }
            Work::Answer(answered) => self.hear(answered),
            Work::Tell(news) => {
                assert!(!self.driver.session.is_lost() || news == News::Relieved);
            }
            Work::Replace { pauses: [] } => self.take(None),
            Work::Replace { pauses } | Work::Look { pauses } => {
                let is_lost = self.driver.session.is_lost();
                assert_eq!(pauses.len(), if is_lost { PAUSES.len() } else { 1 });
                assert!(!std::mem::replace(&mut self.opening, true), "one at a time");
            }
            Work::Probe { generation, flight } => {
                assert_eq!(self.driver.session.in_flight(), 0);
                assert!(self.probe.is_none(), "one at a time");
                self.probe = Some(Probe {
                    generation,
                    flight,
                    hangs: false,
                });
            }
            Work::EndCalibration => self.calibrating -= 1,
            Work::Trim => assert!(!self.driver.session.may_trim()),
            Work::Gather => assert_eq!(self.pace, Pace::Policy),
            Work::Sleep { .. } => unreachable!("it is looked at before"),
        }
    }

    /// Takes answers without words.
    fn hear(&mut self, Answered { tickets, outcome }: Answered) {
        for ticket in tickets {
            if self.warming.remove(&ticket) {
                assert!(outcome.is_ok(), "kernels compile here");
                continue;
            }
            let asked = self.pending.remove(&ticket).expect("answered once");
            match &outcome {
                Ok(()) => assert_eq!(asked, Some(Vec::new()), "a write"),
                Err(error) => assert_eq!(error.code(), Code::DeviceLost, "{error}"),
            }
        }
    }

    fn follow(&mut self, mut launch: Launch) {
        let is_lost = self.driver.session.is_lost();
        assert!(
            !is_lost || launch.has_cpu_share && launch.flights.is_empty(),
            "nothing is sent to a device that is lost"
        );
        if launch.has_cpu_share {
            self.driver.compute(&mut launch, self.now);
        }
        let (batch, generation) = (launch.batch, launch.generation);
        let engine = self.driver.session.info().engine;
        let flights = launch.flights.into_iter().enumerate();
        let flights = flights.map(|(at, flight)| match at {
            0 if launch.has_cpu_share => (flight, Engine::Cpu),
            _ => (flight, engine),
        });
        self.sent.push(Sent {
            batch,
            generation,
            at: self.now,
            flights: flights.collect(),
            hangs: false,
        });
    }

    /// Checks that something is to come where the driver sleeps, or that nobody waits.
    fn sleep(&mut self, until: Option<Millis>) {
        self.alarm = until;
        let session = &self.driver.session;
        if self.is_closed {
            return assert_eq!(until, None);
        }
        assert_ne!(
            session.due(self.now),
            Due::Now,
            "somebody would have to ask"
        );
        assert!(!session.is_unheard());
        let comes = !self.sent.is_empty() || !self.works.is_empty() || self.probe.is_some();
        if comes || self.opening || until.is_some() {
            return;
        }
        assert!(!session.is_ready() && self.warming.is_empty());
        let is_queued = session.due(self.now) != Due::Idle || session.in_flight() > 0;
        assert!(!is_queued || self.pace == Pace::Frames && session.in_flight() == 0);
    }

    /// Whether the device of this generation was destroyed.
    pub(super) fn is_gone(&self, generation: Generation) -> bool {
        self.driver.is_gone(generation) && !self.driver.session.is_lost() || self.is_closed
    }

    pub(super) fn land(&mut self, index: usize, fate: Fate) {
        let is_gone = self.is_gone(self.sent[index].generation);
        let engine = self.driver.session.info().engine;
        let sent = &mut self.sent[index];
        let is_gpu = sent.flights[0].1 == Engine::Gpu;
        // A flight of the CPU always arrives.
        let fate = if is_gpu { fate } else { Fate::Arrives };
        let is_gone = is_gone && is_gpu;
        if (sent.hangs || fate == Fate::Hangs) && !is_gone {
            sent.hangs = true;
            return;
        }
        let (flight, _) = sent.flights.pop_front().expect("one more");
        let outcome = match fate {
            _ if is_gone => Err(lost()),
            Fate::Short => Err(Error::OutOfMemory("test".into())),
            Fate::Lost => Err(lost()),
            Fate::Arrives | Fate::Hangs => pollster::block_on(flight),
        };
        if outcome.is_ok() && is_gpu {
            self.heard = self.now;
        }
        let landing = Landing {
            batch: sent.batch,
            generation: sent.generation,
            outcome,
        };
        if let Some(settlement) = self.driver.settle(landing, self.now) {
            self.answer(&settlement);
            let next = settlement.next.into_iter();
            let next = next.map(|flight| (flight, engine));
            self.sent[index].flights.extend(next);
        }
        if self.sent[index].flights.is_empty() {
            self.sent.remove(index);
        }
        self.run();
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

    pub(super) fn compile(&mut self, index: usize, fate: Fate) {
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
        self.driver.adopt(generation, compiled, self.now);
        self.run();
    }

    pub(super) fn measure(&mut self, fate: Fate) {
        let Some(mut probe) = self.probe.take() else {
            return;
        };
        probe.hangs |= fate == Fate::Hangs;
        if probe.hangs && !self.driver.is_gone(probe.generation) {
            self.probe = Some(probe);
            return;
        }
        let outcome = match fate {
            Fate::Short => Err(Error::OutOfMemory("test".into())),
            _ if probe.hangs || fate == Fate::Lost => Err(lost()),
            _ => pollster::block_on(probe.flight),
        };
        self.driver.note_probe(&outcome, 0.0, self.now);
        self.run();
    }

    /// Looking for a GPU has ended.
    pub(super) fn opened(&mut self, found: Found) {
        if std::mem::take(&mut self.opening) {
            self.take(match found {
                Found::Gpu => Some(gpu()),
                Found::Nothing => None,
            });
            self.run();
        }
    }

    fn take(&mut self, found: Option<Frail>) {
        let is_found = found.is_some();
        let Takeover { unneeded, news } = self.driver.take_device(found, self.now);
        if self.is_closed {
            return assert_eq!((unneeded.is_some(), news), (is_found, None));
        }
        assert_eq!(unneeded.is_some(), news.is_some());
        if let Some(news) = news {
            assert_eq!(news == News::Restored, is_found);
            // A listener may flush the session: nothing is sent before the tensors are filled.
            self.driver.session.flush();
            let early = self.pace.next(&mut self.driver, self.now);
            assert!(matches!(early, Work::Sleep { until: None }));
            fill(&mut self.driver.session, self.pose);
            assert_eq!(self.driver.resume(), []);
        }
    }

    /// Time passes, and the driver is asked when its sleeps are over.
    pub(super) fn pass(&mut self, ms: f64) {
        let end = Millis(self.now.0 + ms);
        for _ in 0..10_000 {
            // A flight of the CPU lands before any timer rings.
            let is_there = |sent: &Sent| sent.flights[0].1 == Engine::Cpu;
            while let Some(at) = self.sent.iter().position(is_there) {
                self.land(at, Fate::Arrives);
            }
            let Some(alarm) = self.alarm.filter(|alarm| *alarm <= end) else {
                self.now = end;
                return self.assert_in_time();
            };
            self.now = Millis(alarm.0.max(self.now.0));
            self.alarm = None;
            self.driver.wake(self.now);
            self.run();
            if self.probe.as_ref().is_some_and(|probe| !probe.hangs) {
                return; // The test says what comes of the probe.
            }
        }
        panic!("the alarm rings for ever");
    }

    /// Checks that no answer of a device is overdue.
    fn assert_in_time(&self) {
        let session = &self.driver.session;
        let owes = |generation| !session.is_lost() && !self.driver.is_gone(generation);
        for sent in &self.sent {
            let since = sent.at.0.max(self.heard.0);
            let is_gpu = sent.flights[0].1 == Engine::Gpu;
            if is_gpu && owes(sent.generation) && !self.is_closed {
                assert!(self.now.0 < since + STALL_MS, "a device that hangs is lost");
            }
        }
        let looks = session.next_look().filter(|_| !self.is_closed);
        assert!(
            looks.is_none_or(|moment| moment > self.now),
            "it is looked for"
        );
    }
}
