//! Opens the two engines. A machine without a Vulkan adapter, at least a
//! software one, fails: nothing is skipped.

use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use framebatch::device::{self, GpuOptions};
use framebatch::{BatchConfig, Config, EngineChoice, Gpu, Policy, Preset};

/// A session on each engine, sending eagerly.
pub(crate) fn both() -> [Gpu; 2] {
    engines().map(|engine| {
        let config = Config {
            engine,
            batch: Preset::Eager.config(),
            ..Config::default()
        };
        open_as(config)
    })
}

/// A session on each engine, sending only when told.
pub(crate) fn both_manual() -> [Gpu; 2] {
    engines().map(|engine| open(engine, manual()))
}

/// Settings under which only `flush` sends.
pub(crate) fn manual() -> BatchConfig {
    BatchConfig {
        policy: Policy::Manual,
        max_wait: None,
        ..Preset::Eager.config()
    }
}

/// One engine.
pub(crate) fn open(engine: EngineChoice, batch: BatchConfig) -> Gpu {
    let config = Config {
        engine,
        batch,
        ..Config::default()
    };
    open_as(config)
}

/// A session with these settings, within the memory that tests have.
pub(crate) fn open_as(config: Config) -> Gpu {
    let engine = config.engine;
    pollster::block_on(Gpu::open(as_asked(config)))
        .unwrap_or_else(|error| panic!("opening with {engine:?}: {error}"))
}

/// A GPU without a session.
pub(crate) fn device() -> device::Gpu {
    let options = as_asked(Config::default()).gpu;
    pollster::block_on(device::Gpu::open(&options)).expect("an adapter")
}

/// The same settings of a session, within the memory that tests have.
pub(crate) fn within_memory(batch: BatchConfig) -> BatchConfig {
    let config = Config {
        batch,
        ..Config::default()
    };
    as_asked(config).batch
}

/// Whether tests were asked to do with the memory of [`small`].
pub(crate) fn is_small() -> bool {
    std::env::var_os("SMALL_DEVICE").is_some()
}

fn as_asked(config: Config) -> Config {
    if is_small() { small(config) } else { config }
}

/// The same on a device that holds a mebibyte in a buffer, and uses four in all.
pub(crate) fn small(config: Config) -> Config {
    let most = 1 << 20;
    let limits = ["maxBufferSize", "maxStorageBufferBindingSize"];
    Config {
        batch: BatchConfig {
            memory_budget: Some(4 * most),
            ..config.batch
        },
        gpu: GpuOptions {
            max_limits: limits.map(|name| (name.into(), most)).into(),
            ..config.gpu
        },
        ..config
    }
}

fn engines() -> [EngineChoice; 2] {
    [EngineChoice::Cpu, EngineChoice::Gpu]
}

/// Runs a test that would hang if it failed; it has two minutes, and twenty where much is asked for.
pub(crate) fn in_time(test: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        let _ = sender.send(()); // Nobody listens any more when the time is over.
    });
    let minutes = match std::env::var_os("LONG") {
        Some(_) => 20,
        None => 2,
    };
    match receiver.recv_timeout(Duration::from_secs(60 * minutes)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        // Without a message it panicked, and joining it says so.
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    }
}
