//! Tensors in fewer bits: what is kept of their values, what they take, and
//! that every op computes with what was kept.

use framebatch::device::Engine;
use framebatch::{Blocking, Code, Config, EngineChoice, Gpu, Preset, Storage, Tensor};
use pollster::block_on;

use crate::engines::{both, in_time, open};

const PACKED: [Storage; 4] = [Storage::F16, Storage::Bf16, Storage::Int8, Storage::Int4];

/// Weights as networks have them: around 0, with groups of large and of tiny ones.
fn weights(count: usize) -> Vec<f32> {
    let value = |i: usize| {
        let mixed = (i as u32).wrapping_mul(2_654_435_761) >> 8;
        let size = [0.05, 1.0, 40.0, 0.002][i / 32 % 4];
        (mixed as f32 / 8_388_608.0 - 1.0) * size
    };
    (0..count).map(value).collect()
}

fn read(gpu: &Gpu, tensor: &Tensor) -> Vec<f32> {
    let mut batch = gpu.batch();
    let value = batch.tensor(tensor).unwrap();
    batch.keep(value).unwrap();
    block_on(batch.execute()).unwrap();
    block_on(batch.read(value)).unwrap()
}

/// How far a kept value may be off, by the documentation.
fn bound(storage: Storage, given: &[f32], i: usize) -> f64 {
    let magnitude = |x: &f32| f64::from(x.abs());
    let group = &given[i / 32 * 32..given.len().min(i / 32 * 32 + 32)];
    match storage {
        Storage::F32 | Storage::Auto => 0.0,
        Storage::F16 => (magnitude(&given[i]) / 2048.0).max(2_f64.powi(-25)),
        Storage::Bf16 => magnitude(&given[i]) / 256.0,
        Storage::Int8 | Storage::Int4 => {
            let largest = group.iter().map(magnitude).fold(0.0, f64::max);
            let share = if storage == Storage::Int8 { 253.0 } else { 5.0 };
            (largest / share).max(2_f64.powi(-22))
        }
    }
}

#[test]
fn kept_values_are_within_their_bounds_and_the_same_on_both_engines() {
    for count in [1, 3, 64, 1000] {
        let given = weights(count);
        for storage in [Storage::F32].into_iter().chain(PACKED) {
            let [on_cpu, on_gpu] = both().map(|gpu| {
                let tensor = gpu.tensor_as(&given, &[count as u32], storage).unwrap();
                read(&gpu, &tensor)
            });
            assert_eq!(on_cpu, on_gpu, "{count} as {storage:?}");
            for (i, (x, kept)) in given.iter().zip(&on_cpu).enumerate() {
                let off = (f64::from(*x) - f64::from(*kept)).abs();
                let bound = bound(storage, &given, i);
                assert!(off <= bound, "{x} is kept as {kept} in {storage:?}");
            }
        }
    }
}

#[test]
fn every_kind_of_kernel_computes_with_the_kept_values() {
    let given = weights(96 * 80);
    for gpu in both() {
        for storage in PACKED {
            let packed = gpu.tensor_as(&given, &[96, 80], storage).unwrap();
            let plain = gpu.tensor(&read(&gpu, &packed), &[96, 80]).unwrap();
            let results = [packed, plain].map(|tensor| {
                let mut batch = gpu.batch();
                let w = batch.tensor(&tensor).unwrap();
                let row = batch.upload_shaped(weights(80), &[80]).unwrap();
                let left = batch.upload_shaped(weights(5 * 96), &[5, 96]).unwrap();
                let rows = batch.upload_indexes(&[95, 0, 41, 0], &[4]).unwrap();
                let right = batch.upload_shaped(weights(80 * 3), &[80, 3]).unwrap();
                let values = [
                    batch.relu(w).unwrap(),         // In its own place,
                    batch.mul(row, w).unwrap(),     // beside what is broadcast,
                    batch.dot(w, row).unwrap(),     // along rows,
                    batch.matmul(left, w).unwrap(), // as either factor,
                    batch.matmul(w, right).unwrap(),
                    batch.gather(w, rows, 0).unwrap(), // and by places.
                ];
                block_on(batch.execute()).unwrap();
                values.map(|value| block_on(batch.read(value)).unwrap())
            });
            assert_eq!(results[0], results[1], "{storage:?}");
        }
    }
}

#[test]
fn memory_is_what_was_asked_for() {
    let count = 100_000;
    let given = weights(count as usize);
    for gpu in both() {
        let is_gpu = gpu.info().engine == Engine::Gpu;
        let plain = gpu.tensor(&given, &[count]).unwrap();
        let whole = gpu.stats().tensors.sum();
        assert_eq!(whole, 400_000);
        for (storage, most) in [
            (Storage::F16, 0.51),
            (Storage::Bf16, 0.51),
            (Storage::Int8, 0.28),
            (Storage::Int4, 0.15),
        ] {
            let packed = gpu.tensor_as(&given, &[count], storage).unwrap();
            let bytes = gpu.stats().tensors;
            let own = match storage {
                Storage::F16 => bytes.f16,
                Storage::Bf16 => bytes.bf16,
                Storage::Int8 => bytes.int8,
                _ => bytes.int4,
            };
            assert_eq!(bytes.f32, whole);
            assert_eq!(bytes.sum(), whole + own);
            if is_gpu {
                assert!(own as f64 <= most * whole as f64, "{storage:?}: {own}");
                assert!(own > 0);
            } else {
                assert!(own >= whole, "the CPU keeps floats");
            }
            drop(packed);
            assert_eq!(gpu.stats().tensors.sum(), whole);
        }
        drop(plain);
        assert_eq!(gpu.stats().tensors.sum(), 0);
    }
}

#[test]
fn halves_go_up_as_they_are() {
    // 1, -2, 65,504, the smallest one that is not 0 nor subnormal, and infinity.
    let f16 = [0x3c00_u16, 0xc000, 0x7bff, 0x0400, 0x7c00];
    let bf16 = [0x3f80_u16, 0xc000, 0x7f7f, 0x0080, 0x7f80];
    for gpu in both() {
        let tensor = gpu.tensor_as(&f16, &[5], Storage::F16).unwrap();
        let expected = [1.0, -2.0, 65_504.0, 2_f32.powi(-14), f32::INFINITY];
        assert_eq!(read(&gpu, &tensor), expected);
        let tensor = gpu.tensor_as(&bf16, &[5], Storage::Bf16).unwrap();
        let expected = bf16.map(|half| f32::from_bits(u32::from(half) << 16));
        assert_eq!(read(&gpu, &tensor), expected);
    }
}

#[test]
fn a_loss_restores_what_was_kept() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        for storage in PACKED {
            let tensor = gpu.tensor_as(&weights(200), &[200], storage).unwrap();
            let before = read(&gpu, &tensor);
            gpu.wgpu_device().unwrap().destroy();
            assert_eq!(read(&gpu, &tensor), before, "{storage:?}");
            assert_eq!(gpu.info().engine, Engine::Gpu);
        }
    });
}

#[test]
fn auto_spares_memory_only_on_hardware() {
    for gpu in both() {
        let info = gpu.info();
        let is_hardware = info.engine == Engine::Gpu && !info.software;
        let large = weights(16_384);
        let mut too_large = large.clone();
        too_large[77] = 65_520.0;
        for (data, is_packed) in [
            (&large[..], is_hardware),
            (&too_large, false),
            (&large[..100], false),
        ] {
            let tensor = gpu.tensor_as(data, &[data.len() as u32], Storage::Auto);
            let bytes = gpu.stats().tensors;
            assert_eq!(bytes.f16 > 0, is_packed, "{info:?}");
            assert_eq!(bytes.f32 > 0, !is_packed, "{info:?}");
            drop(tensor);
        }
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let gpu = Blocking::open(Config::default()).unwrap();
    let refused = |result: Result<Tensor, framebatch::Error>, says: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(says), "{error}");
    };
    for value in [f32::NAN, f32::INFINITY, -65_009.0] {
        let data = [1.0, value];
        refused(gpu.tensor_as(&data, &[2], Storage::Int8), "int8 holds");
        refused(gpu.tensor_as(&data, &[2], Storage::Int4), "int4 holds");
    }
    let large = [4_095.0, 1.0];
    refused(gpu.tensor_as(&large, &[2], Storage::Int4), "below 4,095");
    for storage in [Storage::F32, Storage::Int8, Storage::Int4, Storage::Auto] {
        refused(gpu.tensor_as(&[0_u16; 2], &[2], storage), "say which");
    }
    refused(gpu.tensor_as(&[0_u16; 3], &[2], Storage::F16), "3 elements");
    assert_eq!(gpu.stats().tensors.sum(), 0);
}
