//! One script of calls on a device that fails at each point in turn: every
//! launch, every kind of failure, every way to lose the device. Not random:
//! each case is run.

use std::collections::BTreeMap;

use super::*;
use crate::Code;

/// Where a launch goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    /// The launch is refused, as its flight tells.
    AtLaunch(Code),
    /// The launch fails in flight.
    InFlight(Code),
    /// The platform says that the device is lost before the launch.
    LostBefore,
    /// The platform says that the device is lost while the launch is in flight, which then
    /// fails.
    LostDuring,
    /// The platform says that the device is lost while the launch is in flight, which
    /// arrives all the same.
    LostDuringAndArrives,
    /// The platform says that the device is lost after the launch has landed.
    LostAfter,
}

const TROUBLES: [Trouble; 10] = [
    Trouble::AtLaunch(Code::OutOfMemory),
    Trouble::AtLaunch(Code::DeviceLost),
    Trouble::AtLaunch(Code::Fatal),
    Trouble::InFlight(Code::OutOfMemory),
    Trouble::InFlight(Code::DeviceLost),
    Trouble::InFlight(Code::Fatal),
    Trouble::LostBefore,
    Trouble::LostDuring,
    Trouble::LostDuringAndArrives,
    Trouble::LostAfter,
];

/// Items that fill a batch.
const FULL: u32 = 64;

/// For each batch of the script the items of its calls: they fill the batch.
const BATCHES: [&[u32]; 5] = [&[63, 1], &[700], &[5, 57, 2], &[64], &[40, 24]];

fn error(code: Code) -> Error {
    let why = "planned".into();
    match code {
        Code::OutOfMemory => Error::OutOfMemory(why),
        Code::DeviceLost => Error::DeviceLost(why),
        Code::Fatal => Error::Fatal(why),
        other => panic!("{other:?} is no trouble of a device"),
    }
}

/// The run of the script through a device's troubles.
struct Run<'a> {
    session: Session<Frail>,
    /// The troubles of launches, by their number.
    troubles: &'a [(usize, Trouble)],
    launches: usize,
    /// Batches that held memory when the device was new.
    held: usize,
    flying: Vec<(Launch, Option<Trouble>)>,
    asked: BTreeMap<Ticket, Vec<f32>>,
    answers: BTreeMap<Ticket, Result<Vec<f32>, Code>>,
}

impl Run<'_> {
    fn new(troubles: &[(usize, Trouble)]) -> Run<'_> {
        let config = BatchConfig {
            max_in_flight: 2,
            max_batch_size: Some(FULL.into()),
            ..config()
        };
        Run {
            session: Session::new(Frail::new(1 << 20), config).expect("valid settings"),
            troubles,
            launches: 0,
            held: BATCHES.len() + 1,
            flying: Vec::new(),
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }

    /// Makes the script's calls and a face's moves until all is answered.
    fn play(&mut self) {
        for (value, rows) in (0_u16..).map(f32::from).zip(BATCHES) {
            for rows in rows {
                let ticket = put(&mut self.session, value, *rows);
                self.asked.insert(ticket, vec![value + 1.0; *rows as usize]);
            }
        }
        for _ in 0..100 {
            if self.session.is_lost() {
                self.session.replace_device(Frail::new(1 << 20), NOW);
                self.held = loads(&self.session);
            }
            // Two batches are in flight at a time.
            while self.launch() {}
            if self.flying.is_empty() && !self.session.is_lost() {
                return;
            }
            if !self.flying.is_empty() {
                self.land();
            }
        }
        panic!("the script does not end");
    }

    /// Sends the next batch into its trouble; `false` if none may go.
    fn launch(&mut self) -> bool {
        let number = self.launches;
        let planned = self.troubles.iter().find(|(at, _)| *at == number);
        let trouble = planned.map(|(_, trouble)| *trouble);
        if let Some(Trouble::AtLaunch(code)) = trouble {
            self.session.devices.primary_mut().fault = Some(error(code));
        }
        if trouble == Some(Trouble::LostBefore) && self.session.is_ready() {
            self.launches += 1;
            self.session.lose(self.session.generation());
        }
        let words = |batch: &Batch| (batch.id, batch.payload.arena.len());
        let operands: Vec<(BatchId, u32)> = self.session.queue.waiting().map(words).collect();
        let Some(launch) = self.session.launch(NOW) else {
            self.session.devices.primary_mut().fault = None;
            return false;
        };
        self.launches += 1;
        let kept = words(last_sent(&self.session));
        assert!(
            operands.contains(&kept),
            "what the device appended was for one attempt"
        );
        if matches!(
            trouble,
            Some(Trouble::LostDuring | Trouble::LostDuringAndArrives)
        ) {
            self.session.lose(launch.generation);
        }
        self.flying.push((launch, trouble));
        true
    }

    fn land(&mut self) {
        let (launch, trouble) = self.flying.remove(0);
        let (batch, generation) = (launch.batch, launch.generation);
        let outcome = match trouble {
            Some(Trouble::InFlight(code)) => Err(error(code)),
            Some(Trouble::LostDuring) => Err(error(Code::DeviceLost)),
            _ => pollster::block_on(flight(launch)),
        };
        if let Some(settlement) = self.session.settle(batch, generation, outcome) {
            self.take(&settlement);
        }
        if trouble == Some(Trouble::LostAfter) {
            self.session.lose(generation);
        }
        let twice =
            self.session
                .settle(batch, generation, Ok(Readback::Host(vec![9; 4096].into())));
        assert!(twice.is_none(), "{batch:?} landed twice");
    }

    fn take(&mut self, settlement: &Settlement) {
        let answers: Vec<(Ticket, Result<Vec<f32>, Code>)> = match &settlement.outcome {
            Ok(_) => values(settlement)
                .into_iter()
                .map(|(ticket, floats)| (ticket, Ok(floats)))
                .collect(),
            Err(error) => {
                let tickets = settlement.answers.iter().map(|answer| answer.ticket);
                tickets.map(|ticket| (ticket, Err(error.code()))).collect()
            }
        };
        for (ticket, answer) in answers {
            let before = self.answers.insert(ticket, answer);
            assert!(before.is_none(), "{ticket:?} was answered twice");
        }
    }

    /// Holds that every call has its own values, but the calls of `failed` batches their
    /// error.
    fn check(&self, failed: usize, code: Option<Code>) {
        let mut errors = 0;
        for (ticket, floats) in &self.asked {
            match self.answers.get(ticket).expect("answered") {
                Ok(answer) => assert_eq!(answer, floats, "{ticket:?}"),
                Err(answer) => {
                    assert_eq!(Some(*answer), code, "{ticket:?}");
                    errors += 1;
                }
            }
        }
        let stats = self.session.stats();
        let calls = self.asked.len() as u64;
        let counts = (stats.calls, stats.settled, stats.rejected, stats.pending);
        assert_eq!(counts, (calls, calls - errors, errors, 0));
        assert_eq!(stats.batches, BATCHES.len() as u64, "sent again, not anew");
        assert_eq!(self.failed_batches(), failed);
        self.check_memory();
    }

    /// Holds that all memory is given back. The script makes all its batches at a time, and
    /// one is open.
    fn check_memory(&self) {
        assert_eq!(loads(&self.session), 1);
        assert_eq!(self.session.queue.pending_bytes(), 0);
        assert_arenas(&self.session, self.held);
    }

    fn failed_batches(&self) -> usize {
        let mut tickets = self.asked.keys();
        let batches = BATCHES.iter().map(|calls| {
            let of_batch: Vec<&Ticket> = tickets.by_ref().take(calls.len()).collect();
            let is_failed = |ticket: &&&Ticket| self.answers[**ticket].is_err();
            let failed = of_batch.iter().filter(is_failed).count();
            assert!(failed == 0 || failed == calls.len(), "a batch fails whole");
            usize::from(failed > 0)
        });
        batches.sum()
    }
}

#[test]
fn one_trouble_fails_one_batch_at_most() {
    for number in 0..BATCHES.len() {
        for trouble in TROUBLES {
            let troubles = [(number, trouble)];
            let mut run = Run::new(&troubles);
            run.play();
            assert!(run.launches > number, "{trouble:?} at {number} never came");
            match trouble {
                // A lost batch is sent again, and arrives.
                Trouble::AtLaunch(code) | Trouble::InFlight(code) if code != Code::DeviceLost => {
                    run.check(1, Some(code));
                }
                _ => run.check(0, None),
            }
        }
    }
}

#[test]
fn two_troubles_fail_two_batches_at_most() {
    let launches = 0..2 * BATCHES.len();
    for first in launches.clone() {
        for second in launches.clone().skip(first + 1) {
            for (one, other) in TROUBLES
                .into_iter()
                .flat_map(|one| TROUBLES.map(|other| (one, other)))
            {
                let troubles = [(first, one), (second, other)];
                let mut run = Run::new(&troubles);
                run.play();
                let failed = run.failed_batches();
                assert!(failed <= 2, "{troubles:?}");
                let codes: Vec<Code> = run
                    .answers
                    .values()
                    .filter_map(|answer| answer.as_ref().err().copied())
                    .collect();
                for code in &codes {
                    // Two lost devices cost no call its answer.
                    let named = |(_, trouble): &(usize, Trouble)| {
                        *code != Code::DeviceLost
                            && matches!(trouble, Trouble::AtLaunch(c) | Trouble::InFlight(c) if c == code)
                    };
                    assert!(troubles.iter().any(named), "{code:?} in {troubles:?}");
                }
                assert_eq!(run.answers.len(), run.asked.len(), "{troubles:?}");
                run.check_memory();
            }
        }
    }
}

#[test]
fn a_batch_lost_too_often_is_told_so() {
    // A batch in flight is sent again first, and meets its end at last.
    for (losses, end) in [
        (ATTEMPTS - 1, Code::DeviceLost),
        (ATTEMPTS - 1, Code::OutOfMemory),
        (1, Code::Fatal),
    ] {
        let mut session = session(1 << 20);
        let ticket = put(&mut session, 1.0, 3);
        session.flush();
        for _ in 0..losses {
            session.devices.primary_mut().fault = Some(error(Code::DeviceLost));
            let sent = session.launch(NOW).expect("sent");
            let (batch, generation) = (sent.batch, sent.generation);
            let outcome = pollster::block_on(flight(sent));
            assert!(session.settle(batch, generation, outcome).is_none());
            session.replace_device(Frail::new(1 << 20), NOW);
        }
        session.devices.primary_mut().fault = Some(error(end));
        let again = session.launch(NOW).expect("sent again");
        let settlement = land(&mut session, again);
        assert_eq!(settlement.answers[0].ticket, ticket);
        assert_eq!(settlement.outcome.unwrap_err().code(), end);
        assert_eq!(session.is_lost(), end == Code::DeviceLost);
        assert_eq!(session.pending(), 0);
        assert_arenas(&session, 2);
    }
}
