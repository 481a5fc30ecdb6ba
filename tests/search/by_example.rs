//! Tables of cases: what is found, what is wrong, what a frame costs.

use std::f32::consts::FRAC_1_SQRT_2;

use framebatch::tensor::Packing;
use framebatch::{Code, EngineChoice, Filter, Hit, IndexConfig, Metric};

use crate::engines;
use crate::life::send;
use crate::oracle::{Saved, config, vectors};
use crate::samples::Samples;

fn ids(hits: &[Hit]) -> Vec<u32> {
    hits.iter().map(|hit| hit.id).collect()
}

fn scores(hits: &[Hit]) -> Vec<f32> {
    hits.iter().map(|hit| hit.score).collect()
}

/// East, north, north-east twice as far, east again, and none.
const FEW: [f32; 10] = [1.0, 0.0, 0.0, 1.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0];

/// A metric and a query; the ids in order, and their scores.
type Case = (Metric, [f32; 2], &'static [u32], &'static [f32]);

#[test]
fn metrics_order_as_they_say_and_the_lower_id_is_first_of_equals() {
    let cases: [Case; 6] = [
        (
            Metric::Cosine,
            [3.0, 0.0],
            &[0, 3, 2, 1, 4],
            &[1.0, 1.0, FRAC_1_SQRT_2, 0.0, 0.0],
        ),
        (Metric::Cosine, [0.0, 0.0], &[0, 1, 2, 3, 4], &[0.0; 5]),
        (
            Metric::Dot,
            [3.0, 0.0],
            &[2, 0, 3, 1, 4],
            &[6.0, 3.0, 3.0, 0.0, 0.0],
        ),
        (
            Metric::Dot,
            [-1.0, 0.5],
            &[1, 4, 0, 2, 3],
            &[0.5, 0.0, -1.0, -1.0, -1.0],
        ),
        (
            Metric::L2,
            [1.0, 0.0],
            &[0, 3, 4, 1, 2],
            &[0.0, 0.0, 1.0, 2.0, 5.0],
        ),
        (
            Metric::L2,
            [2.0, 2.0],
            &[2, 0, 1, 3, 4],
            &[0.0, 5.0, 5.0, 5.0, 8.0],
        ),
    ];
    for gpu in engines::both() {
        for (metric, query, expected, values) in cases {
            let index = gpu.index(&FEW, config(2, metric)).unwrap();
            for count in [1, 3, 5] {
                let found = index.search(&query, count, Filter::All).wait().unwrap();
                assert_eq!(found.len(), 1);
                assert_eq!(ids(&found[0]), expected[..count], "{metric:?} {query:?}");
                for (score, value) in scores(&found[0]).iter().zip(values) {
                    // None is -0.
                    assert!(
                        (score - value).abs() < 1e-6 && (*score != 0.0 || score.is_sign_positive()),
                        "{metric:?} {query:?}: {found:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn filters_say_which_ids_are_found() {
    let even = |id: u32| id.is_multiple_of(2);
    let cases: [(Filter<'_>, &[u32]); 6] = [
        (Filter::All, &[0, 3, 2]),
        (Filter::Ids(&[4, 1, 2, 99]), &[2, 1, 4]),
        (Filter::Ids(&[]), &[]),
        (Filter::Mask(&[0b11000]), &[3, 4]),
        (Filter::Mask(&[]), &[]),
        (Filter::Where(&even), &[0, 2, 4]),
    ];
    for gpu in engines::both() {
        let index = gpu.index(&FEW, IndexConfig::new(2)).unwrap();
        for (filter, expected) in cases {
            let found = index.search(&[1.0, 0.0], 3, filter).wait().unwrap();
            assert_eq!(ids(&found[0]), expected);
        }
    }
}

#[test]
fn wrong_input_is_refused_by_name() {
    let gpu = engines::open(EngineChoice::Cpu, engines::manual());
    let index = gpu.index(&FEW, IndexConfig::new(2)).unwrap();
    let refused = |outcome: Result<(), framebatch::Error>, message: &str| {
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert_eq!(error.to_string(), message);
    };
    let search = |query: &[f32], count| index.search(query, count, Filter::All).wait().map(drop);
    refused(
        search(&[1.0, 2.0, 3.0], 1),
        "search: 3 floats are not a multiple of 2, the width of the index's vectors",
    );
    refused(
        search(&[1.0, f32::NAN], 1),
        "search: query 0 has NaN at 1; give numbers from -1e17 to 1e17",
    );
    refused(
        search(&[1.0, 2.0], 0),
        "search: k is 0; ask for at least 1 result",
    );
    refused(
        search(&[1.0, 2.0], 6),
        "search: k is 6, but the index has 5 vectors",
    );
    refused(
        search(&[1.0, 2.0], 257),
        "search: k is 257, but a search gives at most 256 results",
    );
    refused(
        index.add(&[1.0, 0.0, 2.0]).map(drop),
        "index.add: 3 floats are not a multiple of 2, the width of the index's vectors",
    );
    refused(
        index.add(&[1.0, 0.0, 2.0, f32::INFINITY]).map(drop),
        "index.add: vector 1 has inf at 1; give numbers from -1e17 to 1e17",
    );
    refused(
        index.remove(&[1, 7]),
        "index.remove: no vector has the id 7",
    );
    assert_eq!(index.len(), 5);
    for dim in [0, 4097] {
        refused(
            gpu.index(&[], IndexConfig::new(dim)).map(drop),
            &format!("index: dim is {dim}, but vectors have 1 to 4096 floats"),
        );
    }
    let nibbles = IndexConfig {
        packing: Some(Packing::Int4),
        ..config(2, Metric::Dot)
    };
    refused(
        gpu.index(&[], nibbles).map(drop),
        "index: vectors are never kept as int4; take int8, or 16 bits",
    );
    let halves = IndexConfig {
        packing: Some(Packing::F16),
        ..config(2, Metric::Dot)
    };
    refused(
        gpu.index(&[1.0, -70_000.0], halves).map(drop),
        "index.add: vector 0 has -70000 at 1; give numbers from -6.5504e4 to 6.5504e4",
    );
}

#[test]
fn queries_that_meet_are_one_pass_and_each_has_the_bits_it_has_alone() {
    let mut samples = Samples(6);
    let dim = 70;
    let given = vectors(&mut samples, 1000, dim);
    let queries = vectors(&mut samples, 11, dim);
    for gpu in engines::both_manual() {
        for (metric, packing) in [
            (Metric::Cosine, None),
            (Metric::L2, None),
            (Metric::Dot, Some(Packing::F16)),
            (Metric::L2, Some(Packing::Bf16)),
            (Metric::L2, Some(Packing::Int8)),
            (Metric::Dot, Some(Packing::Int8)),
        ] {
            let config = IndexConfig {
                packing,
                ..config(dim, metric)
            };
            let index = gpu.index(&given, config).unwrap();
            let saved = Saved::read(&index.save().unwrap());
            for count in [1, 10, 33] {
                let alone: Vec<Vec<Hit>> = (queries.chunks_exact(dim))
                    .flat_map(|query| send(&gpu, vec![index.search(query, count, Filter::All)]))
                    .collect();
                for (query, hits) in queries.chunks_exact(dim).zip(&alone) {
                    saved.check(query, hits, count, &|_| true);
                }
                let before = gpu.stats().device;
                let searches: Vec<_> = (queries.chunks_exact(dim))
                    .map(|query| index.search(query, count, Filter::All))
                    .collect();
                assert_eq!(send(&gpu, searches), alone, "{metric:?} {packing:?}");
                let after = gpu.stats().device;
                if gpu.wgpu_device().is_some() {
                    assert_eq!(after.submits - before.submits, 1);
                    assert_eq!(after.readbacks - before.readbacks, 1);
                    assert_eq!(after.dispatches - before.dispatches, 2);
                    assert_eq!(
                        after.bytes_down - before.bytes_down,
                        11 * aligned(count) * 4
                    );
                }
                let together = index.search(&queries, count, Filter::All);
                gpu.flush();
                assert_eq!(together.wait().unwrap(), alone);
            }
        }
    }
}

fn aligned(count: usize) -> u64 {
    (2 * count as u64).next_multiple_of(4)
}
