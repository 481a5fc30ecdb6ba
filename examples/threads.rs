//! Plain threads share batches through a blocking handle.
//!
//!     cargo run --example threads [gpu|cpu]

#![expect(clippy::print_stdout, reason = "an example shows what happened")]

use std::thread;

use framebatch::{Blocking, Config, EngineChoice, Error, Mode, State};

fn main() -> Result<(), Error> {
    let gpu = Blocking::open(config())?;
    println!("running on {}", gpu.info().adapter);

    let answers: Vec<Result<Vec<f32>, Error>> = thread::scope(|scope| {
        let threads: Vec<_> = (1..16_u8)
            .map(|rho| {
                let gpu = &gpu;
                scope.spawn(move || slopes(gpu, rho))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread without panics"))
            .collect()
    });
    for (rho, slopes) in (-7..8).zip(answers) {
        println!("half way to rho {rho:2}: dm/drho is {:.4}", slopes?[0]);
    }

    let stats = gpu.stats();
    println!("{} calls in {} batches", stats.calls, stats.batches);
    let device = stats.device;
    println!(
        "{} submissions, {} read-backs",
        device.submits, device.readbacks
    );
    Ok(())
}

/// The gradients halfway from magnitude 1 to another one.
fn slopes(gpu: &Blocking, rho: u8) -> Result<Vec<f32>, Error> {
    let (one, other) = (State([0x80; 16]), State([rho << 4; 16]));
    let between = gpu.interpolate(&[one], &[other], 0.5, Mode::Slerp)?;
    gpu.compute_gradients(&between)
}

/// By default a GPU in hardware if there is one; a software adapter if asked.
fn config() -> Config {
    Config {
        engine: match std::env::args().nth(1).as_deref() {
            Some("gpu") => EngineChoice::Gpu,
            Some("cpu") => EngineChoice::Cpu,
            _ => EngineChoice::Auto,
        },
        ..Config::default()
    }
}
