//! Indexes as bytes, also hostile ones.

use framebatch::tensor::Packing;
use framebatch::{Code, EngineChoice, Filter, IndexConfig, Metric};

use crate::engines;
use crate::life::send;
use crate::oracle::{Saved, config, vectors};
use crate::samples::Samples;

const PACKINGS: [Option<Packing>; 4] = [
    None,
    Some(Packing::F16),
    Some(Packing::Bf16),
    Some(Packing::Int8),
];

#[test]
fn what_was_saved_is_found_again_and_goes_on() {
    let mut samples = Samples(11);
    for gpu in engines::both_manual() {
        for packing in PACKINGS {
            for metric in Metric::ALL {
                let config = IndexConfig {
                    packing,
                    ..config(21, metric)
                };
                let index = gpu.index(&vectors(&mut samples, 300, 21), config).unwrap();
                index.remove(&[0, 17, 299]).unwrap();
                let bytes = index.save().unwrap();
                let loaded = gpu.load_index(&bytes).unwrap();
                assert_eq!(loaded.save().unwrap(), bytes);
                assert_eq!(loaded.len(), 297);
                let query = vectors(&mut samples, 1, 21);
                let searches = [&index, &loaded].map(|index| index.search(&query, 20, Filter::All));
                let answers = send(&gpu, searches.into());
                assert_eq!(answers[0], answers[1]);
                // Ids go on where they were.
                assert_eq!(loaded.add(&query).unwrap(), [300]);
            }
        }
        let empty = gpu.index(&[], IndexConfig::new(5)).unwrap();
        assert!(gpu.load_index(&empty.save().unwrap()).unwrap().is_empty());
    }
}

// `pkg-template/test/search.test.mjs` has the same vectors.
const GIVEN: [f32; 15] = [
    1.5, -0.25, 3.0, 0.0, 7.125, //
    0.0, 0.0, 0.0, 0.0, 0.0, //
    -0.001, 0.333, 2.5, 1e-6, -0.7,
];

#[test]
fn indexes_have_the_bytes_of_both_languages() {
    let gpu = engines::open(EngineChoice::Cpu, engines::manual());
    let mut lines = Vec::new();
    for packing in PACKINGS {
        for metric in Metric::ALL {
            let config = IndexConfig {
                packing,
                ..config(5, metric)
            };
            let index = gpu.index(&GIVEN, config).unwrap();
            index.remove(&[1]).unwrap();
            let bytes = index.save().unwrap();
            lines.push(
                bytes
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>(),
            );
        }
    }
    let known: Vec<&str> = include_str!("saved.txt").lines().collect();
    assert_eq!(lines, known);
}

#[test]
fn packing_is_as_far_off_as_it_says() {
    let gpu = engines::open(EngineChoice::Cpu, engines::manual());
    let mut samples = Samples(12);
    let dim = 50;
    let given = vectors(&mut samples, 200, dim);
    for packing in PACKINGS {
        let config = IndexConfig {
            packing,
            ..config(dim, Metric::Dot)
        };
        let index = gpu.index(&given, config).unwrap();
        for (id, kept) in Saved::read(&index.save().unwrap()).vectors {
            let given = &given[id as usize * dim..][..dim];
            let largest = given
                .iter()
                .fold(0.0_f64, |most, x| most.max(f64::from(x.abs())));
            for (x, kept) in given.iter().zip(kept) {
                let x = f64::from(*x);
                let bound = match packing {
                    None => 0.0,
                    Some(Packing::F16) => (x.abs() / 2048.0).max(2_f64.powi(-25)),
                    Some(Packing::Bf16) => x.abs() / 256.0,
                    Some(Packing::Int8) => largest / 253.9,
                    Some(Packing::Int4) => unreachable!("no index has int4"),
                };
                assert!(
                    (x - kept).abs() <= bound,
                    "{x} became {kept} as {packing:?}"
                );
            }
        }
    }
}

#[test]
fn bytes_that_are_no_index_are_refused() {
    let gpu = engines::open(EngineChoice::Cpu, engines::manual());
    let good = gpu
        .index(&[1.0, 2.0, 3.0, 4.0], config(2, Metric::Dot))
        .unwrap()
        .save()
        .unwrap();
    // Words: magic, version, metric, packing, dim, count, next, 2 ids, 2 vectors of 5.
    assert_eq!(good.len(), 4 * (7 + 2 + 10));
    let with = |word: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[4 * word..4 * word + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let nan = f32::NAN.to_bits();
    for (bytes, problem) in [
        (Vec::new(), "they are no index that was saved"),
        (
            b"PK\x03\x04 and what follows it, which is longer".to_vec(),
            "they are no index that was saved",
        ),
        (
            with(1, 2),
            "they are of version 2, but this release reads version 1",
        ),
        (with(2, 3), "there is no such metric or type"),
        (with(3, 4), "there is no such metric or type"),
        (with(4, 1), "the vector of id 0 goes on behind its 1 floats"),
        (
            with(5, u32::MAX),
            "there are 76, but 4294967295 vectors of 2 floats take 103079215108",
        ),
        (
            good[..75].to_vec(),
            "there are 75, but 2 vectors of 2 floats take 76",
        ),
        (with(6, 1), "the ids do not rise, or one is too large"),
        (with(6, u32::MAX), "the next id is too large"),
        (with(8, 0), "the ids do not rise, or one is too large"),
        (with(10, nan), "the vector of id 0 holds what is no number"),
        (
            with(15, f32::INFINITY.to_bits()),
            "the vector of id 1 holds what is no number",
        ),
    ] {
        let error = gpu.load_index(&bytes).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert_eq!(error.to_string(), format!("index: the bytes: {problem}"));
    }
    for dim in [0, 4097] {
        let error = gpu.load_index(&with(4, dim)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("index: dim is {dim}, but vectors have 1 to 4096 floats")
        );
    }
}

/// Whatever ids a file gives its vectors, a filter takes no more than four bytes for
/// each of these.
#[test]
fn what_a_filter_takes_grows_with_vectors_and_not_with_ids() {
    for gpu in engines::both_manual() {
        let config = config(2, Metric::Dot);
        let floats = [1.0, 0.0, 2.0, 0.0, 3.0, 0.0];
        let mut bytes = gpu.index(&floats, config).unwrap().save().unwrap();
        let mut put = |word: usize, value: u32| {
            bytes[4 * word..4 * word + 4].copy_from_slice(&value.to_le_bytes());
        };
        // Words: six of the header, the next id, the ids.
        put(6, u32::MAX - 1);
        put(8, 1 << 31);
        put(9, u32::MAX - 2);
        let index = gpu.load_index(&bytes).unwrap();
        assert_eq!(index.save().unwrap(), bytes);
        send(&gpu, vec![index.search(&[1.0, 0.0], 3, Filter::All)]);
        let before = gpu.stats().device.bytes_up;
        let high = [u32::MAX - 2, 0, 7, 0];
        let is_high = |id| id > 0;
        let searches = [
            Filter::All,
            Filter::Ids(&high),
            Filter::Mask(&[1]),
            Filter::Where(&is_high),
            Filter::Ids(&[]),
        ];
        let searches = searches.map(|filter| index.search(&[1.0, 0.0], 3, filter));
        let found = send(&gpu, searches.into());
        let ids = found
            .iter()
            .map(|hits| hits.iter().map(|hit| hit.id).collect());
        let ids: Vec<Vec<u32>> = ids.collect();
        let [last, middle] = [u32::MAX - 2, 1 << 31];
        let expected: [&[u32]; 5] = [&[last, middle, 0], &[last, 0], &[0], &[last, middle], &[]];
        assert_eq!(ids, expected);
        let up = gpu.stats().device.bytes_up - before;
        assert!(up < 4096, "{up} bytes went up");
        // No id is given twice.
        let error = index.add(&[1.0, 0.0]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput, "{error}");
    }
}

#[test]
fn a_filter_finds_the_same_however_its_mask_is_kept() {
    let samples = &mut Samples(23);
    for gpu in engines::both_manual() {
        let config = config(9, Metric::L2);
        let floats = vectors(samples, 3000, 9);
        let dense = gpu.index(&floats, config).unwrap();
        let sparse = gpu.index(&floats, config).unwrap();
        // A tenth is left of one of them, of the other all: ids and bits.
        let gone: Vec<u32> = (0..3000).filter(|id| id % 40 != 7).collect();
        sparse.remove(&gone).unwrap();
        let left: Vec<u32> = (0..3000).filter(|id| id % 40 == 7).collect();
        let is_allowed = |id: u32| !id.is_multiple_of(3);
        let allowed: Vec<u32> = left.iter().copied().filter(|id| is_allowed(*id)).collect();
        let mut bits = vec![0_u32; 94];
        for id in &allowed {
            bits[*id as usize / 32] |= 1 << (id % 32);
        }
        let query = vectors(samples, 1, 9);
        let filters = [
            Filter::Ids(&allowed),
            Filter::Mask(&bits),
            Filter::Where(&is_allowed),
        ];
        let mut searches = vec![dense.search(&query, 20, Filter::Ids(&allowed))];
        searches.extend(filters.map(|filter| sparse.search(&query, 20, filter)));
        let found = send(&gpu, searches);
        assert_eq!(found[0].len(), 20);
        assert!(found.iter().all(|hits| *hits == found[0]));
    }
}

#[test]
fn the_largest_vectors_are_saved_and_loaded() {
    let gpu = engines::open(EngineChoice::Cpu, engines::manual());
    for packing in PACKINGS {
        for metric in Metric::ALL {
            let config = IndexConfig {
                packing,
                ..config(3, metric)
            };
            let most = match (packing, metric) {
                (Some(Packing::F16), Metric::Dot | Metric::L2) => 65_504.0,
                _ => 1e17,
            };
            let index = gpu.index(&[most, -most, most], config).unwrap();
            let loaded = gpu.load_index(&index.save().unwrap()).unwrap();
            assert_eq!(loaded.save().unwrap(), index.save().unwrap());
        }
    }
}

#[test]
fn words_that_packing_does_not_give_are_refused() {
    let gpu = engines::open(EngineChoice::Cpu, engines::manual());
    let scale = (f64::from(1e17_f32) / 127.0) as f32;
    let float = 1e17_f32.to_bits();
    // In a file of one vector the scale is word 8, and the floats begin with word 9.
    for (packing, word, last, first) in [
        (Some(Packing::Int8), 8, scale.to_bits(), scale.to_bits() + 1),
        (Some(Packing::Int8), 8, 0, (-scale).to_bits()),
        (Some(Packing::Int8), 8, 0, f32::NAN.to_bits()),
        (None, 9, float, float + 1),
        (None, 9, float | 1 << 31, (float + 1) | 1 << 31),
        (Some(Packing::F16), 9, 0xfbff_7bff, 0x7c00),
        (Some(Packing::F16), 9, 0xfbff_7bff, 0xfe00_0000),
        (Some(Packing::Bf16), 9, 0xdbb2_5bb2, 0x5bb3),
        (Some(Packing::Bf16), 9, 0xdbb2_5bb2, 0xdbb3_0000),
    ] {
        let config = IndexConfig {
            packing,
            ..config(2, Metric::L2)
        };
        let mut bytes = gpu.index(&[1.0, 2.0], config).unwrap().save().unwrap();
        let mut load = |value: u32| {
            bytes[4 * word..4 * word + 4].copy_from_slice(&value.to_le_bytes());
            gpu.load_index(&bytes)
        };
        load(last).unwrap_or_else(|error| panic!("{packing:?} {last:x}: {error}"));
        let error = match load(first) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{packing:?} {first:x} was taken"),
        };
        let expected = "index: the bytes: the vector of id 0 holds what is no number";
        assert_eq!(error, expected);
    }
}
