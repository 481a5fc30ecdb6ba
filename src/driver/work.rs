//! What a driver asks of its face.

use crate::batch::{BatchId, Millis, Ticket};
use crate::device::{Compile, Flight, Generation, Readback};
use crate::error::Error;
use crate::session::Launch;

/// What to do now.
pub enum Work {
    /// A batch was submitted: await its flights in order, and give each to
    /// [`Driver::landed`](super::Driver::landed); before that all to
    /// [`Driver::compute`](super::Driver::compute) where it is parted.
    Launch(Launch),
    /// Let the calls of this burst gather, for a moment.
    Gather,
    /// Await each of these, and give what comes out to
    /// [`Driver::compiled`](super::Driver::compiled).
    Compile {
        /// The life of the device that they are for.
        generation: Generation,
        /// The work.
        compiles: Vec<Compile>,
    },
    /// Answer somebody who waits for no words.
    Answer {
        /// Who waits.
        ticket: Ticket,
        /// What there is to say.
        outcome: Result<(), Error>,
    },
    /// Tell whoever listens.
    Tell(News),
    /// Look for a GPU, after each of these pauses until there is one, and give it to
    /// [`Driver::opened`](super::Driver::opened).
    Open {
        /// In milliseconds.
        pauses: &'static [f64],
    },
    /// Give [`Driver::opened`](super::Driver::opened) nothing: no GPU is looked for.
    FallBack,
    /// Await it, and give what comes out to [`Driver::sampled`](super::Driver::sampled), at
    /// once: it is timed.
    Sample {
        /// The life of the device that it is on its way to.
        generation: Generation,
        /// A few calls that nobody made.
        flight: Flight,
    },
    /// The model is known, or cannot be.
    Calibrated,
    /// Free what is only kept for the next batch.
    Trim,
    /// Nothing, until something happens or this moment comes.
    /// [`Driver::wake`](super::Driver::wake) is to hear of the latter.
    Sleep {
        /// The moment, if there is one.
        until: Option<Millis>,
    },
}

/// What the next flight of a batch brought.
pub struct Landing {
    /// The batch.
    pub batch: BatchId,
    /// The life of the device that it was sent to.
    pub generation: Generation,
    /// Results, or why there are none.
    pub outcome: Result<Readback, Error>,
}

/// What became of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// It is lost; calls wait for another one, or for the processor.
    Lost,
    /// Another GPU replaced a lost one.
    Restored,
    /// The processor replaced it.
    FellBack,
    /// The processor took a batch that the GPU had no memory for.
    Relieved,
    /// A GPU took over from the processor, with all tensors.
    Regained,
}

/// What became of a device that was opened.
#[derive(Debug)]
pub enum Opened<D> {
    /// It, or the processor, replaced the lost device, which is to be freed. Its tensors
    /// are to be filled before [`Driver::filled`](super::Driver::filled).
    Replaced {
        /// The lost device.
        old: D,
        /// What took its place.
        news: News,
    },
    /// The session is over: the device is to be freed.
    Unneeded(D),
    /// There is nothing to do.
    Nothing,
}
