//! Tasks of a tokio runtime share batches without knowing of each other.
//!
//!     cargo run --example tokio [gpu|cpu]

#![expect(clippy::print_stdout, reason = "an example shows what happened")]

use framebatch::{Config, EngineChoice, Error, Gpu};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = Gpu::open(config()).await?;
    println!("running on {}", gpu.info().adapter);

    let tasks: Vec<_> = (0..1000).map(|_| tokio::spawn(turn(gpu.clone()))).collect();
    let mut turned = Vec::new();
    for task in tasks {
        turned.push(task.await??);
    }
    assert!(turned.iter().all(|q| *q == turned[0]));
    println!("half of a quarter turn is {:?}", turned[0]);

    let stats = gpu.stats();
    println!("{} calls in {} batches", stats.calls, stats.batches);
    let device = stats.device;
    println!(
        "{} submissions, {} read-backs",
        device.submits, device.readbacks
    );
    Ok(())
}

/// Halfway between no turn and a quarter turn about z, in a call of its own.
async fn turn(gpu: Gpu) -> Result<Vec<f32>, Error> {
    let none = [0.0, 0.0, 0.0, 1.0];
    let quarter = [0.0, 0.0, 0.5_f32.sqrt(), 0.5_f32.sqrt()];
    gpu.slerp(&none, &quarter, 0.5).await
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
