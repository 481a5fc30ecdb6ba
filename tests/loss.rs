//! A real GPU that goes away: by `destroy` on the wgpu device, at any moment and
//! from any thread.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use engines::{in_time, manual, open, open_as};
use framebatch::device::Engine;
use framebatch::{BatchConfig, Call, Code, Config, DeviceEvent, EngineChoice, Error, Gpu};
use framebatch::{Preset, Priority};
use pollster::block_on;

/// Long enough to be more than a moment on its way.
const FLOATS: usize = 4096;

fn ask(gpu: &Gpu, value: u16) -> Call<f32> {
    let value = f32::from(value);
    gpu.lerp(&[value; FLOATS], &[value + 2.0; FLOATS], 0.5)
}

/// Whether a call has its own values; if not, it says that the device went.
fn is_right(value: u16, answer: Result<Vec<f32>, Error>) -> bool {
    match answer {
        Ok(floats) => {
            assert_eq!(floats, [f32::from(value) + 1.0; FLOATS]);
            true
        }
        Err(error) => {
            assert_eq!(error.code(), Code::DeviceLost, "{error}");
            false
        }
    }
}

fn destroy(gpu: &Gpu) {
    if let Some(device) = gpu.wgpu_device() {
        device.destroy();
    }
}

#[test]
fn a_device_lost_once_costs_no_call() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        let calls: Vec<(u16, Call<f32>)> = (0..100).map(|n| (n, ask(&gpu, n))).collect();
        destroy(&gpu);
        gpu.flush();
        for (value, call) in calls {
            assert!(is_right(value, call.wait()), "it was sent again");
        }
        assert_eq!(gpu.info().engine, Engine::Gpu);
        let stats = gpu.stats();
        let counts = (stats.calls, stats.settled, stats.rejected, stats.pending);
        assert_eq!(counts, (100, 100, 0, 0));
    });
}

#[test]
fn listeners_hear_what_becomes_of_the_device() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        let (sender, events) = mpsc::channel();
        let kept = gpu.on_device(move |event| sender.send(*event).expect("the test listens"));
        let heard = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&heard);
        drop(gpu.on_device(move |_| own.store(true, Ordering::Relaxed)));
        let broken = gpu.on_device(|_| panic!("a listener's own matter"));
        for _ in 0..2 {
            let call = ask(&gpu, 1);
            destroy(&gpu);
            gpu.flush();
            assert!(is_right(1, call.wait()));
            let next = || events.recv_timeout(Duration::from_secs(60)).expect("told");
            assert_eq!([next(), next()], [DeviceEvent::Lost, DeviceEvent::Restored]);
        }
        assert!(!heard.load(Ordering::Relaxed), "it listens no more");
        drop((kept, broken));
        gpu.dispose();
        assert!(
            events.recv().is_err(),
            "nothing more, and nobody holds the listener"
        );
    });
}

#[test]
fn losses_at_any_moment_leave_right_values_or_a_typed_error() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let asking: Vec<_> = (0..4_u16)
                .map(|thread| {
                    let gpu = &gpu;
                    scope.spawn(move || {
                        for round in 0..50 {
                            let values = [0, 1, 2].map(|k| thread * 1000 + round * 3 + k);
                            let calls = values.map(|value| ask(gpu, value));
                            for (value, call) in values.into_iter().zip(calls) {
                                is_right(value, call.wait());
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                // Each device answers something first: losses in a row end on the CPU.
                for answered in (10..).step_by(25) {
                    while gpu.stats().settled < answered {
                        if over.load(Ordering::Relaxed) {
                            return;
                        }
                        thread::yield_now();
                    }
                    destroy(&gpu);
                }
            });
            let ended: Vec<_> = asking.into_iter().map(|thread| thread.join()).collect();
            over.store(true, Ordering::Relaxed);
            for thread in ended {
                thread.unwrap();
            }
        });
        for value in 0..10 {
            while !is_right(value, ask(&gpu, value).wait()) {}
        }
        let stats = gpu.stats();
        assert_eq!(stats.pending, 0);
        assert_eq!(stats.calls, stats.settled + stats.rejected);
    });
}

#[test]
fn devices_that_never_answer_give_way_to_the_cpu_for_a_while() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(device) = gpu.wgpu_device() {
                    device.destroy();
                    thread::yield_now();
                }
            });
            while gpu.info().engine == Engine::Gpu {
                is_right(1, ask(&gpu, 1).wait());
            }
        });
        assert!(
            is_right(2, ask(&gpu, 2).wait()),
            "nothing goes away any more"
        );
        // What the CPU alone has seen is there when a GPU has taken over again.
        let tensor = gpu.tensor(&[3.0; 4], &[4]).expect("room");
        while gpu.info().engine == Engine::Cpu {
            thread::sleep(Duration::from_millis(10));
        }
        let mut batch = gpu.on(EngineChoice::Gpu).batch();
        let x = batch.tensor(&tensor).expect("a tensor of the session");
        let y = batch.scale(x, 2.0).expect("floats");
        block_on(batch.execute()).expect("a GPU");
        assert_eq!(batch.read(y).wait().expect("computed"), [6.0; 4]);
        assert!(is_right(4, ask(&gpu, 4).wait()));
    });
}

#[test]
fn a_lost_gpu_is_opened_again_while_the_cpu_has_batches_all_the_time() {
    const QUEUED: u16 = 256;
    in_time(|| {
        // A batch has one call, so that one follows another as long as calls are queued.
        let single = BatchConfig {
            max_batch_size: Some(FLOATS as u64),
            ..Preset::Eager.config()
        };
        let gpu = open(EngineChoice::Gpu, single);
        assert!(is_right(1, ask(&gpu, 1).wait()));
        let cpu = gpu.on(EngineChoice::Cpu);
        let mut queued: VecDeque<Call<f32>> = (0..QUEUED).map(|n| ask(&cpu, n)).collect();
        let is_over = AtomicBool::new(false);
        destroy(&gpu);
        thread::scope(|scope| {
            // The CPU is never idle: its next call is made before its oldest returns.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    queued.push_back(ask(&cpu, 3));
                    let oldest = queued.pop_front().expect("there are many");
                    oldest.wait().expect("the CPU is not lost");
                }
            });
            let answer = ask(&gpu, 2).wait();
            is_over.store(true, Ordering::Relaxed);
            assert!(is_right(2, answer));
        });
        assert_eq!(gpu.info().engine, Engine::Gpu);
    });
}

/// Data that nothing has written over is there again, whoever waits to write it.
#[test]
fn writes_that_wait_take_no_data_from_those_before_them() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        // A call that goes at once finds the loss, and is sent again.
        let urgent = gpu.with_priority(Priority::High);
        let lose = || {
            destroy(&gpu);
            assert!(is_right(1, ask(&urgent, 1).wait()));
        };
        let [part, whole, given_up] = [4_u32, 2, 2].map(|count| {
            let tensor = gpu.tensor(&[1.0, 2.0, 3.0, 4.0][..count as usize], &[count]);
            tensor.expect("its shape")
        });
        let before = [&part, &whole, &given_up].map(|tensor| gpu.read(tensor));
        let writes = [
            gpu.write(&part, 1, &[9.0]),
            gpu.write(&whole, 0, &[8.0, 9.0]),
        ];
        drop(gpu.write(&given_up, 0, &[5.0, 6.0]));
        let timeout = gpu
            .with_deadline(Duration::ZERO)
            .write(&given_up, 0, &[7.0]);
        assert_eq!(timeout.wait().expect_err("late").code(), Code::Timeout);
        let after = [&part, &whole, &given_up].map(|tensor| gpu.read(tensor));
        lose();
        gpu.flush();
        let right: [&[f32]; 3] = [&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0], &[1.0, 2.0]];
        for (call, right) in before.into_iter().zip(right) {
            assert_eq!(call.wait().expect("its data is kept"), right);
        }
        for write in writes {
            write.wait().expect("it waited for the next device");
        }
        let right: [&[f32]; 3] = [&[1.0, 9.0, 3.0, 4.0], &[8.0, 9.0], &[1.0, 2.0]];
        for (call, right) in after.into_iter().zip(right) {
            assert_eq!(call.wait().expect("written on the next device"), right);
        }
        // What was written over is the device's alone.
        lose();
        let gone = [&part, &whole, &given_up].map(|tensor| gpu.read(tensor));
        gpu.flush();
        let codes = gone.map(|call| call.wait().map_err(|error| error.code()));
        let lost = Err(Code::DeviceLost);
        assert_eq!(codes, [lost.clone(), lost, Ok(vec![1.0, 2.0])]);
    });
}

/// A listener may be the last who holds the session, on whatever thread it is called.
#[test]
fn a_listener_ends_its_session() {
    in_time(|| {
        for at in [DeviceEvent::Lost, DeviceEvent::Restored] {
            let gpu = open_as(Config {
                engine: EngineChoice::Gpu,
                batch: manual(),
                stall_ms: Some(f64::INFINITY),
                ..Config::default()
            });
            let call = ask(&gpu, 1);
            let device = gpu.wgpu_device().expect("it has a GPU").clone();
            let held = Arc::new(Mutex::new(None));
            let own = Arc::clone(&held);
            let (sender, over) = mpsc::channel();
            let listener = gpu.on_device(move |event| {
                if *event == at {
                    drop(own.lock().expect("nobody panics").take());
                    sender.send(()).expect("the test listens");
                }
            });
            device.destroy();
            held.lock().expect("nobody panics").insert(gpu).flush();
            over.recv().expect("told");
            let ended = call.wait();
            assert!(
                ended
                    .is_err_and(|error| [Code::Disposed, Code::DeviceLost].contains(&error.code()))
            );
            drop(listener);
        }
    });
}
