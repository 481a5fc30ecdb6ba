//! Devices that are lost, never answer or are not there, and who answers instead.

use std::sync::Mutex;

use super::super::device_event::DeviceEvent;
use super::*;
use crate::Model;
use crate::device::{CpuReason, DeviceInfo, Engine};

#[test]
fn a_lost_device_is_replaced_under_everyone() {
    explore(ROUGH, eager(), |gpu| {
        let asking = threads(2, &gpu, |gpu, n| three_calls(gpu, n, ROUGHLY));
        let taking = threads(1, &gpu, |gpu, _| {
            for _ in 0..2 {
                if let AnyDevice::Gpu(device) = gpu.shared().lock().driver.session.device() {
                    device.lose();
                }
                thread::yield_now();
            }
        });
        join(asking);
        join(taking);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn listeners_hear_every_event_of_the_device_in_its_order() {
    let world = World {
        flights: &[Fate::Arrives, Fate::LostWith],
        opens: &[Opens::Hardware],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&heard);
        let watch = gpu.on_device(move |event| {
            // A slow listener: meanwhile another device may be lost.
            (0..10).for_each(|_| thread::yield_now());
            own.lock().unwrap().push(*event);
        });
        join(threads(3, &gpu, |gpu, n| three_calls(gpu, n, ROUGHLY)));
        drop(watch);
        let heard = heard.lock().unwrap();
        for pair in heard.windows(2) {
            let may_follow: &[DeviceEvent] = match pair[0] {
                DeviceEvent::Lost => &[DeviceEvent::Restored, DeviceEvent::Fallback],
                DeviceEvent::Restored => &[DeviceEvent::Lost],
                // The CPU is never lost: a GPU was found.
                DeviceEvent::Fallback => &[DeviceEvent::Restored],
            };
            assert!(may_follow.contains(&pair[1]), "{heard:?}");
        }
    });
}

#[test]
fn whichever_device_answers_everyone_is_answered() {
    explore_on(EngineChoice::Auto, ROUGH, eager(), |gpu| {
        let asking = threads(3, &gpu, |gpu, n| {
            // Once the CPU has taken over, a call for the GPU finds none.
            let allowed = &[ROUGHLY, &[Code::NoAdapter]].concat();
            let engines = [EngineChoice::Gpu, EngineChoice::Auto, EngineChoice::Cpu];
            let calls = engines.map(|engine| ask(&gpu.on(engine), n));
            for (engine, call) in engines.into_iter().zip(calls) {
                match engine {
                    EngineChoice::Cpu => check(n, call.wait(), &[]),
                    EngineChoice::Auto | EngineChoice::Gpu => check(n, call.wait(), allowed),
                }
            }
        });
        join(asking);
        assert_quiet(gpu.shared());
        let stats = gpu.stats();
        assert!(stats.ran_on_cpu >= 3, "{stats:?}");
    });
}

#[test]
fn what_devices_take_is_measured_once_in_a_process() {
    fn measured(gpu: &Gpu) -> Model {
        loop {
            match gpu.model().expect("it chooses") {
                (model, true) => return model,
                _ => thread::yield_now(),
            }
        }
    }
    explore_on(EngineChoice::Auto, KIND, eager(), |gpu| {
        check(1, ask(&gpu, 1).wait(), &[]);
        let first = measured(&gpu);
        let config = Config {
            batch: eager(),
            ..Config::default()
        };
        // The cost model is measured once a call was answered.
        let next = block_on(Gpu::open(config)).unwrap();
        assert_eq!(measured(&next), first);
        assert_ne!(first, Model::default());
    });
}

#[test]
fn the_cpu_takes_over_where_no_other_device_opens() {
    let world = World {
        flights: &[Fate::LostWith],
        opens: &[Opens::Nothing],
        ..KIND
    };
    // Each batch is sent twice, the second time to the CPU.
    explore(world, eager(), |gpu| {
        assert_eq!(gpu.info().reason, None);
        join(threads(2, &gpu, |gpu, n| three_calls(gpu, n, &[])));
        assert_eq!(gpu.info().engine, Engine::Cpu);
        assert_eq!(gpu.info().reason, Some(CpuReason::DeviceLost));
    });
}

#[test]
fn a_gpu_in_software_takes_over_only_where_it_was_asked_for() {
    /// The device that answers once the first one is lost.
    fn next(gpu: &Gpu) -> DeviceInfo {
        if let AnyDevice::Gpu(device) = gpu.shared().lock().driver.session.device() {
            device.lose();
        }
        check(1, ask(&gpu.on(EngineChoice::Gpu), 1).wait(), &[]);
        gpu.info()
    }
    let world = World {
        opens: &[Opens::Software],
        ..KIND
    };
    explore_on(EngineChoice::Auto, world, eager(), |gpu| {
        let info = next(&gpu);
        assert_eq!(info.engine, Engine::Cpu);
        assert_eq!(info.reason, Some(CpuReason::DeviceLost));
    });
    explore_on(EngineChoice::Gpu, world, eager(), |gpu| {
        let info = next(&gpu);
        assert_eq!((info.engine, info.software), (Engine::Gpu, true));
    });
}

#[test]
fn the_cpu_takes_over_from_devices_that_never_answer() {
    let world = World {
        flights: &[Fate::LostBefore, Fate::LostWith],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let asking = |gpu: &Gpu, n| three_calls(gpu, n, &[Code::DeviceLost]);
        join(threads(2, &gpu, asking));
        check(1, ask(&gpu, 1).wait(), &[Code::DeviceLost]);
        check(2, ask(&gpu, 2).wait(), &[Code::DeviceLost]);
        check(3, ask(&gpu, 3).wait(), &[]);
        assert_eq!(gpu.info().engine, Engine::Cpu);
    });
}

#[test]
fn devices_that_answer_nothing_count_as_lost() {
    let world = World {
        flights: &[Fate::Arrives, Fate::Stalls],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let asking = |gpu: &Gpu, n| three_calls(gpu, n, &[Code::DeviceLost]);
        join(threads(2, &gpu, asking));
        assert_quiet(gpu.shared());
    });
}
