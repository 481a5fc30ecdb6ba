//! Vectors of texts that stay on the device.

use framebatch::device::Engine;
use framebatch::{Code, EngineChoice, Filter, Gpu, Gpus, IndexConfig, Preset, Storage, Tensor};
use pollster::block_on;
use safetensors::tensor::Dtype;

use crate::engines::{both, both_manual, in_time, manual, open};
use crate::model::{TINY, folder, ids};
use crate::values::DTYPES;

fn read(gpu: &Gpu, tensor: &Tensor) -> Vec<f32> {
    let call = gpu.read(tensor);
    gpu.flush();
    call.wait().unwrap()
}

fn destroy(gpu: &Gpu) {
    if let Some(device) = gpu.wgpu_device() {
        device.destroy();
    }
}

#[test]
fn tensors_take_the_bits_that_callers_are_given() {
    let folder = folder(&TINY, Dtype::F32);
    for gpu in both_manual() {
        for dtype in DTYPES {
            let embedder = folder.open(&gpu, dtype).unwrap();
            for tokens in [1, 2, 7, 33, 40] {
                let text = ids(&TINY, 1, tokens);
                let tensor = embedder.compute_ids(&text).unwrap();
                assert_eq!(tensor.shape(), [TINY.hidden]);
                let given = embedder.embed_ids(&text);
                let stored = read(&gpu, &tensor);
                assert_eq!(stored, given.wait().unwrap(), "{tokens} tokens, {dtype:?}");
            }
        }
    }
}

#[test]
fn sixty_four_texts_are_one_submission_that_brings_nothing_back() {
    let gpu = open(EngineChoice::Gpu, manual());
    let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    let mut tensors = Vec::new();
    for round in 0..2 {
        let before = gpu.stats();
        tensors = (0..64)
            .map(|k| {
                let text = ids(&TINY, 64 * round + k, 2 + k as usize % 20);
                embedder.compute_ids(&text).unwrap()
            })
            .collect();
        // A read behind them shares their batch, and waits for the device.
        let length = read(&gpu, &tensors[63]).iter().map(|x| x * x).sum::<f32>();
        assert!((length - 1.0).abs() < 1e-5, "{length}");
        let after = gpu.stats();
        assert_eq!(after.batches - before.batches, 1);
        let (before, after) = (before.device, after.device);
        assert_eq!(after.submits - before.submits, 1);
        assert_eq!(after.bytes_down - before.bytes_down, 64 * 4);
        let dispatches = after.dispatches - before.dispatches;
        assert!(dispatches <= u64::from(7 * TINY.layers + 6), "{dispatches}");
    }
    assert_eq!(embedder.stats()[0].texts, 128);
    assert_eq!(embedder.stats()[0].pending_tokens, 0);
    drop(tensors);
}

#[test]
fn an_index_finds_texts_whose_vectors_no_host_has_seen() {
    for gpu in both() {
        let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
        let texts: Vec<Vec<u32>> = (0..40).map(|k| ids(&TINY, k, 3 + k as usize % 9)).collect();
        let index = gpu.index(&[], IndexConfig::new(TINY.hidden)).unwrap();
        for (k, text) in (0..).zip(&texts) {
            let vector = embedder.compute_ids(text).unwrap();
            assert_eq!(index.add_tensor(&vector).unwrap(), [k]);
        }
        for (k, text) in (0..).zip(&texts) {
            let query = embedder.embed_ids(text).wait().unwrap();
            let found = index.search(&query, 1, Filter::All).wait().unwrap();
            assert_eq!(found[0][0].id, k);
        }
    }
}

#[test]
fn a_tensor_that_nobody_waits_for_is_computed_all_the_same() {
    for gpu in both_manual() {
        let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
        let text = ids(&TINY, 3, 9);
        let tensor = embedder.compute_ids(&text).unwrap();
        let dropped = embedder.compute_ids(&text).unwrap();
        let given = embedder.embed_ids(&text);
        // The model goes with its last call.
        drop((dropped, embedder));
        assert_eq!(read(&gpu, &tensor), given.wait().unwrap());
    }
}

#[test]
fn what_went_with_the_device_is_told_by_who_reads_it() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
        let text = ids(&TINY, 3, 9);
        let expected = embedder.embed_ids(&text).wait().unwrap();
        let tensor = embedder.compute_ids(&text).unwrap();
        assert_eq!(read(&gpu, &tensor), expected);
        destroy(&gpu);
        // The weights are there again, and the vector is not.
        assert_eq!(embedder.embed_ids(&text).wait().unwrap(), expected);
        assert_eq!(gpu.info().engine, Engine::Gpu);
        let lost = block_on(gpu.read(&tensor)).unwrap_err();
        assert_eq!(lost.code(), Code::DeviceLost, "{lost}");
        let again = embedder.compute_ids(&text).unwrap();
        assert_eq!(read(&gpu, &again), expected);
    });
}

#[test]
fn of_several_sessions_one_is_chosen() {
    let sessions: Vec<Gpu> = (0..2).map(|_| open(EngineChoice::Cpu, manual())).collect();
    let gpus = Gpus::new(sessions).unwrap();
    let embedder = folder(&TINY, Dtype::F32).open(&gpus, Storage::F32).unwrap();
    let text = ids(&TINY, 3, 9);
    let refused = embedder.compute_ids(&text).unwrap_err();
    assert_eq!(refused.code(), Code::Unsupported);
    assert!(refused.to_string().contains("through"), "{refused}");
    let [first, second] = gpus.as_ref() else {
        panic!("two sessions")
    };
    let tensor = embedder.through(second).compute_ids(&text).unwrap();
    assert_eq!(embedder.stats()[1].pending_tokens, 9);
    let given = embedder.through(second).embed_ids(&text);
    assert_eq!(read(second, &tensor), given.wait().unwrap());
    let foreign = first.read(&tensor);
    first.flush();
    assert_eq!(foreign.wait().unwrap_err().code(), Code::InvalidInput);
}

#[test]
fn what_is_refused_takes_no_room() {
    for gpu in both_manual() {
        let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
        let before = gpu.stats().tensors;
        let message = |result: Result<Tensor, _>| result.map(drop).unwrap_err();
        for (wrong, said) in [
            (&[][..], "compute_ids: there are no ids"),
            (&[1; 41], "compute_ids: 41 ids"),
            (&[128], "compute_ids: id 128"),
        ] {
            let error = message(embedder.compute_ids(wrong));
            assert_eq!(error.code(), Code::InvalidInput);
            assert!(error.to_string().contains(said), "{error}");
        }
        assert_eq!(gpu.stats().tensors, before);
        gpu.dispose();
        assert_eq!(message(embedder.compute_ids(&[1])).code(), Code::Disposed);
    }
}
