//! Indexes under random schedules: a thread that holds an index's lock keeps no other thread from
//! the session.

use super::*;
use crate::native::{Filter, Index};
use crate::ops::search::IndexConfig;

/// Searches, and checks that the first vector is the nearest.
fn find(index: &Index, allowed: &[Code]) {
    match index.search(&[1.0, 0.0], 1, Filter::All).wait() {
        Ok(hits) => assert_eq!(hits[0][0].id, 0),
        Err(error) => assert!(allowed.contains(&error.code()), "{error}"),
    }
}

fn index(gpu: &Gpu) -> Index {
    let vectors = [1.0, 0.0, 0.0, 1.0];
    gpu.index(&vectors, IndexConfig::new(2)).unwrap()
}

#[test]
fn who_fills_or_saves_an_index_stops_nobody_else() {
    explore(KIND, eager(), |gpu| {
        let index = index(&gpu);
        let searching = {
            let index = index.clone();
            thread::spawn(move || find(&index, &[]))
        };
        // `add` and `save` hold the same lock.
        let locked = index.entry.lock();
        check(1, ask(&gpu, 1).wait(), &[]);
        drop(locked);
        searching.join().unwrap();
    });
}

#[test]
fn indexes_are_filled_searched_and_dropped_by_everyone() {
    explore(ROUGH, eager(), |gpu| {
        let shared = index(&gpu);
        let using: Vec<JoinHandle<()>> = (0..3)
            .map(|_| {
                let (gpu, shared) = (gpu.clone(), shared.clone());
                thread::spawn(move || {
                    shared.add(&[0.0, 2.0]).unwrap();
                    find(&shared, ROUGHLY);
                    drop(shared);
                    let own = index(&gpu);
                    let search = own.search(&[1.0, 0.0], 1, Filter::All);
                    drop(own);
                    let is_told =
                        |error: Error| assert!(ROUGHLY.contains(&error.code()), "{error}");
                    search
                        .wait()
                        .map_or_else(is_told, |hits| assert_eq!(hits[0][0].id, 0));
                })
            })
            .collect();
        assert!(shared.save().unwrap().len() > 16);
        drop(shared);
        join(using);
        assert_quiet(gpu.shared());
        assert!(gpu.shared().lock().indexes.0.is_empty());
    });
}

/// What may come of a call on an index whose device may be lost.
#[track_caller]
fn expect(outcome: Result<(), Error>) {
    if let Err(error) = outcome {
        assert!(ROUGHLY.contains(&error.code()), "{error}");
    }
}

#[test]
fn tensors_are_inserted_removed_and_downloaded_by_everyone() {
    explore(ROUGH, eager(), |gpu| {
        let shared = index(&gpu);
        let using: Vec<JoinHandle<()>> = (0..3)
            .map(|who| {
                let (gpu, shared) = (gpu.clone(), shared.clone());
                thread::spawn(move || {
                    let Ok(tensor) = gpu.tensor(&[0.0, 2.0, 0.0, 3.0], &[2, 2]) else {
                        return;
                    };
                    let added = shared.add_tensor(&tensor);
                    drop(tensor);
                    match (&added, who) {
                        (Ok(ids), 0) => expect(shared.remove(&ids[..1])),
                        (_, 1) => expect(shared.download().wait()),
                        _ => {}
                    }
                    expect(added.map(drop));
                    let search = shared.search(&[1.0, 0.0], 1, Filter::All);
                    drop(shared);
                    expect(search.wait().map(|hits| assert_eq!(hits[0][0].id, 0)));
                })
            })
            .collect();
        join(using);
        let lost = shared.lost();
        expect(shared.remove(&lost));
        drop(shared);
        // Nobody waits for the calls that write pages.
        while !gpu.shared().lock().answers.is_empty() {
            check(1, ask(&gpu, 1).wait(), ROUGHLY);
        }
        assert_quiet(gpu.shared());
        assert!(gpu.shared().lock().indexes.0.is_empty());
    });
}
