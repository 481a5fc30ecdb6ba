//! Random indexes and searches; and as many vectors as pages have in practice.

use framebatch::tensor::Packing;
use framebatch::{Filter, IndexConfig, Metric};

use crate::engines;
use crate::life::send;
use crate::oracle::{Saved, config, vectors};
use crate::samples::Samples;

fn below(samples: &mut Samples, bound: usize) -> usize {
    (samples.bits() % bound as u64) as usize
}

#[test]
fn random_searches_are_equal_to_a_sort() {
    let mut samples = Samples(21);
    let gpus = engines::both_manual();
    for round in 0..120 {
        let dim = [1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 64, 100][below(&mut samples, 12)];
        let count = [1, 2, 63, 64, 65, 255, 256, 257, 700, 2000][below(&mut samples, 10)];
        let packing = [
            None,
            Some(Packing::F16),
            Some(Packing::Bf16),
            Some(Packing::Int8),
        ];
        let config = IndexConfig {
            packing: packing[below(&mut samples, 4)],
            ..config(dim, Metric::ALL[below(&mut samples, 3)])
        };
        let mut given = vectors(&mut samples, count, dim);
        if below(&mut samples, 3) == 0 {
            // Many equals.
            given.iter_mut().for_each(|x| *x = x.round());
        }
        let gone: Vec<u32> = (0..count as u32)
            .filter(|_| below(&mut samples, 5) == 0)
            .collect();
        let asked = 1 + below(&mut samples, 20);
        let queries = vectors(&mut samples, asked, dim);
        let step = 1 + below(&mut samples, 4) as u32;
        let is_filtered = below(&mut samples, 2) == 0;
        let most = (count - gone.len()).min(256);
        if most == 0 {
            continue;
        }
        let k = 1 + below(&mut samples, most);
        for gpu in &gpus {
            let index = gpu.index(&given, config).unwrap();
            index.remove(&gone).unwrap();
            let allowed = |id: u32| !is_filtered || id.is_multiple_of(step);
            let filter = if is_filtered {
                Filter::Where(&allowed)
            } else {
                Filter::All
            };
            let searches = queries
                .chunks_exact(dim)
                .map(|query| index.search(query, k, filter));
            let answers = send(gpu, searches.collect());
            let saved = Saved::read(&index.save().unwrap());
            for (query, hits) in queries.chunks_exact(dim).zip(&answers) {
                saved.check(query, hits, k, &allowed);
            }
            assert!(answers.len() == queries.len() / dim, "round {round}");
        }
    }
}

#[test]
fn a_hundred_thousand_vectors_are_searched_as_a_sort_does() {
    let mut samples = Samples(22);
    let (count, dim) = (100_000, 384);
    let given = vectors(&mut samples, count, dim);
    let queries = vectors(&mut samples, 3, dim);
    for gpu in engines::both_manual() {
        let index = gpu.index(&given, IndexConfig::new(384)).unwrap();
        let searches = queries
            .chunks_exact(dim)
            .map(|query| index.search(query, 10, Filter::All));
        let answers = send(&gpu, searches.collect());
        let saved = Saved::read(&index.save().unwrap());
        for (query, hits) in queries.chunks_exact(dim).zip(&answers) {
            saved.check(query, hits, 10, &|_| true);
        }
    }
}
