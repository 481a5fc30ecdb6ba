//! Drives a session by hand: write operands, submit, launch, read.

use framebatch::batch::{BatchConfig, Millis, Preset, Ticket};
use framebatch::device::{AnyDevice, Cpu, Gpu, GpuOptions, Readback};
use framebatch::program::RowOp;
use framebatch::session::{Launch, Session, Submission};

/// One call: its structure, operands in order, rows and scalar.
pub(crate) struct Asked<'a> {
    pub(crate) op: &'a RowOp,
    pub(crate) operands: &'a [&'a [u32]],
    pub(crate) rows: usize,
    pub(crate) t: f32,
}

/// The browser's GPU. There must be one.
pub(crate) async fn gpu() -> Session<AnyDevice> {
    let gpu = Gpu::open(&GpuOptions::default())
        .await
        .expect("this browser must offer WebGPU");
    session(AnyDevice::Gpu(gpu))
}

/// What every call is right on: the browser's GPU, the same with a mebibyte a buffer
/// and four in all, and the CPU.
pub(crate) async fn devices() -> [Session<AnyDevice>; 3] {
    [gpu().await, small_gpu().await, cpu()]
}

async fn small_gpu() -> Session<AnyDevice> {
    let limits = ["maxBufferSize", "maxStorageBufferBindingSize"];
    let options = GpuOptions {
        max_limits: limits.map(|name| (name.into(), 1 << 20)).to_vec(),
        ..GpuOptions::default()
    };
    let gpu = Gpu::open(&options).await.expect("limits that any GPU has");
    let config = BatchConfig {
        memory_budget: Some(4 << 20),
        ..Preset::Frame.config()
    };
    Session::new(AnyDevice::Gpu(gpu), config).expect("the preset is valid")
}

/// The CPU, in WebAssembly.
pub(crate) fn cpu() -> Session<AnyDevice> {
    session(AnyDevice::Cpu(Cpu::default()))
}

fn session(device: AnyDevice) -> Session<AnyDevice> {
    Session::new(device, Preset::Frame.config()).expect("the preset is valid")
}

/// Enters a call; its ticket.
pub(crate) fn submit(session: &mut Session<AnyDevice>, asked: &Asked<'_>) -> Ticket {
    let recipe = session.recipe(asked.op.clone());
    let words: usize = asked
        .operands
        .iter()
        .map(|operand| operand.len().next_multiple_of(4))
        .sum();
    let room = session.room(words as u64).expect("room");
    let mut at = 0;
    for operand in asked.operands {
        room[at..at + operand.len()].copy_from_slice(operand);
        at += operand.len().next_multiple_of(4);
    }
    let submission = Submission {
        recipe,
        rows: asked.rows as u32,
        scalar: asked.t.to_bits(),
        key: None,
    };
    session
        .submit(&submission, Millis(0.0))
        .expect("accepted")
        .ticket
}

/// Sends what is queued and reads all results, in submission order.
pub(crate) async fn flush(session: &mut Session<AnyDevice>) -> Vec<Vec<u32>> {
    session.flush();
    let mut results = Vec::new();
    while let Some(launch) = launch(session).await {
        land(session, launch, &mut results).await;
    }
    // What needed compiling went after the rest.
    results.sort_by_key(|(ticket, _)| *ticket);
    results.into_iter().map(|(_, words)| words).collect()
}

/// The next batch, and before it what it needs compiled.
async fn launch(session: &mut Session<AnyDevice>) -> Option<Launch> {
    loop {
        let launch = session.launch(Millis(0.0));
        let works = session.compiles();
        let is_done = launch.is_some() || works.is_empty();
        for work in works {
            let generation = session.generation();
            session.compiled(generation, work.await, Millis(0.0));
        }
        if is_done {
            return launch;
        }
    }
}

async fn land(
    session: &mut Session<AnyDevice>,
    launch: Launch,
    results: &mut Vec<(Ticket, Vec<u32>)>,
) {
    for flight in launch.flights {
        let outcome = flight.await;
        let settlement = session
            .settle(launch.batch, launch.generation, outcome)
            .expect("it was on its way");
        let readback = settlement.outcome.expect("the device works");
        let words = match &readback {
            Readback::Host(words) => words.to_vec(),
            Readback::Mapped(mapped) => {
                js_sys::Uint32Array::new(&mapped.array_buffer().into()).to_vec()
            }
        };
        for answer in settlement.answers {
            let part = &words[answer.span.at as usize..][..answer.span.words as usize];
            if answer.at == 0 {
                results.push((answer.ticket, Vec::new()));
            }
            // Parts come in order.
            results.last_mut().expect("just begun").1.extend(part);
        }
    }
}

/// Answers one call alone.
pub(crate) async fn ask(session: &mut Session<AnyDevice>, asked: &Asked<'_>) -> Vec<u32> {
    submit(session, asked);
    flush(session).await.remove(0)
}
