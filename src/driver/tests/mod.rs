//! The driver with a device that fails and a clock in the test's hand.

mod by_example;
mod face;
mod under_random_events;

use super::*;
use crate::batch::BatchConfig;
use crate::device::Engine;
use crate::session::Routing;
use crate::session::tests::{Frail, config};

/// The longest that a device may owe an answer, in milliseconds.
const STALL_MS: f64 = 10_000.0;

const PAUSES: [f64; 2] = [0.0, 50.0];

/// A GPU with small chunks and a compiler.
fn gpu() -> Frail {
    Frail::in_chunks(1 << 20, 200).gpu().compiling()
}

fn cpu() -> Frail {
    Frail::new(1 << 20)
}

fn lost() -> Error {
    Error::DeviceLost("test".into())
}

/// Who flushes open batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// The driver, by the session's policy.
    Policy,
    /// A clock of frames, which flushes the session.
    Frames,
}

impl Pace {
    fn next(self, driver: &mut Driver<Frail>, now: Millis) -> Work {
        match self {
            Pace::Policy => driver.next_by_policy(now),
            Pace::Frames => driver.next(now),
        }
    }
}

/// A driver of a session on a GPU, with a CPU beside it.
fn driver(gpu: Frail, batch: BatchConfig, routing: Option<crate::Model>) -> Driver<Frail> {
    let session = Session::new(gpu, batch).expect("valid settings");
    let routing = routing.map(Routing::from);
    let config = DriverConfig {
        stall_ms: STALL_MS,
        pauses: &PAUSES,
        cpu,
    };
    Driver::new(session.with_companion(cpu(), routing), config)
}
