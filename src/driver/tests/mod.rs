//! The driver with a device that fails and a clock in the test's hand.

mod by_example;
mod face;
mod under_random_events;

use super::*;
use crate::batch::BatchConfig;
use crate::device::Engine;
use crate::session::Routing;
use crate::session::tests::{Frail, config};

/// Milliseconds that a device may owe an answer.
const STALL_MS: f64 = 10_000.0;

const PAUSES: [f64; 2] = [0.0, 50.0];

/// A GPU that likes small chunks and has a compiler.
fn gpu() -> Frail {
    Frail::in_chunks(1 << 20, 200).gpu().compiling()
}

fn processor() -> Frail {
    Frail::new(1 << 20)
}

fn lost() -> Error {
    Error::DeviceLost("test".into())
}

/// Who says when calls go that nobody asked to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// The driver, by the session's policy.
    Policy,
    /// Somebody else, who flushes the session.
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

/// Drives a session on a GPU, with a processor beside it.
fn driver(gpu: Frail, batch: BatchConfig, routing: Option<crate::Model>) -> Driver<Frail> {
    let session = Session::new(gpu, batch).expect("valid settings");
    let routing = routing.map(Routing::from);
    let config = DriverConfig {
        stall_ms: STALL_MS,
        pauses: &PAUSES,
        processor,
    };
    Driver::new(session.with_companion(processor(), routing), config)
}
