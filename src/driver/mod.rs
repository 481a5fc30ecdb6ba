//! What a session does next: when batches are launched, when a GPU counts as lost and
//! another one is opened, when the model is measured and memory is freed.
//!
//! Pure: it has no clock, no threads and no promises. A face asks [`Driver::next`] and
//! does that, tells what came of it and when, and asks again. Calls enter by the session
//! itself, so that a call costs nothing here.

mod work;

pub use work::{Landing, News, Opened, Work};

use crate::batch::{BatchId, Due, Millis, Ticket};
use crate::device::{Compiled, Device, Generation, Readback};
use crate::error::Error;
use crate::session::{Launch, LaunchId, Remedy, Session, Settlement};

/// Milliseconds without a batch after which memory that is kept for the next is freed.
const IDLE_MS: f64 = 2000.0;

/// What a face asks of its driver.
#[derive(Debug)]
pub struct DriverConfig<D> {
    /// Milliseconds that the device may owe an answer.
    pub stall_ms: f64,
    /// Milliseconds before each request for a GPU in the place of a lost one.
    pub pauses: &'static [f64],
    /// Makes the device that takes over where there is no GPU.
    pub processor: fn() -> D,
}

/// Drives a session.
pub struct Driver<D> {
    /// What is driven. Calls enter here.
    pub session: Session<D>,
    config: DriverConfig<D>,
    phase: Phase,
    timed: Timed,
    calibration: Calibration,
    /// When nothing was due first since the last batch.
    idle_since: Option<Millis>,
    /// Whether the face has nothing on hand, so that samples may be measured and calls
    /// may gather.
    is_face_idle: bool,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    InUse,
    /// A device took the place of a lost one, and its tensors are being filled.
    Filling,
    Closed,
}

/// What the time until the next question was spent on.
#[derive(Clone, Copy, Debug)]
enum Timed {
    Nothing,
    Encode(Millis),
    Compute(BatchId, Millis),
}

/// Whether the model is measured.
#[derive(Clone, Copy, Debug)]
enum Calibration {
    Over,
    /// Measuring begins once a call was answered: the program has what it came for.
    AfterAnswer,
    /// The next sample is sent when nothing else is in flight.
    Waits,
    /// A sample is in flight.
    Measures {
        generation: Generation,
        since: Millis,
    },
}

impl<D: Device> Driver<D> {
    /// Drives a session that is new.
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

    /// What to do now. To be asked, until the answer is [`Work::Sleep`], after every call
    /// that may go at once, every event, and when that sleep is over.
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
        if let Some((ticket, outcome)) = self.session.warmed() {
            return Work::Answer { ticket, outcome };
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
            return Work::Launch(launch);
        }
        let compiles = self.session.compiles();
        if !compiles.is_empty() {
            let generation = self.session.generation();
            return Work::Compile {
                generation,
                compiles,
            };
        }
        self.rest(now)
    }

    /// The same for a face that has no frames: it sends by the session's policy what nobody
    /// asked to be sent, and a full queue whatever the policy.
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

    /// Notes that the face has nothing on hand: its sleep is over, or it has neither
    /// answers to hand out nor flights to await first.
    pub fn wake(&mut self, now: Millis) {
        self.is_face_idle = true;
        self.look(now);
    }

    /// Takes the device for lost if it owes an answer for too long. Not part of
    /// [`Driver::next`], so that a face whose clock went on while nothing else did, as a
    /// page's does while a script runs, asks behind the answers that came meanwhile.
    pub fn look(&mut self, now: Millis) {
        if self.stalls_at().is_some_and(|moment| moment <= now) {
            self.session.lose(self.session.generation());
        }
    }

    /// Has the processor compute its share of a launch that [has
    /// one](Launch::has_cpu_share), while the GPU is at work on the rest. The flight of the
    /// share goes first: its results are there already.
    pub fn compute(&mut self, launch: &mut Launch, now: Millis) {
        self.note_time(now);
        launch.flights.insert(0, self.session.compute(launch.batch));
        self.timed = Timed::Compute(launch.batch, now);
    }

    /// Takes what the next flight of a batch brought: the answers to hand out, if any, and
    /// flights sent in its place. See [`Session::settle`].
    pub fn landed(&mut self, landing: Landing, now: Millis) -> Option<Settlement> {
        let Landing {
            batch,
            generation,
            outcome,
        } = landing;
        let launch = LaunchId { batch, generation };
        self.session.note_landing(launch, &outcome, now);
        let settlement = self.session.settle(batch, generation, outcome)?;
        if settlement.outcome.is_ok() && matches!(self.calibration, Calibration::AfterAnswer) {
            self.calibrate();
        }
        Some(settlement)
    }

    /// Takes what a compilation brought.
    pub fn compiled(&mut self, generation: Generation, compiled: Compiled, now: Millis) {
        self.session.compiled(generation, compiled, now);
    }

    /// Takes what a sample came to. One that failed, or had company, tells nothing.
    pub fn sampled(&mut self, outcome: &Result<Readback, Error>, now: Millis) {
        let Calibration::Measures { generation, since } = self.calibration else {
            return;
        };
        self.calibration = Calibration::Waits;
        if matches!(outcome, Err(Error::DeviceLost(_))) {
            self.session.lose(generation);
        }
        let is_well = outcome.is_ok() && self.session.in_flight() == 0;
        let took = now.0 - since.0;
        self.session
            .note_sample(if is_well { took } else { f64::INFINITY });
    }

    /// Measures the model while nothing is on its way; [`Work::Calibrated`] says that it
    /// is over.
    pub fn calibrate(&mut self) {
        self.session.calibrate();
        self.calibration = Calibration::Waits;
    }

    /// The same, as soon as a call was answered.
    pub fn calibrate_after_answer(&mut self) {
        self.calibration = Calibration::AfterAnswer;
    }

    /// Notes that the device of this life is gone.
    pub fn lose(&mut self, generation: Generation) {
        self.session.lose(generation);
    }

    /// Whether nothing comes of a device of this life any more.
    pub fn is_gone(&self, generation: Generation) -> bool {
        generation != self.session.generation()
    }

    /// Takes what came of [`Work::Replace`] or [`Work::Look`]: a GPU that works, or none.
    /// Where something replaced a lost device, nothing is sent until [`Driver::filled`].
    pub fn opened(&mut self, mut found: Option<D>, now: Millis) -> Opened<D> {
        let mut news = None;
        if self.phase == Phase::Closed {
            found.iter_mut().for_each(Device::destroy);
        } else if self.session.is_lost() {
            news = Some(match found {
                Some(_) => News::Restored,
                None => News::FellBack,
            });
            let device = found.unwrap_or_else(self.config.processor);
            found = Some(self.session.replace_device(device, now));
            self.phase = Phase::Filling;
        } else if let Some(gpu) = found.take() {
            self.session.welcome(gpu, now);
        } else {
            self.session.missed(now);
        }
        Opened {
            unneeded: found,
            news,
        }
    }

    /// Every tensor that could be was filled again. The calls that read another one, which
    /// the face is to reject.
    pub fn filled(&mut self) -> Vec<Ticket> {
        if self.phase == Phase::Closed {
            return Vec::new();
        }
        self.phase = Phase::InUse;
        self.session.give_up_unreadable()
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Sends nothing more. The face ends the session.
    pub fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    /// What a loss makes due, or a GPU that is to be looked for.
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

    /// Notes how long the face and the session were at what was asked for last.
    fn note_time(&mut self, now: Millis) {
        match std::mem::replace(&mut self.timed, Timed::Nothing) {
            Timed::Nothing => {}
            Timed::Encode(since) => self.session.note_encode(now.0 - since.0),
            Timed::Compute(batch, since) => self.session.note_compute(batch, now.0 - since.0),
        }
    }

    /// What there is to do where nothing is to be sent, and until when there is nothing.
    fn rest(&mut self, now: Millis) -> Work {
        let is_face_idle = std::mem::take(&mut self.is_face_idle);
        let mut until = None;
        if self.session.in_flight() == 0 {
            match self.calibration {
                // The face comes first.
                Calibration::Waits if !is_face_idle => until = Some(now),
                Calibration::Waits => return self.sample(now),
                Calibration::Measures { .. } => {}
                Calibration::Over | Calibration::AfterAnswer => {
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

    /// When memory that is kept for the next batch is freed, if there may be any.
    fn trims_at(&mut self, now: Millis) -> Option<Millis> {
        if !self.session.may_trim() {
            return None;
        }
        let since = *self.idle_since.get_or_insert(now);
        Some(Millis(since.0 + IDLE_MS))
    }

    /// Begins the next sample, if the model needs one more.
    fn sample(&mut self, now: Millis) -> Work {
        let generation = self.session.generation();
        let Some(flight) = self.session.next_sample() else {
            self.calibration = Calibration::Over;
            return Work::Calibrated;
        };
        self.calibration = Calibration::Measures {
            generation,
            since: now,
        };
        Work::Sample { generation, flight }
    }

    /// When what the device owes, a kernel that is being compiled for it and a sample
    /// included, will have taken too long.
    fn stalls_at(&self) -> Option<Millis> {
        if self.session.is_lost() {
            return None; // It owes nothing any more.
        }
        let mut since = self.session.oldest_in_flight();
        if let Calibration::Measures {
            generation,
            since: sampled,
        } = self.calibration
            && !self.is_gone(generation)
        {
            since = earlier(since, Some(sampled));
        }
        let since = since?;
        Some(Millis(since.0 + self.config.stall_ms))
    }
}

/// The earlier of two moments that there may be.
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
