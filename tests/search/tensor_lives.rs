//! Lives of indexes that tensors are added to: devices that are lost, and random changes.

use framebatch::{Code, EngineChoice, Gpu, IndexConfig, Metric};

use crate::engines;
use crate::life::send;
use crate::oracle::{config, vectors};
use crate::samples::Samples;
use crate::tensors::{PACKINGS, computed, download, ids, search, tensor, words};

#[test]
fn a_loss_leaves_what_tensors_with_data_gave() {
    let gpu = engines::open(EngineChoice::Gpu, engines::manual());
    let dim = 3;
    let index = gpu
        .index(&[1.0, 0.0, 0.0], config(dim, Metric::Dot))
        .unwrap();
    let kept = tensor(&gpu, &[2.0, 0.0, 0.0, 3.0, 0.0, 0.0], dim);
    let written = gpu.tensor(&[4.0, 0.0, 0.0], &[3]).unwrap();
    for tensor in [&kept, &written] {
        index.add_tensor(tensor).unwrap();
    }
    index.remove(&[2]).unwrap();
    let query = [1.0, 0.0, 0.0];
    let found = send(&gpu, vec![search(&index, &query, 3)]);
    assert_eq!(ids(&found[0]), [3, 1, 0]);

    // All sources have their data: the vectors are there again, for what waits too.
    let waiting = search(&index, &query, 3);
    gpu.wgpu_device().expect("a GPU").destroy();
    assert_eq!(send(&gpu, vec![waiting])[0], found[0]);
    assert!(index.lost().is_empty());

    // One was written since, one was computed, and one is gone.
    let gone = gpu.tensor(&[6.0, 0.0, 0.0], &[3]).unwrap();
    let made = computed(&gpu, &[5.0, 0.0, 0.0], dim);
    index.add_tensor(&made).unwrap();
    index.add_tensor(&gone).unwrap();
    drop(gone);
    let store = gpu.compute_into(&written, |batch| {
        let x = batch.tensor(&written)?;
        batch.scale(x, 2.0)
    });
    let found = send(&gpu, vec![search(&index, &query, 5)]);
    store.wait().unwrap();
    assert_eq!(ids(&found[0]), [5, 4, 3, 1, 0]);
    let waiting = search(&index, &query, 5);
    gpu.wgpu_device().expect("a GPU").destroy();
    gpu.flush();
    assert_eq!(waiting.wait().unwrap_err().code(), Code::DeviceLost);
    assert_eq!(index.lost(), [3, 4, 5]);
    let error = search(&index, &query, 1).wait().unwrap_err();
    assert_eq!(error.code(), Code::DeviceLost);
    let text = error.to_string();
    assert!(
        text.contains("3 vectors of the index are lost; remove"),
        "{text}"
    );
    assert_eq!(index.len(), 5);
    index.remove(&index.lost()).unwrap();
    let again = index.add_tensor(&kept).unwrap();
    let found = send(&gpu, vec![search(&index, &query, 4)]);
    assert_eq!(ids(&found[0]), [1 + again[0], 1, again[0], 0]);

    // A source that is lost itself: the search behind it fails, and the next one finds the rest.
    let late = index.add_tensor(&made).unwrap();
    let refused = search(&index, &query, 1);
    gpu.flush();
    let error = refused.wait().unwrap_err();
    assert_eq!(error.code(), Code::DeviceLost, "{error}");
    while index.lost().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(index.lost(), late);
    index.remove(&late).unwrap();
    assert_eq!(send(&gpu, vec![search(&index, &query, 4)])[0], found[0]);

    // What was downloaded outlives every loss.
    download(&gpu, &index);
    drop(kept);
    gpu.wgpu_device().expect("a GPU").destroy();
    assert_eq!(send(&gpu, vec![search(&index, &query, 4)])[0], found[0]);
}

/// Whatever happens, an index of tensors finds what an index of the same arrays does.
#[test]
fn random_lives_find_what_arrays_do() {
    for gpu in engines::both_manual() {
        for seed in 40..44 {
            live(&gpu, &mut Samples(seed));
        }
    }
}

fn live(gpu: &Gpu, samples: &mut Samples) {
    let mut below = |bound: u64| (samples.bits() % bound) as usize;
    let dim = [3, 16, 40][below(3)];
    let config = IndexConfig {
        packing: PACKINGS[below(3)], // With whole numbers, scores of int8 may be off by a unit.
        ..config(dim, [Metric::Dot, Metric::L2][below(2)])
    };
    let (index, host) = (
        gpu.index(&[], config).unwrap(),
        gpu.index(&[], config).unwrap(),
    );
    let mut sources = Vec::new();
    let mut known: Vec<u32> = Vec::new();
    let mut number = below(1 << 20) as u64;
    let mut floats = |count: usize| {
        number += 1;
        vectors(&mut Samples(number), count, dim)
    };
    let mut searches = Vec::new();
    for _ in 0..40 {
        match below(10) {
            0..=3 => {
                let given = floats([1, 2, 63, 64, 200][below(5)]);
                let source = tensor(gpu, &given, dim);
                let ids = index.add_tensor(&source).unwrap();
                assert_eq!(host.add(&given).unwrap(), ids);
                known.extend(ids);
                sources.push(source);
            }
            4 => {
                let given = floats(1 + below(70));
                let ids = index.add(&given).unwrap();
                assert_eq!(host.add(&given).unwrap(), ids);
                known.extend(ids);
            }
            5 | 6 => {
                let mut gone = Vec::new();
                for _ in 0..below(known.len().min(40) as u64 + 1) {
                    gone.push(known.swap_remove(below(known.len() as u64)));
                }
                index.remove(&gone).unwrap();
                host.remove(&gone).unwrap();
            }
            7 if below(3) == 0 => {
                send(gpu, std::mem::take(&mut searches));
                if let Some(device) = gpu.wgpu_device() {
                    device.destroy();
                }
            }
            8 if below(4) == 0 => {
                send(gpu, std::mem::take(&mut searches));
                download(gpu, &index);
                assert_eq!(words(&index), words(&host));
            }
            _ if known.is_empty() => {}
            _ => {
                let query = floats(1);
                let count = known.len().min(1 + below(60));
                // Removals of arrays count at once, those of tensors in their turn: both searches
                // go before the next change.
                let pair = [&index, &host].map(|index| search(index, &query, count));
                let found = send(gpu, pair.into());
                assert_eq!(found[0], found[1], "{config:?}");
                searches.push(search(&index, &query, 1));
            }
        }
        assert_eq!((index.len(), index.lost()), (known.len(), Vec::new()));
    }
    send(gpu, searches);
}
