//! Vectors that go from tensors straight into an index: what is found, and what comes back to the
//! host.

use framebatch::tensor::Packing;
use framebatch::{Code, Filter, Gpu, Hit, Index, IndexConfig, Metric, Search, Storage, Tensor};

use crate::engines;
use crate::life::send;
use crate::oracle::{Saved, config, vectors};
use crate::samples::Samples;

pub(crate) const PACKINGS: [Option<Packing>; 4] = [
    None,
    Some(Packing::F16),
    Some(Packing::Bf16),
    Some(Packing::Int8),
];

pub(crate) fn tensor(gpu: &Gpu, floats: &[f32], dim: usize) -> Tensor {
    let rows = (floats.len() / dim) as u32;
    gpu.tensor(floats, &[rows, dim as u32]).unwrap()
}

/// A tensor of the same floats that a call has computed.
pub(crate) fn computed(gpu: &Gpu, floats: &[f32], dim: usize) -> Tensor {
    let rows = (floats.len() / dim) as u32;
    let own = floats.to_vec();
    gpu.compute(|batch| {
        let x = batch.upload_shaped(own, &[rows, dim as u32])?;
        batch.scale(x, 1.0)
    })
    .unwrap()
}

pub(crate) fn search(index: &Index, query: &[f32], count: usize) -> Search {
    index.search(query, count, Filter::All)
}

pub(crate) fn ids(hits: &[Hit]) -> Vec<u32> {
    hits.iter().map(|hit| hit.id).collect()
}

/// Sends a download, and waits for it.
pub(crate) fn download(gpu: &Gpu, index: &Index) {
    let waiting = index.download();
    let gpu = gpu.clone();
    let flushing = std::thread::spawn(move || waiting.wait());
    while !flushing.is_finished() {
        gpu.flush();
        std::thread::yield_now();
    }
    flushing.join().unwrap().unwrap();
}

/// The words of an index's vectors, by what `save` gives.
pub(crate) fn words(index: &Index) -> Vec<u32> {
    let bytes = index.save().unwrap();
    let words = bytes.chunks_exact(4);
    words
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

#[test]
fn tensors_are_packed_as_the_host_packs_arrays() {
    let mut samples = Samples(31);
    for gpu in engines::both_manual() {
        for dim in [1, 3, 4, 64, 384, 4001] {
            for metric in Metric::ALL {
                for packing in PACKINGS {
                    let config = IndexConfig {
                        packing,
                        ..config(dim, metric)
                    };
                    let mut given = vectors(&mut samples, 5, dim);
                    given[0] = -0.0;
                    given[dim..2 * dim].fill(0.0); // One vector has length 0.
                    let host = gpu.index(&given, config).unwrap();
                    let index = gpu.index(&[], config).unwrap();
                    index.add_tensor(&tensor(&gpu, &given, dim)).unwrap();
                    let query = vectors(&mut samples, 1, dim);
                    let found = send(&gpu, vec![search(&index, &query, 5)]);
                    download(&gpu, &index);
                    let case = format!("{dim} {metric:?} {packing:?}");
                    Saved::read(&index.save().unwrap()).check(&query, &found[0], 5, &|_| true);
                    let (own, expected) = (words(&index), words(&host));
                    assert_eq!(own.len(), expected.len(), "{case}");
                    assert_eq!(own[..7], expected[..7], "{case}");
                    if metric != Metric::Cosine && packing != Some(Packing::Int8) {
                        assert_eq!(own, expected, "{case}");
                    }
                    let off = most_off(&index, &host);
                    let bound = match packing {
                        None => (dim as f64 / 64.0 + 16.0) / f64::from(1 << 24),
                        Some(Packing::F16) => 2.0 / 2048.0,
                        Some(Packing::Bf16) => 2.0 / 256.0,
                        Some(Packing::Int8) => 1.01 / 127.0,
                        Some(Packing::Int4) => unreachable!("no index has int4"),
                    };
                    assert!(off <= bound, "{case}: off by {off}");
                }
            }
        }
    }
}

/// How far the elements of two indexes are apart, by the largest magnitude of each vector.
fn most_off(a: &Index, b: &Index) -> f64 {
    let [a, b] = [a, b].map(|index| Saved::read(&index.save().unwrap()).vectors);
    let apart = a.iter().zip(&b).map(|((_, a), (_, b))| {
        let largest = b.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let off = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        off.fold(0.0, f64::max) / largest.max(1e-300)
    });
    apart.fold(0.0, f64::max)
}

#[test]
fn magnitudes_of_every_size_are_scaled_to_length_one() {
    let mut samples = Samples(32);
    let dim = 70;
    let sizes = [
        1e17_f32, 1e10, 1.0, 1e-10, 1e-19, 1e-30, 1e-37, 1e-38, 3e-40, 1e-44,
    ];
    let given: Vec<f32> = sizes
        .iter()
        .flat_map(|size| {
            vectors(&mut samples, 1, dim)
                .into_iter()
                .map(move |x| x * size)
        })
        .collect();
    for gpu in engines::both_manual() {
        let index = gpu.index(&[], config(dim, Metric::Cosine)).unwrap();
        index.add_tensor(&tensor(&gpu, &given, dim)).unwrap();
        download(&gpu, &index);
        let host = gpu.index(&given, config(dim, Metric::Cosine)).unwrap();
        let off = most_off(&index, &host);
        assert!(off < 3e-6, "off by {off}");
    }
}

#[test]
fn vectors_of_tensors_and_of_arrays_are_one_index() {
    let mut samples = Samples(33);
    let dim = 12;
    for gpu in engines::both_manual() {
        let all = vectors(&mut samples, 12_000, dim);
        let query = vectors(&mut samples, 1, dim);
        let index = gpu.index(&[], config(dim, Metric::L2)).unwrap();
        let host = gpu.index(&all, config(dim, Metric::L2)).unwrap();
        let check = |index: &Index| {
            let count = index.len().min(20);
            let even = |id: u32| id.is_multiple_of(2);
            let searches = [index, &host].map(|index| {
                let known = index.len() as u32;
                let mask: Vec<u32> = (0..known).filter(|id| even(*id)).collect();
                [
                    index.search(&query, count.min(known as usize), Filter::All),
                    index.search(&query, 1, Filter::Ids(&mask)),
                ]
            });
            let found = send(&gpu, searches.into_iter().flatten().collect());
            (found[0].clone(), found[1].clone())
        };
        let mut next = 0;
        for (round, count) in [1, 63, 64, 65, 1, 7000, 3000, 1].into_iter().enumerate() {
            let own = &all[next * dim..(next + count) * dim];
            let given = match round % 3 {
                0 => index.add(own).unwrap(),
                1 => index.add_tensor(&tensor(&gpu, own, dim)).unwrap(),
                _ => index.add_tensor(&computed(&gpu, own, dim)).unwrap(),
            };
            let expected: Vec<u32> = (next as u32..(next + count) as u32).collect();
            assert_eq!(given, expected);
            next += count;
            assert_eq!(index.len(), next);
            check(&index);
        }
        let rest: Vec<u32> = (next as u32..12_000).collect();
        host.remove(&rest).unwrap();
        // Ids of both kinds, and none where one is unknown.
        let gone: Vec<u32> = (0..next as u32).filter(|id| id % 3 == 1).collect();
        let unknown = [&gone[..], &[77_777]].concat();
        assert!(index.remove(&unknown).is_err());
        assert_eq!(index.len(), next);
        for index in [&index, &host] {
            index.remove(&gone).unwrap();
            assert!(index.remove(&gone[..1]).is_err());
        }
        let pair = [&index, &host].map(|index| search(index, &query, 100));
        let found = send(&gpu, pair.into());
        assert_eq!(found[0], found[1]);
        download(&gpu, &index);
        assert_eq!(index.len(), host.len());
        let pair = [&index, &host].map(|index| search(index, &query, 100));
        let found = send(&gpu, pair.into());
        assert_eq!(found[0], found[1]);
        assert_eq!(words(&index)[7..], words(&host)[7..]);
    }
}

#[test]
fn what_is_removed_before_its_insertion_was_sent_is_not_found() {
    for gpu in engines::both_manual() {
        let index = gpu.index(&[9.0, 9.0], config(2, Metric::Dot)).unwrap();
        let first = index
            .add_tensor(&tensor(&gpu, &[1.0, 0.0, 2.0, 0.0], 2))
            .unwrap();
        let before = search(&index, &[1.0, 0.0], 3);
        index.remove(&first[1..]).unwrap();
        let without = search(&index, &[1.0, 0.0], 2);
        // In the place of the one that was removed, under another id.
        let next = index.add_tensor(&tensor(&gpu, &[3.0, 0.0], 2)).unwrap();
        let with = search(&index, &[1.0, 0.0], 3);
        let found = send(&gpu, vec![before, without, with]);
        assert_eq!(ids(&found[0]), [0, 2, 1]);
        assert_eq!(ids(&found[1]), [0, 1]);
        assert_eq!(ids(&found[2]), [0, 3, 1]);
        assert_eq!(next, [3]);
    }
}

#[test]
fn sources_may_be_dropped_written_packed_or_in_slabs() {
    for gpu in engines::both_manual() {
        let index = gpu.index(&[], config(2, Metric::Dot)).unwrap();
        let written = gpu.tensor(&[1.0, 0.0], &[2]).unwrap();
        index.add_tensor(&written).unwrap();
        let store = gpu.compute_into(&written, |batch| {
            let x = batch.tensor(&written)?;
            batch.scale(x, 100.0)
        });
        let halves = gpu.tensor_as(&[2.0, 0.0], &[1, 2], Storage::F16).unwrap();
        index.add_tensor(&halves).unwrap();
        for value in [3.0, 4.0, 5.0] {
            let dropped = gpu.tensor(&[value, 0.0], &[1, 2]).unwrap();
            index.add_tensor(&dropped).unwrap();
        }
        index.add_tensor(&written).unwrap();
        assert_eq!(
            index
                .add_tensor(&gpu.tensor(&[], &[0, 2]).unwrap())
                .unwrap(),
            [0_u32; 0]
        );
        let found = send(&gpu, vec![search(&index, &[1.0, 0.0], 6)]);
        store.wait().unwrap();
        let scores: Vec<f32> = found[0].iter().map(|hit| hit.score).collect();
        assert_eq!(ids(&found[0]), [5, 4, 3, 2, 1, 0]);
        assert_eq!(scores, [100.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    }
}

#[test]
fn vectors_with_what_is_no_number_are_counted_and_never_found() {
    for gpu in engines::both_manual() {
        let index = gpu.index(&[], config(2, Metric::Dot)).unwrap();
        let given = [1.0, f32::NAN, 2.0, 0.0, f32::INFINITY, 0.0, 1.0, -2e17];
        index.add_tensor(&tensor(&gpu, &given, 2)).unwrap();
        assert_eq!(index.len(), 4);
        let found = send(&gpu, vec![search(&index, &[1.0, 0.0], 4)]);
        assert_eq!(ids(&found[0]), [1]);
        download(&gpu, &index);
        assert_eq!(index.len(), 1);
    }
}

#[test]
fn wrong_tensors_are_refused_by_name() {
    let [gpu, other] = engines::both_manual();
    let index = gpu.index(&[1.0, 2.0], IndexConfig::new(2)).unwrap();
    let expect = |tensor: &Tensor, message: &str| {
        let error = index.add_tensor(tensor).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(index.len(), 1);
    };
    for dims in [&[3][..], &[2, 3], &[1, 1, 2], &[]] {
        let count: u32 = dims.iter().product();
        let tensor = gpu.tensor(&vec![0.0; count as usize], dims).unwrap();
        expect(&tensor, "but the index's vectors have 2 floats; reshape");
    }
    expect(
        &other.tensor(&[1.0, 2.0], &[2]).unwrap(),
        "of another session",
    );
    let mut batch = gpu.batch();
    let x = batch.upload(&[1.0, 2.0]);
    let early = batch.compute(x).unwrap();
    expect(&early, "not computed yet");

    index
        .add_tensor(&gpu.tensor(&[1.0, 2.0], &[2]).unwrap())
        .unwrap();
    let error = index.save().unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    assert!(error.to_string().contains("await `download`"), "{error}");
}

#[test]
fn a_download_loses_nothing_of_what_happens_meanwhile() {
    let mut samples = Samples(34);
    let dim = 8;
    for gpu in engines::both_manual() {
        let all = vectors(&mut samples, 300, dim);
        let query = vectors(&mut samples, 1, dim);
        let part = |from: usize, to: usize| &all[from * dim..to * dim];
        let index = gpu.index(part(0, 100), config(dim, Metric::Dot)).unwrap();
        index
            .add_tensor(&tensor(&gpu, part(100, 200), dim))
            .unwrap();
        send(&gpu, vec![search(&index, &query, 1)]);
        let waiting = index.download();
        let before = search(&index, &query, 200);
        let downloading = std::thread::spawn(move || waiting.wait());
        // The download's readings wait for a flush, or are still to come.
        std::thread::sleep(std::time::Duration::from_millis(20));
        index.remove(&[5, 150]).unwrap();
        index
            .add_tensor(&tensor(&gpu, part(200, 300), dim))
            .unwrap();
        let during = search(&index, &query, 256);
        while !downloading.is_finished() {
            gpu.flush();
            std::thread::yield_now();
        }
        downloading.join().unwrap().unwrap();
        let behind = search(&index, &query, 256);
        let found = send(&gpu, vec![before, during, behind]);
        let mut first = ids(&found[0]);
        first.sort_unstable();
        first.dedup();
        // What was removed before the flush may count or not.
        assert!(first.len() >= 198, "{} ids", first.len());
        assert_eq!(found[1], found[2]);
        assert_eq!(index.len(), 298);
        assert!(index.save().is_err(), "some came meanwhile");
        download(&gpu, &index);
        Saved::read(&index.save().unwrap()).check(&query, &found[2], 256, &|_| true);
        let again = send(&gpu, vec![search(&index, &query, 256)]);
        assert_eq!(again[0], found[2]);
        let bytes = gpu.stats().tensors.f32;
        drop(index);
        assert_eq!(gpu.stats().tensors.f32, 0, "of {bytes}");
    }
}
