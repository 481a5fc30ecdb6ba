//! An application in WebAssembly that links framebatch like any crate, and exports functions of
//! its own to JavaScript.
//!
//! Without the feature `javascript` the library exports nothing: what the file has is the
//! application's. The core is driven by hand, on the CPU.

#![cfg(target_arch = "wasm32")]

use framebatch::batch::{Millis, Preset};
use framebatch::device::{Cpu, Readback};
use framebatch::graph::Timing;
use framebatch::session::{Session, Submission};
use framebatch::{Error, ops};
use wasm_bindgen::prelude::*;

/// Floats between two arrays; `t` is how far.
#[wasm_bindgen]
pub async fn between(a: Vec<f32>, b: Vec<f32>, t: f32) -> Result<Vec<f32>, JsError> {
    lerp(&a, &b, t)
        .await
        .map_err(|error| JsError::new(&error.to_string()))
}

async fn lerp(a: &[f32], b: &[f32], t: f32) -> Result<Vec<f32>, Error> {
    let mut session = Session::new(Cpu::default(), Preset::Eager.config())?;
    let recipe = session.recipe(ops::lerp(1, Timing::Call)?);
    // Operands lie end to end, each from a multiple of four words.
    let padded = a.len().next_multiple_of(4);
    let room = session.room(2 * padded as u64)?;
    for (at, x) in a.iter().enumerate() {
        room[at] = x.to_bits();
        room[padded + at] = b[at].to_bits();
    }
    let submission = Submission {
        recipe,
        rows: u32::try_from(a.len()).unwrap_or(u32::MAX),
        scalar: t.to_bits(),
        key: None,
    };
    session.submit(&submission, Millis(0.0))?;
    session.flush();
    let launch = session.launch(Millis(0.0)).expect("a batch was flushed");
    let mut results = Vec::new();
    for flight in launch.flights {
        let settlement = session.settle(launch.batch, launch.generation, flight.await);
        let settlement = settlement.expect("the batch is on its way");
        let Readback::Host(words) = settlement.outcome? else {
            unreachable!("the CPU's results lie on the host");
        };
        results.extend(words.iter().map(|word| f32::from_bits(*word)));
    }
    results.truncate(a.len());
    Ok(results)
}
