//! What a driver asks of its face.

use crate::batch::{BatchId, Millis};
use crate::device::{Compile, Flight, Generation, Readback};
use crate::error::Error;
use crate::session::{Answered, Launch, Settlement};

/// What a face does now.
pub enum Work {
    /// A batch was submitted. Where the launch has a CPU share, give it to
    /// [`Driver::compute`](super::Driver::compute) first. Then await its flights in order, and
    /// give the outcome of each to [`Driver::settle`](super::Driver::settle).
    Launch(Launch),
    /// Hand these answers out, like those of [`Driver::settle`](super::Driver::settle): nobody
    /// waits for their flight any more.
    Settle(Settlement),
    /// Wait for a moment, so that the calls of a burst gather in one batch.
    Gather,
    /// Await each compilation, and give its outcome to
    /// [`Driver::adopt`](super::Driver::adopt).
    Compile {
        /// The generation of the device that the kernels are for.
        generation: Generation,
        /// The compilations.
        compiles: Vec<Compile>,
    },
    /// Answer tickets that wait for no words: warm-ups, and calls that write tensors. With an error
    /// other calls may be among them.
    Answer(Answered),
    /// Tell the listeners.
    Tell(News),
    /// The device is lost: tell the listeners. Then look for a GPU after each of these pauses
    /// until there is one, and give it, or nothing, to
    /// [`Driver::take_device`](super::Driver::take_device). Without a pause no GPU is looked
    /// for, and the CPU takes over.
    Replace {
        /// In milliseconds.
        pauses: &'static [f64],
    },
    /// Look for a GPU as for [`Work::Replace`], while the CPU answers. No listener is told.
    Look {
        /// In milliseconds.
        pauses: &'static [f64],
    },
    /// Await a probe, and give its outcome to
    /// [`Driver::note_probe`](super::Driver::note_probe) at once: it is timed.
    Probe {
        /// The generation of the device that the probe was sent to.
        generation: Generation,
        /// A few calls that nobody made.
        flight: Flight,
    },
    /// Measuring the cost model has ended, with success or without.
    EndCalibration,
    /// Free the memory that the face keeps for the next batch.
    Trim,
    /// Sleep until something happens, or until this moment, of which
    /// [`Driver::wake`](super::Driver::wake) is to hear.
    Sleep {
        /// The moment, if there is one.
        until: Option<Millis>,
    },
}

/// The outcome of a batch's next flight.
pub struct Landing {
    /// The batch.
    pub batch: BatchId,
    /// The generation of the device that the batch was sent to.
    pub generation: Generation,
    /// Results, or why there are none.
    pub outcome: Result<Readback, Error>,
}

/// What became of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Another GPU replaced one that was lost.
    Restored,
    /// The CPU replaced a GPU that was lost.
    FellBack,
    /// The CPU took a batch that the GPU had no memory for.
    Relieved,
    /// A GPU took over from the CPU, with all tensors.
    Regained,
}

/// What [`Driver::take_device`](super::Driver::take_device) did.
#[derive(Debug)]
pub struct Takeover<D> {
    /// A device to be freed, which is destroyed already: the one that was replaced, or one that
    /// came when the session was over.
    pub unneeded: Option<D>,
    /// What took the place of a lost device, if anything did. The face fills the device's
    /// tensors before [`Driver::resume`](super::Driver::resume).
    pub news: Option<News>,
}
