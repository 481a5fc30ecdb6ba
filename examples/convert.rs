//! Writes a model's folder with fewer bytes, as `npx framebatch convert` does.
//!
//!     cargo run --release --example convert IN OUT [int8|int4]

#![expect(clippy::print_stdout, reason = "a command says what it did")]

use framebatch::{Blocking, Config, EngineChoice, Storage, convert};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, storage @ ..] = &arguments[..] else {
        return Err("give a model's folder, and where the converted one goes".into());
    };
    let storage = match storage.first().map(String::as_str) {
        None | Some("int8") => Storage::Int8,
        Some("int4") => Storage::Int4,
        Some(other) => return Err(format!("give int8 or int4, got {other}").into()),
    };
    let config = Config {
        engine: EngineChoice::Cpu,
        ..Config::default()
    };
    let gpu = Blocking::open(config)?;
    let done = convert(gpu.gpu(), from, to, storage)?;
    println!(
        "{to}: {} bytes of weights instead of {}",
        done.bytes, done.bytes_before
    );
    if let Some((kept, layers)) = done.layers_as_int8 {
        println!("{kept} of {layers} layers as int8");
    }
    if let Some(fidelity) = done.fidelity {
        println!("the least cosine with the vectors of {from}: {fidelity:.6}");
    }
    Ok(())
}
