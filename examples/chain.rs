//! A small layer over weights that stay on the device, asked for by many tasks:
//! each records its own batch, and those that wait together are one submission.
//!
//!     cargo run --example chain [gpu|cpu]

#![expect(clippy::print_stdout, reason = "an example shows what happened")]

use framebatch::{Config, EngineChoice, Error, Gpu, Tensor};

const FEATURES: u16 = 64;
const UNITS: u16 = 32;

/// What all requests share.
#[derive(Clone)]
struct Layer {
    weights: Tensor,
    bias: Tensor,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = Gpu::open(config()).await?;
    println!("running on {}", gpu.info().adapter);
    let layer = Layer::new(&gpu)?;

    let tasks: Vec<_> = (0..200_u16)
        .map(|request| tokio::spawn(layer.clone().answer(gpu.clone(), request)))
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await??);
    }
    println!("request 100, unit 3: {:.4}", answers[100][3]);

    let stats = gpu.stats();
    println!("{} requests in {} batches", stats.calls, stats.batches);
    let device = stats.device;
    println!(
        "{} uploads, {} dispatches, {} read-backs, {} KiB up",
        device.uploads,
        device.dispatches,
        device.readbacks,
        device.bytes_up >> 10
    );
    Ok(())
}

impl Layer {
    fn new(gpu: &Gpu) -> Result<Layer, Error> {
        let wave = |i: u16| (f32::from(i) * 0.37).sin() / 8.0;
        let weights: Vec<f32> = (0..UNITS * FEATURES).map(wave).collect();
        let bias: Vec<f32> = (0..UNITS).map(wave).collect();
        Ok(Layer {
            weights: gpu.tensor(&weights, &[UNITS.into(), FEATURES.into()])?,
            bias: gpu.tensor(&bias, &[UNITS.into()])?,
        })
    }

    /// gelu(weights · x + bias).
    async fn answer(self, gpu: Gpu, request: u16) -> Result<Vec<f32>, Error> {
        let x: Vec<f32> = (0..FEATURES)
            .map(|i| f32::from(request ^ i) / 256.0)
            .collect();
        let mut batch = gpu.batch();
        let x = batch.upload(x);
        let (weights, bias) = (batch.tensor(&self.weights)?, batch.tensor(&self.bias)?);
        let y = batch.dot(weights, x)?;
        let y = batch.add(y, bias)?;
        let y = batch.gelu(y)?;
        batch.execute().await?;
        batch.read(y).await
    }
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
