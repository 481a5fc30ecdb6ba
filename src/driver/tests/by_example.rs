//! What a driver says next, step by step, in stories of one session each.

use super::*;
use crate::batch::{Policy, Preset};
use crate::device::Flight;
use crate::session::tests::ask_of;
use crate::session::tests::writing::{pose, read};

/// The driver's `Work`, without futures and devices.
#[derive(Debug, PartialEq)]
enum Next {
    Launch(usize),
    /// Calls that failed.
    Refuse(Vec<Ticket>),
    Gather,
    Tell(News),
    Replace(usize),
    Look,
    Probe,
    EndCalibration,
    Trim,
    Sleep(Option<f64>),
    Other,
}

use Next::{EndCalibration, Gather, Look, Replace, Sleep, Tell, Trim};

/// A driver, and the launches that did not land yet.
struct Story {
    pace: Pace,
    driver: Driver<Frail>,
    launches: Vec<Launch>,
    probes: Vec<Flight>,
}

impl Story {
    fn new(pace: Pace, batch: BatchConfig) -> Story {
        let gpu = Frail::new(1 << 20).gpu();
        Story {
            pace,
            driver: driver(gpu, batch, Some(crate::Model::default())),
            launches: Vec::new(),
            probes: Vec::new(),
        }
    }

    /// A story of a page, whose frames flush the session.
    fn paged() -> Story {
        Story::new(Pace::Frames, config())
    }

    /// Makes a call for the GPU.
    fn ask(&mut self) -> Ticket {
        let session = &mut self.driver.session;
        let accepted = ask_of(session, (1.0, 4), None, Some(Engine::Gpu));
        accepted.expect("taken").ticket
    }

    fn next(&mut self, now: f64) -> Next {
        match self.pace.next(&mut self.driver, Millis(now)) {
            Work::Launch(launch) => {
                let flights = launch.flights.len();
                self.launches.push(launch);
                Next::Launch(flights)
            }
            Work::Settle(settlement) => {
                assert!(settlement.outcome.is_err());
                let answers = settlement.answers.iter();
                Next::Refuse(answers.map(|answer| answer.ticket).collect())
            }
            Work::Gather => Gather,
            Work::Tell(news) => Tell(news),
            Work::Replace { pauses } => Replace(pauses.len()),
            Work::Look { pauses } => {
                assert_eq!(pauses.len(), 1);
                Look
            }
            Work::Probe { flight, .. } => {
                self.probes.push(flight);
                Next::Probe
            }
            Work::EndCalibration => EndCalibration,
            Work::Trim => Trim,
            Work::Sleep { until } => Sleep(until.map(|until| until.0)),
            Work::Compile { .. } | Work::Answer { .. } => Next::Other,
        }
    }

    fn wake(&mut self, now: f64) {
        self.driver.wake(Millis(now));
    }

    /// Lands the oldest launch.
    fn land(&mut self, now: f64) {
        let launch = self.launches.remove(0);
        for flight in launch.flights {
            let landing = Landing {
                batch: launch.batch,
                generation: launch.generation,
                outcome: pollster::block_on(flight),
            };
            let settlement = self.driver.settle(landing, Millis(now));
            assert!(settlement.is_some_and(|settlement| settlement.outcome.is_ok()));
        }
    }

    /// Makes a call, sends it and lands it.
    fn answer(&mut self, now: f64) {
        self.ask();
        self.driver.session.flush();
        assert_eq!(self.next(now), Next::Launch(1));
        self.land(now);
    }

    /// Makes a call that the CPU takes so long for.
    fn compute(&mut self, now: f64, ms: f64) {
        let session = &mut self.driver.session;
        ask_of(session, (1.0, 4), None, Some(Engine::Cpu)).expect("taken");
        session.flush();
        assert_eq!(self.next(now), Next::Launch(0));
        let launch = self.launches.last_mut().expect("it was sent");
        assert!(launch.has_cpu_share);
        self.driver.compute(launch, Millis(now));
        self.next(now + ms);
        self.land(now + ms);
    }

    /// Runs probes while the driver sends some, each for two milliseconds of which the face did
    /// not look for so many; how many there were, and what the driver said at the end.
    fn measure(&mut self, now: &mut f64, late_ms: f64) -> (usize, Next) {
        for probes in 0.. {
            self.wake(*now);
            let next = self.next(*now);
            if next != Next::Probe {
                return (probes, next);
            }
            *now += 2.0;
            let outcome = pollster::block_on(self.probes.remove(0));
            self.driver.note_probe(&outcome, late_ms, Millis(*now));
        }
        unreachable!("there is an end to probes")
    }

    fn is_calibrated(&self) -> bool {
        let model = self.driver.session.model();
        model.expect("there is one").1
    }

    fn lose(&mut self) {
        self.driver.lose(self.driver.session.generation());
    }

    fn opened(&mut self, found: Option<Frail>, now: f64) -> Option<News> {
        self.driver.take_device(found, Millis(now)).news
    }
}

fn eager() -> BatchConfig {
    BatchConfig {
        max_wait: Some(5.0),
        ..Preset::Eager.config()
    }
}

#[test]
fn a_device_that_owes_an_answer_for_too_long_is_lost_when_a_face_looks() {
    let mut story = Story::paged();
    story.ask();
    assert_eq!(story.next(5.0), Sleep(None), "nobody asked to send it");
    story.driver.session.flush();
    assert_eq!(story.next(10.0), Next::Launch(1));
    let due = 10.0 + STALL_MS;
    assert_eq!(story.next(11.0), Sleep(Some(due)));
    story.wake(due - 1.0);
    assert_eq!(story.next(due - 1.0), Sleep(Some(due)));
    // While a script runs, a page's clock goes on and nothing else does: nothing is lost yet.
    assert_eq!(story.next(due + 1.0), Sleep(Some(due)));
    story.wake(due);
    assert_eq!(story.next(due), Replace(PAUSES.len()));
    assert_eq!(story.next(due), Sleep(None));
    assert!(story.driver.is_gone(story.launches[0].generation));
}

#[test]
fn a_batch_that_stalls_every_device_is_refused_and_the_one_behind_is_sent_again() {
    for pace in [Pace::Frames, Pace::Policy] {
        let mut story = Story::new(pace, config());
        let mut now = 0.0;
        let stalls = story.ask();
        story.driver.session.flush();
        assert_eq!(story.next(now), Next::Launch(1));
        let behind = story.ask();
        story.driver.session.flush();
        assert_eq!(story.next(now), Next::Launch(1));
        for attempt in 1..=3 {
            // No flight lands: only the clock says that the device is lost.
            now += STALL_MS;
            story.wake(now);
            if attempt == 3 {
                assert_eq!(story.next(now), Next::Refuse(vec![stalls]));
            }
            assert_eq!(story.next(now), Replace(PAUSES.len()));
            story.launches.clear();
            let gpu = Frail::new(1 << 20).gpu();
            assert_eq!(story.opened(Some(gpu), now), Some(News::Restored));
            assert_eq!(story.driver.resume(), []);
            if attempt < 3 {
                assert_eq!(story.next(now), Next::Launch(1));
            }
            assert_eq!(story.next(now), Next::Launch(1));
        }
        story.land(now);
        assert_eq!(story.driver.session.pending(), 0, "{behind:?} is answered");
    }
}

#[test]
fn memory_is_freed_when_no_batch_came_for_a_while() {
    let mut story = Story::paged();
    story.answer(1.0);
    assert_eq!(story.next(2.0), Sleep(Some(2002.0)));
    story.answer(1000.0);
    assert_eq!(story.next(1001.0), Sleep(Some(3001.0)));
    // The alarm was set before the second answer.
    story.wake(2002.0);
    assert_eq!(story.next(2002.0), Sleep(Some(3001.0)));
    assert_eq!(
        story.next(3001.0),
        Sleep(Some(3001.0)),
        "the face comes first"
    );
    assert_eq!(story.driver.session.device().trims, 0);
    story.wake(3001.0);
    assert_eq!(story.next(3001.0), Trim);
    assert_eq!(story.next(3001.0), Sleep(None));
    assert_eq!(story.driver.session.device().trims, 1);
}

#[test]
fn a_burst_of_calls_gathers_once_and_not_behind_an_answer() {
    let patient = BatchConfig {
        max_wait: None,
        ..eager()
    };
    let mut story = Story::new(Pace::Policy, patient);
    story.ask();
    story.wake(1.0);
    assert_eq!(story.next(1.0), Gather);
    story.ask();
    assert_eq!(story.next(1.5), Next::Launch(1));
    story.ask();
    assert_eq!(story.next(1.6), Sleep(Some(1.5 + STALL_MS)));
    story.land(3.0);
    // The calls gathered while the device was at work.
    assert_eq!(story.next(3.0), Next::Launch(1));
    story.land(4.0);
    assert_eq!(story.driver.session.stats().batches, 2);
    story.ask();
    story.wake(5.0);
    assert_eq!(story.next(5.0), Gather);
}

#[test]
fn what_the_policy_waits_for_is_slept_for() {
    let patient = BatchConfig {
        policy: Policy::Frame,
        ..eager()
    };
    for (pace, until) in [(Pace::Policy, Some(5.0)), (Pace::Frames, None)] {
        let mut story = Story::new(pace, patient.clone());
        story.ask();
        story.wake(0.0);
        assert_eq!(story.next(0.0), Sleep(until));
    }
}

#[test]
fn the_cpu_takes_over_after_losses_in_a_row_until_a_gpu_is_found() {
    let mut story = Story::paged();
    let mut now = 0.0;
    for _ in 0..3 {
        story.lose();
        assert_eq!(story.next(now), Replace(PAUSES.len()));
        assert_eq!(story.next(now), Sleep(None));
        let gpu = Frail::new(1 << 20).gpu();
        assert_eq!(story.opened(Some(gpu), now), Some(News::Restored));
        assert_eq!(story.driver.resume(), []);
        now += 1.0;
    }
    story.lose();
    assert_eq!(story.next(now), Replace(0));
    assert_eq!(story.opened(None, now), Some(News::FellBack));
    assert_eq!(story.driver.resume(), []);
    assert_eq!(story.next(now), Sleep(Some(now + 1000.0)));
    assert_eq!(story.next(now + 1000.0), Look, "it looks again");
    assert_eq!(story.opened(None, now + 1500.0), None);
    let next = now + 3500.0;
    assert_eq!(story.next(now + 1500.0), Sleep(Some(next)));
    assert_eq!(story.next(next), Look);
    let gpu = Frail::new(1 << 20).gpu();
    assert_eq!(story.opened(Some(gpu), next), None);
    assert_eq!(story.next(next), Tell(News::Regained));
}

#[test]
fn nothing_is_sent_before_the_tensors_of_another_device_are_filled() {
    let mut story = Story::paged();
    let tensor = story.driver.session.hold();
    story.driver.session.fill(tensor, &[1; 4]).expect("room");
    story.ask();
    story.lose();
    assert_eq!(story.next(0.0), Replace(PAUSES.len()));
    story.opened(Some(Frail::new(1 << 20).gpu()), 1.0);
    story.driver.session.flush();
    story.wake(2.0);
    assert_eq!(story.next(2.0), Sleep(None));
    story.driver.resume();
    assert_eq!(story.next(3.0), Next::Launch(1));
}

// A face in another thread fills tensors later than it is asked to.
#[test]
fn a_device_that_goes_while_its_tensors_are_filled_costs_no_call() {
    let mut story = Story::paged();
    let session = &mut story.driver.session;
    let pose = pose(session);
    let call = read(session, pose, (None, None)).expect("taken").ticket;
    story.lose();
    assert_eq!(story.next(0.0), Replace(PAUSES.len()));
    story.opened(Some(Frail::new(1 << 20).gpu()), 1.0);
    story.lose();
    assert_eq!(story.driver.resume(), []);
    assert_eq!(story.next(2.0), Replace(PAUSES.len()));
    story.opened(Some(Frail::new(1 << 20).gpu()), 3.0);
    assert_eq!(story.driver.resume(), [call], "nobody filled what it reads");
}

#[test]
fn probes_wait_for_batches_and_for_the_face() {
    let mut story = Story::paged();
    story.ask();
    story.driver.session.flush();
    assert_eq!(story.next(1.0), Next::Launch(1));
    story.driver.calibrate();
    story.wake(2.0);
    assert_eq!(
        story.next(2.0),
        Sleep(Some(1.0 + STALL_MS)),
        "a batch is on its way"
    );
    story.land(3.0);
    assert_eq!(story.next(3.0), Sleep(Some(3.0)), "its answers come first");
    story.wake(3.0);
    assert_eq!(story.next(3.0), Next::Probe);
    assert_eq!(story.next(3.0), Sleep(Some(3.0 + STALL_MS)));
    // The probe never comes, and its device is lost.
    story.wake(3.0 + STALL_MS);
    story
        .driver
        .note_probe(&Err(lost()), 0.0, Millis(5.0 + STALL_MS));
    assert_eq!(story.next(5.0 + STALL_MS), Replace(PAUSES.len()));
    story.wake(5.0 + STALL_MS);
    assert_eq!(story.next(5.0 + STALL_MS), EndCalibration);
    assert_eq!(
        story.driver.session.model().map(|(_, known)| known),
        Some(false)
    );
}

#[test]
fn the_model_is_measured_once_a_call_was_answered() {
    let mut story = Story::new(Pace::Policy, eager());
    story.driver.calibrate_after_answer();
    story.wake(0.0);
    assert_eq!(story.next(0.0), Sleep(None));
    story.answer(1.0);
    assert_eq!(story.next(1.0), Sleep(Some(1.0)));
    story.wake(1.0);
    assert_eq!(story.next(1.0), Next::Probe);
}

#[test]
fn a_probe_that_tells_nothing_is_sent_once_more() {
    type Case = (&'static str, fn(&mut Story), usize);
    let lands: [Case; 6] = [
        ("alone", |story| probed(story, 0.0), 43),
        ("soon enough", |story| probed(story, 0.5), 43),
        ("noticed late", |story| probed(story, 1.0), 44),
        (
            "with a batch of the GPU that came and went meanwhile",
            |story| {
                story.answer(1.0);
                probed(story, 0.0);
            },
            44,
        ),
        (
            "while the CPU computed for a moment",
            |story| {
                story.compute(1.0, 0.25);
                probed(story, 0.25);
            },
            43,
        ),
        (
            "while the CPU computed",
            |story| {
                story.compute(1.0, 0.75);
                probed(story, 0.0);
            },
            44,
        ),
    ];
    for (name, land, left) in lands {
        let mut story = Story::paged();
        story.driver.calibrate();
        story.wake(0.0);
        assert_eq!(story.next(0.0), Next::Probe);
        land(&mut story);
        let found = story.measure(&mut 3.0, 0.0);
        assert_eq!(found, (left, EndCalibration), "{name}");
        assert!(story.is_calibrated());
    }
}

/// The first probe has landed after two milliseconds.
fn probed(story: &mut Story, late_ms: f64) {
    let outcome = pollster::block_on(story.probes.remove(0));
    story.driver.note_probe(&outcome, late_ms, Millis(2.0));
}

#[test]
fn a_page_that_is_too_busy_is_measured_later() {
    let mut story = Story::paged();
    story.driver.calibrate();
    let mut now = 0.0;
    for _ in 0..3 {
        let (probes, end) = story.measure(&mut now, 2.0);
        assert!(probes > 0 && matches!(end, Sleep(_)), "{probes}, {end:?}");
        assert!(!story.is_calibrated());
        // Answers that come soon change nothing, nor does time alone.
        story.answer(now + AGAIN_MS - 1.0);
        assert_eq!(story.measure(&mut now, 0.0).0, 0);
        now += AGAIN_MS;
        assert_eq!(story.measure(&mut now, 0.0).0, 0);
        story.answer(now);
    }
    assert_eq!(story.measure(&mut now, 0.0), (44, EndCalibration));
    assert!(story.is_calibrated());
}

#[test]
fn what_launches_take_is_noted() {
    let mut story = Story::paged();
    story.ask();
    story.driver.session.flush();
    assert_eq!(story.next(10.0), Next::Launch(1));
    story.next(13.0);
    assert_eq!(
        story.driver.session.stats().encode_ms.to_bits(),
        3.0_f64.to_bits()
    );
}

#[test]
fn a_closed_session_needs_no_device() {
    let mut story = Story::paged();
    story.lose();
    assert_eq!(story.next(0.0), Replace(PAUSES.len()));
    story.driver.close();
    let opened = story.driver.take_device(Some(gpu()), Millis(1.0));
    assert!(opened.unneeded.is_some() && opened.news.is_none());
    assert_eq!(story.next(2.0), Sleep(None));
}
