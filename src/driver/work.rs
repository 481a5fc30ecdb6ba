//! What a driver asks of its face.

use crate::batch::{BatchId, Millis, Ticket};
use crate::device::{Compile, Flight, Generation, Readback};
use crate::error::Error;
use crate::session::{Launch, Settlement};

/// What to do now.
pub enum Work {
    /// A batch was submitted: await its flights in order, and give each to
    /// [`Driver::landed`](super::Driver::landed); before that all to
    /// [`Driver::compute`](super::Driver::compute) where it is parted.
    Launch(Launch),
    /// Hand these answers out, as those that [`Driver::landed`](super::Driver::landed) gives:
    /// their flight is not awaited any more.
    Settle(Settlement),
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
    /// The device is lost: tell whoever listens. Then look for another one, after each of
    /// these pauses until there is one, and give what there is to
    /// [`Driver::opened`](super::Driver::opened). With no pause none is looked for: the
    /// processor takes over.
    Replace {
        /// In milliseconds.
        pauses: &'static [f64],
    },
    /// The same while the processor answers, and nobody is told.
    Look {
        /// In milliseconds.
        pauses: &'static [f64],
    },
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
    /// Another GPU replaced one that was lost.
    Restored,
    /// The processor replaced it.
    FellBack,
    /// The processor took a batch that the GPU had no memory for.
    Relieved,
    /// A GPU took over from the processor, with all tensors.
    Regained,
}

/// What came of a device that was opened, or of there being none.
#[derive(Debug)]
pub struct Opened<D> {
    /// A device that is destroyed and to be freed: the one that was replaced, or one that
    /// came when the session was over.
    pub unneeded: Option<D>,
    /// What took the place of a lost device, if anything did. Its tensors are to be filled
    /// before [`Driver::filled`](super::Driver::filled).
    pub news: Option<News>,
}
