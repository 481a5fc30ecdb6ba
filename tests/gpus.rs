//! The adapters of a machine, sessions on those that are named, and streams over
//! several sessions. No test needs more than one adapter.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use engines::{in_time, manual, open};
use framebatch::device::Engine;
use framebatch::{
    Adapter, AdapterKind, BatchConfig, Code, Config, EngineChoice, Gpu, Gpus, Policy, Preset,
    State, adapters,
};
use pollster::block_on;
use samples::Samples;

fn listed() -> Vec<Adapter> {
    let listed = block_on(adapters());
    assert!(!listed.is_empty(), "tests need an adapter, if in software");
    listed
}

fn on(adapter: &Adapter) -> Config {
    Config {
        engine: EngineChoice::Gpu,
        adapter: Some(adapter.clone()),
        ..Config::default()
    }
}

#[test]
fn every_adapter_can_be_opened_by_name() {
    for (index, adapter) in listed().iter().enumerate() {
        assert_eq!(adapter.index, index);
        let gpu = block_on(Gpu::open(on(adapter))).unwrap();
        let info = gpu.info();
        assert_eq!(info.adapter, adapter.name);
        assert_eq!(info.software, adapter.kind == AdapterKind::Software);
        assert_eq!(gpu.lerp(&[0.0], &[2.0], 0.5).wait().unwrap(), [1.0]);
    }
}

#[test]
fn a_lost_device_comes_back_on_its_adapter() {
    in_time(|| {
        for adapter in listed() {
            let gpu = block_on(Gpu::open(on(&adapter))).unwrap();
            gpu.wgpu_device().unwrap().destroy();
            assert_eq!(gpu.lerp(&[0.0], &[2.0], 0.5).wait().unwrap(), [1.0]);
            assert_eq!(gpu.info().adapter, adapter.name);
            assert_eq!(gpu.info().engine, Engine::Gpu);
        }
    });
}

#[test]
fn an_adapter_that_is_gone_is_an_error_even_where_the_cpu_would_do() {
    let mut gone = listed().remove(0);
    gone.bus = "ffff:ff:1f.7".into();
    for engine in [EngineChoice::Auto, EngineChoice::Gpu] {
        let error = block_on(Gpu::open(Config {
            engine,
            ..on(&gone)
        }));
        let error = error.unwrap_err();
        assert_eq!(error.code(), Code::NoAdapter);
        let expected = format!(
            "{} is not there any more; list the adapters again",
            gone.name
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_adapter_in_software_is_opened_where_a_gpu_is_asked_for_and_else_never() {
    for adapter in listed() {
        let gpu = block_on(Gpu::open(Config {
            engine: EngineChoice::Auto,
            ..on(&adapter)
        }));
        let is_hardware = adapter.kind != AdapterKind::Software;
        assert_eq!(gpu.unwrap().info().engine == Engine::Gpu, is_hardware);
    }
}

#[test]
fn all_of_a_machine_are_opened_each_once() {
    let is_hardware = |adapter: &&Adapter| adapter.kind != AdapterKind::Software;
    let hardware = listed().iter().filter(is_hardware).count();
    for engine in [EngineChoice::Auto, EngineChoice::Gpu, EngineChoice::Cpu] {
        let config = Config {
            engine,
            ..Config::default()
        };
        let gpus = Gpus::open_blocking(config.clone()).unwrap();
        let opened = gpus.as_ref().len();
        assert!((1..=hardware.max(1)).contains(&opened), "{opened}");
        if hardware == 0 || engine == EngineChoice::Cpu {
            let usual = block_on(Gpu::open(config)).unwrap().info();
            assert_eq!(gpus.as_ref()[0].info(), usual);
        }
    }
    let error = Gpus::open_blocking(on(&listed()[0])).unwrap_err();
    assert_eq!(error.code(), Code::InvalidInput);
    assert_eq!(Gpus::new([]).unwrap_err().code(), Code::InvalidInput);
}

fn sessions(count: usize, engine: EngineChoice, batch: &BatchConfig) -> Gpus {
    let one = |_| open(engine, batch.clone());
    Gpus::new((0..count).map(one).collect::<Vec<Gpu>>()).expect("some sessions")
}

fn chunk(k: u64) -> Vec<State> {
    Samples(k).states(100 + 37 * usize::try_from(k % 11).expect("a small number"))
}

#[test]
fn streams_are_in_order_over_all_sessions() {
    in_time(|| {
        for (engine, batch) in [
            (EngineChoice::Cpu, Preset::Eager.config()),
            (EngineChoice::Gpu, Preset::Eager.config()),
            (EngineChoice::Gpu, manual()),
        ] {
            let gpus = sessions(3, engine, &batch);
            let alone = open(engine, manual());
            let chunks = (0..60).map(chunk);
            let gradients =
                gpus.stream_blocking(chunks, |gpu, chunk| gpu.compute_gradients(&chunk));
            let mut count = 0;
            for (k, streamed) in (0..).zip(gradients) {
                let expected = alone.compute_gradients(&chunk(k));
                alone.flush();
                assert_eq!(streamed.unwrap(), expected.wait().unwrap(), "chunk {k}");
                count += 1;
            }
            assert_eq!(count, 60);
            let calls: Vec<u64> = gpus.stats().iter().map(|stats| stats.calls).collect();
            assert_eq!(calls.iter().sum::<u64>(), 60);
            // What is sent at once may be done before the next is dealt out, so the
            // others can be left with nothing; what waits is shared.
            let waits = batch.policy == Policy::Manual;
            assert!(!waits || calls.iter().all(|calls| *calls > 5), "{calls:?}");
        }
    });
}

#[test]
fn chunks_go_where_the_fewest_bytes_are() {
    let gpus = sessions(3, EngineChoice::Cpu, &manual());
    let lengths = [1000, 10, 10, 10, 400, 300, 500, 20];
    let mut order = Vec::new();
    let chunks = lengths.iter().map(|length| vec![State::default(); *length]);
    let results = gpus.stream_blocking(chunks, |gpu, chunk| {
        let before: Vec<u64> = gpus.stats().iter().map(|stats| stats.calls).collect();
        let call = gpu.compute_gradients(&chunk);
        let after = gpus.stats();
        order.push((0..3).find(|at| after[*at].calls > before[*at]).unwrap());
        call
    });
    // All of them are taken before the first one is sent.
    let results: Vec<usize> = results.map(|result| result.unwrap().len() / 32).collect();
    assert_eq!(results, lengths);
    assert_eq!(order, [0, 1, 2, 1, 2, 1, 1, 2]);
}

#[test]
fn a_stream_outlives_the_loss_of_a_device() {
    in_time(|| {
        let gpus = sessions(2, EngineChoice::Gpu, &Preset::Eager.config());
        let chunks = (0..80).map(|k| {
            if k % 25 == 20 {
                let gpu = &gpus.as_ref()[usize::from(k > 40)];
                gpu.wgpu_device().unwrap().destroy();
            }
            chunk(k)
        });
        let gradients = gpus.stream_blocking(chunks, |gpu, chunk| gpu.compute_gradients(&chunk));
        let mut count = 0;
        for (k, floats) in (0..).zip(gradients) {
            assert_eq!(floats.unwrap().len(), chunk(k).len() * 32, "chunk {k}");
            count += 1;
        }
        assert_eq!(count, 80);
    });
}
