//! Where clips and their results lie: tensors that are written, places given
//! back, devices lost.

use std::sync::mpsc;

use framebatch::clips::{Easing, Interpolation, Kind, Track, Wrap};
use framebatch::{BatchConfig, Clip, Code, EngineChoice, Gpu, Preset, Storage, Tensor};

use crate::engines;
use crate::stall::Stall;

/// From a value at 0 s to another at 1 s.
pub(crate) fn ramp(gpu: &Gpu, from: f32, to: f32) -> Clip {
    let track = Track {
        times: &[0.0, 1.0],
        values: &[from, to],
        kind: Kind::Vector,
        interpolation: Interpolation::Linear,
        easing: Easing::Linear,
    };
    gpu.clip(&[track], None).unwrap()
}

fn read(gpu: &Gpu, tensor: &Tensor) -> Vec<f32> {
    let mut batch = gpu.batch();
    let x = batch.tensor(tensor).unwrap();
    let y = batch.scale(x, 1.0).unwrap();
    let done = batch.execute();
    gpu.flush();
    pollster::block_on(done).unwrap();
    batch.read(y).wait().unwrap()
}

#[test]
fn what_is_stored_does_not_come_back() {
    for gpu in engines::both_manual() {
        let tensor = gpu.tensor(&[9.0; 8], &[8]).unwrap();
        let (up, down) = (ramp(&gpu, 0.0, 10.0), ramp(&gpu, 10.0, 0.0));
        let store = || {
            let calls = [
                up.sample_to(&tensor, 1, &[0.25, 0.5], Wrap::Clamp),
                down.sample_to(&tensor, 4, &[0.25, 1.25, 0.75], Wrap::Loop),
            ];
            gpu.flush();
            for call in calls {
                assert_eq!(call.wait().unwrap(), [0.0; 0]);
            }
        };
        store();
        let before = gpu.stats().device;
        store();
        let after = gpu.stats().device;
        assert_eq!(after.readbacks, before.readbacks);
        assert_eq!(after.bytes_down, before.bytes_down);
        if gpu.wgpu_device().is_some() {
            assert_eq!(after.submits - before.submits, 1);
            assert_eq!(after.dispatches - before.dispatches, 1);
        }
        assert_eq!(
            read(&gpu, &tensor),
            [9.0, 2.5, 5.0, 9.0, 7.5, 7.5, 2.5, 9.0]
        );
        let error = up
            .sample_to(&tensor, 7, &[0.0, 1.0], Wrap::Clamp)
            .wait()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "blend: the tensor has 8 floats, but the result ends at 9"
        );
        let halves = gpu.tensor_as(&[0.0; 8], &[8], Storage::F16).unwrap();
        let error = up
            .sample_to(&halves, 0, &[0.0], Wrap::Clamp)
            .wait()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "blend: a tensor in fewer bits is only read; give a tensor of `Gpu::tensor`, or a computed one"
        );
    }
}

#[test]
fn calls_find_what_was_stored_before_them_in_their_batch() {
    for gpu in engines::both_manual() {
        let tensor = gpu.tensor(&[0.0; 4], &[4]).unwrap();
        let up = ramp(&gpu, 0.0, 8.0);
        // The batch goes in several chunks if that many floats are between both calls; a small
        // device would send more floats as a batch of their own.
        let floats = if engines::is_small() {
            1 << 13
        } else {
            1 << 19
        };
        let others = vec![1.0; floats];
        for (t, before, others) in [(0.5_f32, 0.0, &others[..4]), (1.0, 4.0, &others[..])] {
            let mut readers = [gpu.batch(), gpu.batch()];
            let values = readers.each_mut().map(|batch| {
                let x = batch.tensor(&tensor).unwrap();
                batch.scale(x, 1.0).unwrap()
            });
            let [one, two] = &mut readers;
            let first = one.execute();
            let other = gpu.lerp(others, others, 0.5);
            let stored = up.sample_to(&tensor, 0, &[t; 4], Wrap::Clamp);
            let last = two.execute();
            gpu.flush();
            stored.wait().unwrap();
            pollster::block_on(first).unwrap();
            pollster::block_on(last).unwrap();
            assert_eq!(one.read(values[0]).wait().unwrap(), [before; 4]);
            assert_eq!(two.read(values[1]).wait().unwrap(), [8.0 * t; 4]);
            assert!(other.wait().unwrap() == others);
        }
    }
}

#[test]
fn a_plain_thread_blends_and_hears_of_it() {
    for engine in [EngineChoice::Cpu, EngineChoice::Gpu] {
        let gpu = engines::open(engine, Preset::Eager.config()).blocking();
        let (sender, heard) = mpsc::channel();
        let watch = gpu.on_batch(move |facts| sender.send(facts.calls).unwrap());
        let [up, down] = [[0.0, 8.0], [8.0, 0.0]].map(|values| {
            let track = Track {
                times: &[0.0, 1.0],
                values: &values,
                kind: Kind::Vector,
                interpolation: Interpolation::Linear,
                easing: Easing::Linear,
            };
            gpu.clip(&[track], None).unwrap()
        });
        let layers = [up.layer(&[0.25, 1.0]), down.layer(&[0.25, 0.5])];
        let blended = gpu.blend(&layers).unwrap();
        assert_eq!(blended, [4.0, 6.0]);
        gpu.recycle(blended);
        let tensor = gpu.tensor(&[1.0; 3], &[3]).unwrap();
        gpu.blend_to(&tensor, 1, &layers).unwrap();
        assert_eq!(read(gpu.gpu(), &tensor), [1.0, 4.0, 6.0]);
        assert_eq!(up.sample(&[0.5], Wrap::Clamp).wait().unwrap(), [4.0]);
        drop(watch);
        assert_eq!(heard.iter().take(2).collect::<Vec<_>>(), [1, 1]);
    }
}

#[test]
fn places_are_given_again_when_no_call_needs_them() {
    for gpu in engines::both_manual() {
        // Many more than the store has room for at once.
        for round in 0..3000_u16 {
            let value = f32::from(round);
            let old = ramp(&gpu, value, value);
            let call = old.sample(&[0.0], Wrap::Clamp);
            drop(old);
            // A clip in the place of the old one, if that were free.
            let new = ramp(&gpu, -1.0, -1.0);
            let beside = new.sample(&[0.0], Wrap::Clamp);
            gpu.flush();
            assert_eq!(call.wait().unwrap(), [value]);
            assert_eq!(beside.wait().unwrap(), [-1.0]);
        }
        let held = gpu.stats().device.pool_bytes;
        assert!(held < 4 << 20, "{held} bytes for two clips");
    }
}

/// A clip of so many lanes, whose words are more than a ramp's.
fn wide(gpu: &Gpu, value: f32) -> Clip {
    let track = Track {
        times: &[0.0],
        values: &[value; 64],
        kind: Kind::Vector,
        interpolation: Interpolation::Linear,
        easing: Easing::Linear,
    };
    gpu.clip(&[track], None).unwrap()
}

/// A session on each engine, with one chunk of a batch in flight at a time. The kernels are
/// compiled: calls that wait for one would be a batch of their own.
fn both_in_chunks() -> [Gpu; 2] {
    [EngineChoice::Cpu, EngineChoice::Gpu].map(|engine| {
        let batch = BatchConfig {
            max_pieces_in_flight: Some(1),
            memory_budget: Some(16 << 20),
            ..engines::manual()
        };
        let gpu = engines::open(engine, batch);
        let calls = [
            ramp(&gpu, 0.0, 1.0).sample(&[0.0], Wrap::Clamp),
            gpu.lerp(&[0.0], &[0.0], 0.5),
        ];
        gpu.flush();
        assert_eq!(calls.map(|call| call.wait().unwrap()), [[0.0], [0.0]]);
        gpu
    })
}

#[test]
fn a_place_is_not_given_away_while_a_batch_samples_it() {
    engines::in_time(|| {
        for gpu in both_in_chunks() {
            let old = wide(&gpu, 1.0);
            // On a small device the long call sends both.
            let stall = Stall::prepared(gpu.lerp(&[0.0; 4], &[1.0; 4], 0.5));
            let given_up = old.sample(&vec![0.0; 12_000], Wrap::Clamp);
            // The worker has answered what the first chunk holds; others are still to come.
            let stall = stall.reached(&gpu);
            let chunks = gpu.stats().pieces;
            drop((given_up, old));
            // The new clip's words would be taken for addresses of the old clip's lanes.
            let values = vec![1e30; 256];
            let track = Track {
                times: &values,
                values: &values,
                kind: Kind::Vector,
                interpolation: Interpolation::Step,
                easing: Easing::Linear,
            };
            let new = gpu.clip(&[track], None).unwrap();
            drop(stall);
            let sampled = new.sample(&[0.0], Wrap::Clamp);
            gpu.flush();
            assert_eq!(sampled.wait().unwrap(), [1e30]);
            let more = gpu.stats().pieces - chunks;
            assert!(more > 1, "{more} chunks were to come");
        }
    });
}

#[test]
fn what_is_given_up_writes_the_clip_that_it_was_asked_for() {
    engines::in_time(|| {
        for gpu in both_in_chunks() {
            const HALF: u32 = 300_000;
            let times = vec![0.0; HALF as usize];
            let tensor = gpu.tensor(&times.repeat(2), &[2, HALF]).unwrap();
            let old = ramp(&gpu, 1.0, 1.0);
            let first = ramp(&gpu, 1.0, 1.0).sample_to(&tensor, 0, &[0.0], Wrap::Clamp);
            // Each half is a chunk.
            let given_up = [0, HALF].map(|at| old.sample_to(&tensor, at, &times, Wrap::Clamp));
            let stall = Stall::behind(&gpu, first);
            let chunks = gpu.stats().pieces;
            drop((given_up, old));
            let new = ramp(&gpu, 2.0, 2.0);
            drop(stall);
            let sampled = new.sample(&[0.0], Wrap::Clamp);
            gpu.flush();
            assert_eq!(sampled.wait().unwrap(), [2.0]);
            let more = gpu.stats().pieces - chunks;
            assert!(more > 1, "{more} chunks were to come");
            let written = read(&gpu, &tensor);
            let wrong = written.iter().position(|float| *float != 1.0);
            assert_eq!(wrong, None);
        }
    });
}

#[test]
fn clips_that_grow_one_after_the_other_take_no_more_than_the_largest() {
    for gpu in engines::both_manual() {
        let values: Vec<f32> = (0..3000_u16).map(f32::from).collect();
        let before = gpu.stats().device;
        for keys in (2..3000).step_by(2) {
            let track = Track {
                times: &values[..keys],
                values: &values[..keys],
                kind: Kind::Vector,
                interpolation: Interpolation::Step,
                easing: Easing::Linear,
            };
            drop(gpu.clip(&[track], None).unwrap());
        }
        let after = gpu.stats().device;
        let held = after.pool_peak_bytes - before.pool_bytes;
        assert!(held <= 1 << 18, "{held} bytes for the smallest store");
        assert!(after.host_bytes - before.host_bytes <= 1 << 18);
        // The places of the disposed clips are good for other clips.
        let up = ramp(&gpu, 0.0, 10.0).sample(&[0.5], Wrap::Clamp);
        gpu.flush();
        assert_eq!(up.wait().unwrap(), [5.0]);
    }
}

#[test]
fn a_clip_beyond_the_budget_leaves_the_others_as_they_were() {
    let batch = BatchConfig {
        memory_budget: Some(1 << 20),
        ..engines::manual()
    };
    let gpu = engines::open(EngineChoice::Gpu, batch);
    let up = ramp(&gpu, 0.0, 10.0);
    let values: Vec<f32> = (0..60_000_u16).map(f32::from).collect();
    for _ in 0..3 {
        let track = Track {
            times: &values,
            values: &values.repeat(5),
            kind: Kind::Vector,
            interpolation: Interpolation::Step,
            easing: Easing::Linear,
        };
        let error = gpu.clip(&[track], None).unwrap_err();
        assert_eq!(error.code(), Code::OutOfMemory, "{error}");
        // The smallest store has 256 KiB; what the calls of the round before read back
        // to may be there still.
        let held = gpu.stats().device.pool_bytes;
        assert!(held < 1 << 19, "{held} bytes are left");
        let down = ramp(&gpu, 10.0, 0.0);
        let calls = [&up, &down].map(|clip| clip.sample(&[0.25], Wrap::Clamp));
        gpu.flush();
        assert_eq!(calls.map(|call| call.wait().unwrap()), [[2.5], [7.5]]);
    }
}

#[test]
fn the_store_grows_between_calls_of_one_batch() {
    for gpu in engines::both_manual() {
        let values: Vec<f32> = (0..50_000_u16).map(f32::from).collect();
        let times: Vec<f32> = values.iter().map(|k| k / 1000.0).collect();
        let clips: Vec<Clip> = (0..4)
            .map(|_| {
                let track = Track {
                    times: &times,
                    values: &values,
                    kind: Kind::Vector,
                    interpolation: Interpolation::Step,
                    easing: Easing::Linear,
                };
                gpu.clip(&[track], None).unwrap()
            })
            .collect();
        let mut calls = Vec::new();
        for clip in &clips {
            calls.push(clip.sample(&[49.9991], Wrap::Clamp));
            ramp(&gpu, 0.0, 1.0);
        }
        gpu.flush();
        for call in calls {
            assert_eq!(call.wait().unwrap(), [49_999.0]);
        }
    }
}

#[test]
fn clips_are_there_again_after_a_loss() {
    let gpu = engines::open(EngineChoice::Gpu, engines::manual());
    let up = ramp(&gpu, 0.0, 10.0);
    let tensor = gpu.tensor(&[0.0; 4], &[4]).unwrap();
    for _ in 0..2 {
        let device = gpu.wgpu_device().expect("a GPU");
        let call = up.sample(&[0.5], Wrap::Clamp);
        let stored = up.sample_to(&tensor, 2, &[0.25], Wrap::Clamp);
        device.destroy();
        gpu.flush();
        assert_eq!(call.wait().unwrap(), [5.0]);
        stored.wait().unwrap();
        let after = ramp(&gpu, 1.0, 2.0).sample(&[0.5], Wrap::Clamp);
        gpu.flush();
        assert_eq!(after.wait().unwrap(), [1.5]);
    }
}

#[test]
fn plans_of_clips_can_be_read() {
    let gpu = engines::open(EngineChoice::Cpu, engines::manual());
    let (a, b) = (ramp(&gpu, 0.0, 1.0), ramp(&gpu, 1.0, 0.0));
    let plan = gpu.explain(|gpu| {
        drop(gpu.blend(&[a.layer(&[0.0, 1.0])]));
        drop(gpu.blend(&[b.layer(&[0.0])]));
    });
    assert_eq!(
        plan,
        "upload   s0 (96 bytes)\n\
         dispatch clip(s0, tensor 0) -> s1, 2 calls, 3 threads\n\
         download s1 (32 bytes)"
    );
}
