//! What a session does next: when batches are launched, when a GPU counts as lost and
//! another one is opened, when the model is measured and memory is freed.
//!
//! Pure: it has no clock, no threads and no promises. A face asks [`Driver::next`], does what
//! the answer says, tells the outcome and the time, and asks again. Calls enter by the session
//! itself, so that a call costs nothing here.

mod work;

pub use work::{Landing, News, Takeover, Work};

use crate::batch::{BatchId, Due, Millis, Ticket};
use crate::device::{Compiled, Device, DeviceInfo, Generation, Readback};
use crate::error::Error;
use crate::session::{Answered, Launch, LaunchId, Remedy, Session, Settlement};

/// Milliseconds without a batch after which memory that is kept for the next is freed.
const IDLE_MS: f64 = 2000.0;

/// Milliseconds until the model is measured once more, where the page was too busy for it.
const AGAIN_MS: f64 = 10_000.0;

/// Milliseconds without an answer after which a GPU counts as lost, unless the caller says
/// otherwise. One in software takes seconds for what hardware does in milliseconds.
const STALL_MS: f64 = 10_000.0;
const SOFTWARE_STALL_MS: f64 = 60_000.0;

/// The longest that a device may owe an answer, unless the caller says otherwise.
pub fn usual_stall_ms(device: &DeviceInfo) -> f64 {
    match device.software {
        true => SOFTWARE_STALL_MS,
        false => STALL_MS,
    }
}

/// The share of a probe's time for which the face's thread may be busy with other work.
const BUSY_SHARE: f64 = 0.25;

/// What a face asks of its driver.
#[derive(Debug)]
pub struct DriverConfig<D> {
    /// The longest that the device may owe an answer, in milliseconds.
    pub stall_ms: f64,
    /// Milliseconds before each request for a GPU that takes a lost one's place.
    pub pauses: &'static [f64],
    /// Makes the CPU device that takes over where there is no GPU.
    pub cpu: fn() -> D,
}

/// Drives a session.
pub struct Driver<D> {
    /// The session that is driven. Calls enter by it.
    pub session: Session<D>,
    config: DriverConfig<D>,
    phase: Phase,
    timed: Timed,
    calibration: Calibration,
    /// Since when nothing was due, if nothing was since the last batch.
    idle_since: Option<Millis>,
    /// Whether the face has neither answers to hand out nor flights to await. Only then probes
    /// are sent, and calls may gather.
    is_face_idle: bool,
}

/// What may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Batches and probes.
    InUse,
    /// Nothing, until the tensors of a device that replaced a lost one are filled.
    Filling,
    /// Nothing: the session is over.
    Closed,
}

/// What the time until the face's next question is spent on.
#[derive(Clone, Copy, Debug)]
enum Timed {
    Nothing,
    Encode(Millis),
    Compute(BatchId, Millis),
}

/// How far measuring the cost model is.
#[derive(Clone, Copy, Debug)]
enum Calibration {
    /// Nothing is to be measured.
    Over,
    /// Measuring begins once a call was answered at this moment or later, so that it delays no
    /// program's first result, and no busy page for long.
    AfterAnswer { from: Millis },
    /// The next probe is sent when nothing else is in flight.
    Waits,
    /// A probe is in flight.
    Measures {
        generation: Generation,
        since: Millis,
        /// Milliseconds since then for which the CPU computed calls; endless where the GPU was
        /// sent some.
        busy_ms: f64,
    },
}

impl<D: Device> Driver<D> {
    /// A driver of a new session.
    pub fn new(session: Session<D>, config: DriverConfig<D>) -> Self {
        Driver {
            session,
            config,
            phase: Phase::InUse,
            timed: Timed::Nothing,
            calibration: Calibration::Over,
            idle_since: None,
            is_face_idle: false,
        }
    }

    /// What a face does now. The face asks after every call that may go at once, after every
    /// event and when a sleep is over, each time until the answer is [`Work::Sleep`].
    pub fn next(&mut self, now: Millis) -> Work {
        self.note_time(now);
        if self.phase != Phase::InUse {
            return Work::Sleep { until: None };
        }
        if let Some(settlement) = self.session.refuse_chunk() {
            return Work::Settle(settlement);
        }
        if let Some(work) = self.recover(now) {
            return work;
        }
        if let Some((ticket, outcome)) = self.session.warmed(now) {
            let tickets = vec![ticket];
            return Work::Answer(Answered { tickets, outcome });
        }
        if self.session.take_fallback() {
            return Work::Tell(News::Relieved);
        }
        if self.session.take_over(now) {
            return Work::Tell(News::Regained);
        }
        if let Some(launch) = self.session.launch(now) {
            self.idle_since = None;
            self.is_face_idle = false;
            self.timed = Timed::Encode(now);
            if !launch.flights.is_empty() {
                self.disturb_probe(f64::INFINITY);
            }
            return Work::Launch(launch);
        }
        if let Some(answered) = self.session.take_answered() {
            return Work::Answer(answered);
        }
        let compiles = self.session.compiles();
        if !compiles.is_empty() {
            let generation = self.session.generation();
            return Work::Compile {
                generation,
                compiles,
            };
        }
        self.idle_work(now)
    }

    /// What a face without frames does now. Besides what [`Driver::next`] does, this sends open
    /// batches by the session's policy, and a full queue whatever the policy.
    pub fn next_by_policy(&mut self, now: Millis) -> Work {
        if self.phase != Phase::InUse {
            return self.next(now);
        }
        let session = &mut self.session;
        if self.is_face_idle && session.desired_size() <= 0 {
            session.flush();
        }
        match session.due(now) {
            Due::TaskEnd if self.is_face_idle => {
                self.is_face_idle = false;
                return Work::Gather;
            }
            Due::TaskEnd => session.flush(),
            Due::Now | Due::At(_) | Due::Idle => {}
        }
        let work = self.next(now);
        match (work, self.session.due(now)) {
            (Work::Sleep { until }, Due::At(moment)) => Work::Sleep {
                until: earlier(until, Some(moment)),
            },
            (work, _) => work,
        }
    }

    /// Notes that the face has nothing on hand: its sleep is over, or it has neither answers to
    /// hand out nor flights to await.
    pub fn wake(&mut self, now: Millis) {
        self.is_face_idle = true;
        self.check_stall(now);
    }

    /// Counts the device as lost if it has owed an answer for too long. This is not part of
    /// [`Driver::next`]: after a script that ran for long, a page takes the answers that came
    /// meanwhile before it asks whether one is overdue.
    pub fn check_stall(&mut self, now: Millis) {
        if self.stalls_at().is_some_and(|moment| moment <= now) {
            self.session.lose(self.session.generation());
        }
    }

    /// Computes the CPU share of a launch that [has one](Launch::has_cpu_share), while the GPU is
    /// at work on the other calls. The share's flight goes first: its results are there.
    pub fn compute(&mut self, launch: &mut Launch, now: Millis) {
        self.note_time(now);
        launch.flights.insert(0, self.session.compute(launch.batch));
        self.timed = Timed::Compute(launch.batch, now);
    }

    /// Takes the outcome of a batch's next flight; the answers to hand out, if there are any,
    /// and the flights that were sent in its place. See [`Session::settle`].
    pub fn settle(&mut self, landing: Landing, now: Millis) -> Option<Settlement> {
        let Landing {
            batch,
            generation,
            outcome,
        } = landing;
        let outcome = outcome.and_then(Readback::still_there);
        let launch = LaunchId { batch, generation };
        self.session.note_landing(launch, &outcome, now);
        let settlement = self.session.settle(batch, generation, outcome)?;
        match self.calibration {
            Calibration::AfterAnswer { from } if from <= now && settlement.outcome.is_ok() => {
                self.calibrate();
            }
            _ => {}
        }
        Some(settlement)
    }

    /// Takes the outcome of a compilation.
    pub fn adopt(&mut self, generation: Generation, compiled: Compiled, now: Millis) {
        self.session.compiled(generation, compiled, now);
    }

    /// Takes the outcome of a probe, and for how many milliseconds of the probe's time the face's
    /// thread had no look at it. A probe tells nothing if it failed, if the GPU was sent a batch
    /// meanwhile, or if the thread was busy with other work for much of the time.
    pub fn note_probe(&mut self, outcome: &Result<Readback, Error>, late_ms: f64, now: Millis) {
        self.disturb_probe(late_ms);
        let Calibration::Measures {
            generation,
            since,
            busy_ms,
        } = self.calibration
        else {
            return;
        };
        self.calibration = Calibration::Waits;
        if matches!(outcome, Err(Error::DeviceLost(_))) {
            self.session.lose(generation);
        }
        let took = now.0 - since.0;
        let is_well = outcome.is_ok() && busy_ms <= took * BUSY_SHARE;
        self.session
            .note_probe(if is_well { took } else { f64::INFINITY });
    }

    /// Measures the cost model while nothing is in flight, and once more some time later where
    /// the page is too busy; [`Work::EndCalibration`] follows when the model is known.
    pub fn calibrate(&mut self) {
        self.session.calibrate();
        self.calibration = Calibration::Waits;
    }

    /// Measures the cost model as soon as a call was answered.
    pub fn calibrate_after_answer(&mut self) {
        self.calibration = Calibration::AfterAnswer { from: Millis(0.0) };
    }

    /// Notes that the device of this generation is lost.
    pub fn lose(&mut self, generation: Generation) {
        self.session.lose(generation);
    }

    /// Whether the device of this generation is lost or replaced, so that no answer of it
    /// settles anything.
    pub fn is_gone(&self, generation: Generation) -> bool {
        generation != self.session.generation()
    }

    /// Takes the outcome of [`Work::Replace`] or [`Work::Look`]: a GPU that works, or none.
    /// Where a lost device is replaced, nothing is sent until [`Driver::resume`].
    pub fn take_device(&mut self, mut found: Option<D>, now: Millis) -> Takeover<D> {
        let mut news = None;
        if self.phase == Phase::Closed {
            found.iter_mut().for_each(Device::destroy);
        } else if self.session.is_lost() {
            news = Some(match found {
                Some(_) => News::Restored,
                None => News::FellBack,
            });
            let device = found.unwrap_or_else(self.config.cpu);
            found = Some(self.session.replace_device(device, now));
            self.phase = Phase::Filling;
        } else if let Some(gpu) = found.take() {
            self.session.welcome(gpu, now);
        } else {
            self.session.missed(now);
        }
        Takeover {
            unneeded: found,
            news,
        }
    }

    /// Goes on once the face has filled all tensors that it could fill; the calls that read
    /// another tensor, which the face is to reject.
    pub fn resume(&mut self) -> Vec<Ticket> {
        if self.phase == Phase::Closed {
            return Vec::new();
        }
        self.phase = Phase::InUse;
        if self.session.is_lost() {
            return Vec::new(); // The tensors are filled again on the device after this one.
        }
        self.session.give_up_unreadable()
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Ends the driver: nothing is sent any more. The face ends the session.
    pub fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    /// The remedy of a loss that is not known to the face yet, or a due look for a GPU.
    fn recover(&mut self, now: Millis) -> Option<Work> {
        let looks = self.session.next_look();
        if !self.session.is_unheard() && looks.is_none_or(|moment| moment > now) {
            return None;
        }
        let pauses = self.config.pauses;
        Some(match self.session.remedy(now)? {
            Remedy::Reopen => Work::Replace { pauses },
            Remedy::FallBack => Work::Replace { pauses: &[] },
            Remedy::Look => Work::Look {
                pauses: &pauses[..1],
            },
        })
    }

    /// Notes how long the last encoding or computing took.
    fn note_time(&mut self, now: Millis) {
        match std::mem::replace(&mut self.timed, Timed::Nothing) {
            Timed::Nothing => {}
            Timed::Encode(since) => self.session.note_encode(now.0 - since.0),
            Timed::Compute(batch, since) => {
                let took = now.0 - since.0;
                self.session.note_compute(batch, took);
                self.disturb_probe(took);
            }
        }
    }

    /// Notes for how long other work held up a probe, if one is in flight.
    fn disturb_probe(&mut self, ms: f64) {
        if let Calibration::Measures { busy_ms, .. } = &mut self.calibration {
            *busy_ms += ms;
        }
    }

    /// The work where no batch is to be sent: a probe, trimming, or sleep.
    fn idle_work(&mut self, now: Millis) -> Work {
        let is_face_idle = std::mem::take(&mut self.is_face_idle);
        let mut until = None;
        if self.session.in_flight() == 0 {
            match self.calibration {
                // The face is to hand out its answers first, and asks again.
                Calibration::Waits if !is_face_idle => until = Some(now),
                Calibration::Waits => return self.probe(now),
                Calibration::Measures { .. } => {}
                Calibration::Over | Calibration::AfterAnswer { .. } => {
                    until = self.trims_at(now);
                    if is_face_idle && until.is_some_and(|moment| moment <= now) {
                        self.session.trim();
                        return Work::Trim;
                    }
                }
            }
        }
        let until = earlier(until, self.stalls_at());
        Work::Sleep {
            until: earlier(until, self.session.next_look()),
        }
    }

    /// When memory is freed that is kept for the next batch, if there may be any.
    fn trims_at(&mut self, now: Millis) -> Option<Millis> {
        if !self.session.may_trim() {
            return None;
        }
        let since = *self.idle_since.get_or_insert(now);
        Some(Millis(since.0 + IDLE_MS))
    }

    /// Sends the next probe, if the cost model needs one more.
    fn probe(&mut self, now: Millis) -> Work {
        let generation = self.session.generation();
        let Some(flight) = self.session.next_probe() else {
            let is_known = !matches!(self.session.model(), Some((_, false)));
            if is_known || self.session.is_lost() {
                self.calibration = Calibration::Over;
                return Work::EndCalibration;
            }
            let from = Millis(now.0 + AGAIN_MS);
            self.calibration = Calibration::AfterAnswer { from };
            return self.idle_work(now);
        };
        self.calibration = Calibration::Measures {
            generation,
            since: now,
            busy_ms: 0.0,
        };
        Work::Probe { generation, flight }
    }

    /// When the device will have owed an answer for too long: to a batch, a compilation or a
    /// probe.
    fn stalls_at(&self) -> Option<Millis> {
        if self.session.is_lost() {
            return None; // A lost device owes nothing.
        }
        let mut since = self.session.oldest_in_flight();
        if let Calibration::Measures {
            generation,
            since: probed,
            ..
        } = self.calibration
            && !self.is_gone(generation)
        {
            since = earlier(since, Some(probed));
        }
        let since = since?;
        Some(Millis(since.0 + self.config.stall_ms))
    }
}

/// The earlier of two moments, or the one that there is.
fn earlier(a: Option<Millis>, b: Option<Millis>) -> Option<Millis> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Millis(a.0.min(b.0))),
        (a, b) => a.or(b),
    }
}

impl<D> std::fmt::Debug for Driver<D>
where
    Session<D>: std::fmt::Debug,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver")
            .field("session", &self.session)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
