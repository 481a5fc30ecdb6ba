//! Where vectors lie: added between searches, removed, on several pages, on a
//! device that is lost.

use std::cell::Cell;

use framebatch::tensor::Packing;
use framebatch::{EngineChoice, Filter, Gpu, Hit, Index, IndexConfig, Metric, Search};

use crate::engines;
use crate::oracle::{Saved, config, vectors};
use crate::samples::Samples;

/// Sends what was asked, and waits for it.
pub(crate) fn send(gpu: &Gpu, searches: Vec<Search>) -> Vec<Vec<Hit>> {
    gpu.flush();
    let answers = searches.into_iter().map(|search| search.wait().unwrap());
    answers.flatten().collect()
}

fn check(gpu: &Gpu, index: &Index, query: &[f32], count: usize) {
    let hits = send(gpu, vec![index.search(query, count, Filter::All)]);
    Saved::read(&index.save().unwrap()).check(query, &hits[0], count, &|_| true);
}

#[test]
fn what_is_added_is_found_and_what_is_removed_is_not() {
    let mut samples = Samples(1);
    let dim = 12;
    for gpu in engines::both_manual() {
        let index = gpu.index(&[], config(dim, Metric::L2)).unwrap();
        assert!(index.is_empty());
        let error = index.search(&[0.0; 12], 1, Filter::All).wait().unwrap_err();
        assert_eq!(
            error.to_string(),
            "search: k is 1, but the index has 0 vectors"
        );
        let query = vectors(&mut samples, 1, dim);
        let mut expected = 0;
        for count in [1, 62, 1, 1, 63, 64, 65, 1000, 1] {
            let ids = index.add(&vectors(&mut samples, count, dim)).unwrap();
            assert_eq!(ids, (expected..expected + count as u32).collect::<Vec<_>>());
            expected += count as u32;
            assert_eq!(index.len(), expected as usize);
            check(&gpu, &index, &query, index.len().min(10));
        }
        for round in 0..4 {
            let nearest = index.search(&query, 40, Filter::All);
            let gone: Vec<u32> = send(&gpu, vec![nearest])[0]
                .iter()
                .map(|hit| hit.id)
                .collect();
            index.remove(&gone).unwrap();
            check(&gpu, &index, &query, 50);
            assert!(index.remove(&gone).is_err(), "they are gone");
            if round % 2 == 1 {
                // In their places, under new ids.
                let ids = index.add(&query.repeat(3)).unwrap();
                assert!(ids[0] >= expected);
                check(&gpu, &index, &query, 50);
            }
        }
        // Found before it was removed, sent after: the next search tells the device.
        let first = send(&gpu, vec![index.search(&query, 1, Filter::All)])[0][0];
        let late = index.search(&query, 1, Filter::All);
        index.remove(&[first.id]).unwrap();
        let next = index.search(&query, 1, Filter::All);
        let answers = send(&gpu, vec![late, next]);
        assert_eq!(answers[0], answers[1]);
        assert_ne!(answers[0][0].id, first.id);
    }
}

#[test]
fn a_filter_may_ask_the_index_and_the_session() {
    engines::in_time(|| {
        for gpu in engines::both_manual() {
            let floats = vectors(&mut Samples(5), 20, 3);
            let index = gpu.index(&floats, config(3, Metric::L2)).unwrap();
            let asked = Cell::new(0);
            let is_allowed = |id| {
                asked.set(asked.get() + 1);
                assert_eq!((index.len(), gpu.stats().calls), (20, 0));
                id % 4 == 1
            };
            let search = index.search(&floats[..3], 20, Filter::Where(&is_allowed));
            assert_eq!(asked.get(), 20);
            let hits = &send(&gpu, vec![search])[0];
            assert_eq!(hits.len(), 5);
            assert!(hits.iter().all(|hit| hit.id % 4 == 1));
        }
    });
}

#[test]
fn a_search_that_was_warm_creates_nothing() {
    let gpu = engines::open(EngineChoice::Gpu, engines::manual());
    let mut samples = Samples(2);
    let index = gpu
        .index(&vectors(&mut samples, 3000, 40), IndexConfig::new(40))
        .unwrap();
    let ask = |samples: &mut Samples| {
        let query = vectors(samples, 1, 40);
        send(&gpu, vec![index.search(&query, 10, Filter::All)]);
    };
    ask(&mut samples);
    ask(&mut samples);
    let before = gpu.stats().device;
    for _ in 0..5 {
        ask(&mut samples);
    }
    index.remove(&[7, 8]).unwrap();
    index.add(&vectors(&mut samples, 2, 40)).unwrap();
    ask(&mut samples);
    let after = gpu.stats().device;
    assert_eq!(after.pipelines_compiled, before.pipelines_compiled);
    assert_eq!(after.pool_buffers, before.pool_buffers);
    assert_eq!(after.submits - before.submits, 6);
}

#[test]
fn several_pages_are_searched_as_one() {
    let mut samples = Samples(3);
    // A page holds 64 blocks of 64 vectors of 4096 floats.
    let dim = 4096;
    let some = vectors(&mut samples, 64, dim);
    let query = vectors(&mut samples, 1, dim);
    for gpu in engines::both_manual() {
        let index = gpu.index(&[], config(dim, Metric::L2)).unwrap();
        for _ in 0..66 {
            index.add(&some).unwrap();
        }
        let near: Vec<f32> = query.iter().map(|x| x + 0.001).collect();
        let ids = index.add(&near).unwrap();
        let hits = send(&gpu, vec![index.search(&query, 100, Filter::All)]);
        assert_eq!(hits[0][0].id, ids[0]);
        // Each of the others is there 66 times, on both pages.
        let other = hits[0][1].id;
        for (k, hit) in hits[0][1..67].iter().enumerate() {
            assert_eq!(
                (hit.id, hit.score),
                (other + 64 * k as u32, hits[0][1].score)
            );
        }
        index.remove(&ids).unwrap();
        let hits = send(
            &gpu,
            vec![index.search(&query, 2, Filter::Ids(&[other + 64 * 65, 3]))],
        );
        assert_eq!(hits[0][0].id, other + 64 * 65);
    }
}

#[test]
fn an_index_is_there_again_after_a_loss() {
    let gpu = engines::open(EngineChoice::Gpu, engines::manual());
    let mut samples = Samples(4);
    let dim = 33;
    let config = IndexConfig {
        packing: Some(Packing::Int8),
        ..config(dim, Metric::Dot)
    };
    let index = gpu.index(&vectors(&mut samples, 500, dim), config).unwrap();
    let query = vectors(&mut samples, 1, dim);
    for _ in 0..2 {
        check(&gpu, &index, &query, 7);
        let device = gpu.wgpu_device().expect("a GPU");
        let search = index.search(&query, 7, Filter::All);
        device.destroy();
        let hits = send(&gpu, vec![search]);
        Saved::read(&index.save().unwrap()).check(&query, &hits[0], 7, &|_| true);
        index.remove(&[hits[0][0].id]).unwrap();
        index.add(&vectors(&mut samples, 100, dim)).unwrap();
    }
    check(&gpu, &index, &query, 7);
}

#[test]
fn a_dropped_index_gives_its_memory_back_once_no_search_needs_it() {
    for gpu in engines::both_manual() {
        let mut samples = Samples(5);
        let given = vectors(&mut samples, 1000, 64);
        for _ in 0..20 {
            let index = gpu.index(&given, IndexConfig::new(64)).unwrap();
            let search = index.search(&given[..64], 1, Filter::All);
            drop(index);
            assert_eq!(send(&gpu, vec![search])[0][0].id, 0);
        }
        assert_eq!(gpu.stats().tensors.f32, 0);
        let held = gpu.stats().device.pool_bytes;
        assert!(held < 4 << 20, "{held} bytes for no index");
    }
}

#[test]
fn a_search_outlives_its_index_and_the_device() {
    let gpu = engines::open(EngineChoice::Gpu, engines::manual());
    let mut samples = Samples(6);
    let (dim, query) = (12, vectors(&mut samples, 1, 12));
    let vectors = vectors(&mut samples, 1000, dim);
    let index = gpu.index(&vectors, config(dim, Metric::L2)).unwrap();
    let expected = send(&gpu, vec![index.search(&query, 10, Filter::All)]);
    let search = index.search(&query, 10, Filter::All);
    drop(index);
    gpu.wgpu_device().expect("a GPU").destroy();
    assert_eq!(send(&gpu, vec![search]), expected);
    assert_eq!(gpu.stats().tensors.f32, 0, "nobody needs it any more");
}

/// What waits finds what was there, whatever is added, to pages of other lengths too,
/// and taken away before it is sent.
#[test]
fn a_search_that_waits_outlives_changes_of_the_index() {
    let mut samples = Samples(7);
    let dim = 12;
    let query = vectors(&mut samples, 1, dim);
    for gpu in engines::both_manual() {
        let index = gpu
            .index(&vectors(&mut samples, 500, dim), config(dim, Metric::Dot))
            .unwrap();
        let allowed = |id: u32| (100..400).contains(&id);
        let search = || index.search(&query, 50, Filter::Where(&allowed));
        let kept: Vec<u32> = send(&gpu, vec![search()])[0]
            .iter()
            .map(|hit| hit.id)
            .collect();
        let mut searches = vec![search()];
        for count in [1, 30, 2000] {
            index.add(&vectors(&mut samples, count, dim)).unwrap();
            index.remove(&[index.len() as u32 - 1]).unwrap();
            searches.push(search());
        }
        for hits in send(&gpu, searches) {
            assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), kept);
        }
    }
}
