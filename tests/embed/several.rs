//! One embedder over several sessions. Those of a test are all on the same device,
//! so their bits are equal, and what goes away is one session's device.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::thread;

use framebatch::device::Engine;
use framebatch::{
    BatchConfig, Capacity, Code, Embedder, EmbedderStats, Embedding, EngineChoice, Gpu, Gpus,
    Overflow, Policy, Preset, Storage,
};
use futures_core::Stream;
use safetensors::tensor::Dtype;

use crate::engines::{in_time, manual, open};
use crate::model::{TINY, folder, ids};
use crate::samples::times;
use crate::stall::Stall;

fn sessions(count: usize, engine: EngineChoice, batch: &BatchConfig) -> Gpus {
    let one = |_| open(engine, batch.clone());
    Gpus::new((0..count).map(one).collect::<Vec<Gpu>>()).unwrap()
}

fn tiny(gpus: &(impl AsRef<[Gpu]> + ?Sized)) -> Embedder {
    folder(&TINY, Dtype::F32).open(gpus, Storage::F32).unwrap()
}

fn texts(count: u64) -> Vec<Vec<u32>> {
    (0..count)
        .map(|k| ids(&TINY, k, 1 + k as usize * 7 % 40))
        .collect()
}

/// What one session makes of texts.
fn expected(engine: EngineChoice, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let embedder = tiny(&open(engine, Preset::Eager.config()));
    let calls: Vec<Embedding> = texts.iter().map(|ids| embedder.embed_ids(ids)).collect();
    calls.into_iter().map(|call| call.wait().unwrap()).collect()
}

fn pending(embedder: &Embedder) -> Vec<u64> {
    let stats = embedder.stats().into_iter();
    stats.map(|one| one.pending_tokens).collect()
}

fn sum(embedder: &Embedder) -> EmbedderStats {
    embedder.stats().into_iter().sum()
}

fn destroy(gpu: &Gpu) {
    if let Some(device) = gpu.wgpu_device() {
        device.destroy();
    }
}

#[test]
fn texts_go_to_the_device_with_the_least_to_do() {
    for engine in [EngineChoice::Cpu, EngineChoice::Gpu] {
        let gpus = sessions(3, engine, &manual());
        let embedder = tiny(&gpus);
        let lengths = [40, 10, 10, 10, 15, 30, 1];
        let texts: Vec<Vec<u32>> = (0..).zip(lengths).map(|(k, n)| ids(&TINY, k, n)).collect();
        let calls: Vec<Embedding> = texts.iter().map(|ids| embedder.embed_ids(ids)).collect();
        // 40 and nothing more; 10, 10 and 30; 10, 15 and 1.
        assert_eq!(pending(&embedder), [40, 50, 26]);
        let calls_of = |gpu: &Gpu| gpu.stats().calls;
        let made: Vec<u64> = gpus.as_ref().iter().map(calls_of).collect();
        assert_eq!(made, [1, 3, 3]);
        gpus.flush();
        for (call, expected) in calls.into_iter().zip(expected(engine, &texts)) {
            assert_eq!(call.wait().unwrap(), expected);
        }
        let stats = embedder.stats();
        let done: Vec<(u64, u64)> = stats.iter().map(|one| (one.texts, one.tokens)).collect();
        assert_eq!(done, [(1, 40), (3, 50), (3, 26)]);
        assert_eq!(pending(&embedder), [0, 0, 0]);
        assert!(gpus.stats().iter().all(|stats| stats.batches == 1));
    }
}

#[test]
fn equal_texts_are_computed_once_wherever_they_are() {
    let gpus = sessions(3, EngineChoice::Cpu, &manual());
    let embedder = tiny(&gpus);
    let (same, other) = (ids(&TINY, 1, 9), ids(&TINY, 2, 9));
    let calls = [&same, &other, &same, &other, &same].map(|ids| embedder.embed_ids(ids));
    assert_eq!(pending(&embedder), [9, 9, 0]);
    drop(embedder.embed_ids(&same)); // The other calls of the text are answered all the same.
    gpus.flush();
    let [a, b, c, d, e] = calls.map(|call| call.wait().unwrap());
    assert!(a == c && c == e && b == d && a != b);
    assert_eq!(sum(&embedder).texts, 2);
    // Given up by all who asked, a device is eased of it.
    let calls = [embedder.embed_ids(&same), embedder.embed_ids(&same)];
    assert_eq!(pending(&embedder), [9, 0, 0]);
    drop(calls);
    assert_eq!(pending(&embedder), [0, 0, 0]);
}

/// Texts of many lengths, every third one equal to another.
fn corpus(count: usize) -> impl Iterator<Item = String> {
    let words = ["the", "cat", "dog", "sat", "ran", "on", "in", "fog", "mat"];
    (0..count).map(move |k| {
        let k = k - k % 3 / 2;
        let words: Vec<&str> = (0..k % 17).map(|i| words[(k * 7 + i * i) % 9]).collect();
        format!("{k} {}", words.join(" "))
    })
}

#[test]
fn a_corpus_comes_back_in_order_from_all_devices() {
    let count = times(200, 400);
    for (engine, batch) in [
        (EngineChoice::Cpu, Preset::Eager.config()),
        (EngineChoice::Gpu, Preset::Eager.config()),
        (EngineChoice::Gpu, manual()),
    ] {
        let alone = tiny(&open(engine, batch.clone()));
        let gpus = sessions(3, engine, &batch);
        let embedder = tiny(&gpus);
        let [one, three] = [&alone, &embedder].map(|embedder| {
            let vectors = embedder.embed_many(corpus(count)).wait();
            vectors.map(|vector| vector.unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(three.len(), count);
        assert!(one == three, "in order, with the same bits");
        let stats = embedder.stats();
        let each = stats.iter().map(|one| one.tokens);
        // What is sent at once may be done before the next text is dealt out.
        let waits = batch.policy == Policy::Manual;
        assert!(
            !waits || each.min() > Some(0),
            "all of them work: {stats:?}"
        );
        assert!(
            sum(&embedder).texts < count as u64,
            "equal ones once: {stats:?}"
        );
        assert_eq!(pending(&embedder), [0, 0, 0]);
    }
}

#[test]
fn a_lost_device_hands_its_texts_to_the_others() {
    in_time(|| {
        let gpus = sessions(2, EngineChoice::Gpu, &manual());
        let embedder = tiny(&gpus);
        let texts = texts(40);
        let calls: Vec<Embedding> = texts.iter().map(|ids| embedder.embed_ids(ids)).collect();
        let given = gpus.stats()[0].calls;
        assert!(given > 10);
        destroy(&gpus.as_ref()[0]);
        gpus.flush();
        let expected = expected(EngineChoice::Gpu, &texts);
        for (call, expected) in calls.into_iter().zip(expected) {
            assert_eq!(call.wait().unwrap(), expected);
        }
        let stats = embedder.stats();
        assert_eq!((stats[0].texts, stats[1].texts), (0, 40));
        assert_eq!(stats[0].handed_over, given);
        assert_eq!(pending(&embedder), [0, 0]);
        // The lost session's GPU is there again, and gets its share.
        while gpus.as_ref()[0].info().engine == Engine::Gpu {
            let calls = texts[..8].iter().map(|ids| embedder.embed_ids(ids));
            let calls: Vec<Embedding> = calls.collect();
            gpus.flush();
            calls
                .into_iter()
                .for_each(|call| drop(call.wait().unwrap()));
            if embedder.stats()[0].texts > 0 {
                return;
            }
        }
        panic!("lost once, it gave way to the CPU");
    });
}

#[test]
fn a_corpus_moves_on_from_a_lost_device_as_one_batch() {
    in_time(|| {
        let gpus = sessions(2, EngineChoice::Gpu, &manual());
        let embedder = tiny(&gpus);
        let [lost, other] = gpus.as_ref() else {
            panic!("there are two");
        };
        // The stall keeps every answer until all texts are there.
        let stall = Stall::new(other);
        let before = other.stats().batches;
        destroy(lost);
        let mut vectors = embedder.embed_many(corpus(100));
        let mut context = Context::from_waker(Waker::noop());
        loop {
            assert!(Pin::new(&mut vectors).poll_next(&mut context).is_pending());
            let given = lost.stats().calls;
            assert!(given > 10);
            if embedder.stats()[0].handed_over == given {
                break;
            }
            thread::yield_now();
        }
        drop(stall);
        assert_eq!(vectors.wait().filter(Result::is_ok).count(), 100);
        assert_eq!(other.stats().batches - before, 1);
    });
}

#[test]
fn losses_at_any_moment_cost_no_text() {
    in_time(|| {
        let gpus = sessions(3, EngineChoice::Gpu, &Preset::Eager.config());
        let embedder = tiny(&gpus);
        let alone = tiny(&open(EngineChoice::Gpu, Preset::Eager.config()));
        let texts = times(600, 1200);
        let expected: Vec<Vec<f32>> = alone
            .embed_many(corpus(texts))
            .wait()
            .map(|vector| vector.unwrap())
            .collect();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // One after another, and all of them at once at times.
                for (round, done) in (60..).step_by(texts / 4).enumerate() {
                    while sum(&embedder).texts < done {
                        if over.load(Ordering::Relaxed) {
                            return;
                        }
                        thread::yield_now();
                    }
                    match gpus.as_ref().get(round % 4) {
                        Some(gpu) => destroy(gpu),
                        None => gpus.as_ref().iter().for_each(destroy),
                    }
                }
            });
            let vectors = embedder.embed_many(corpus(texts)).wait();
            for (k, (vector, expected)) in vectors.zip(&expected).enumerate() {
                assert!(vector.unwrap() == *expected, "text {k}");
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(pending(&embedder), [0, 0, 0]);
    });
}

/// Destroys the device of a session until the CPU is in its place, and stalls the
/// session's worker, so that it opens no GPU: it would after a second.
fn give_way(gpu: &Gpu) -> Stall {
    loop {
        thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(device) = gpu.wgpu_device() {
                    device.destroy();
                    thread::yield_now();
                }
            });
            while gpu.info().engine == Engine::Gpu {
                let call = gpu.lerp(&[0.0], &[1.0], 0.5);
                gpu.flush();
                let _ = call.wait(); // The call may be refused.
            }
        });
        let stall = Stall::new(gpu);
        // A slow machine may have opened a GPU before the worker stood still.
        if gpu.info().engine == Engine::Cpu {
            return stall;
        }
    }
}

#[test]
fn a_session_that_gave_way_to_the_cpu_gets_nothing_more() {
    in_time(|| {
        let gpus = sessions(2, EngineChoice::Gpu, &manual());
        let embedder = tiny(&gpus);
        let _stall = give_way(&gpus.as_ref()[0]);
        let before = gpus.stats()[0].calls;
        for ids in texts(30) {
            let text = embedder.embed_ids(&ids);
            gpus.flush();
            text.wait().unwrap();
        }
        assert_eq!(gpus.stats()[0].calls, before);
        assert_eq!(embedder.stats()[1].texts, 30);
    });
}

#[test]
fn what_a_session_refuses_another_one_takes() {
    let batch = BatchConfig {
        queue_capacity: Capacity {
            calls: 2,
            ..manual().queue_capacity
        },
        overflow: Overflow::Reject,
        ..manual()
    };
    let gpus = sessions(3, EngineChoice::Cpu, &batch);
    let embedder = tiny(&gpus);
    let stalls: Vec<Stall> = gpus.as_ref().iter().map(Stall::new).collect();
    let fill = gpus.as_ref()[1].lerp(&[0.0], &[1.0], 0.5);
    let texts = texts(7);
    let calls: Vec<Embedding> = texts.iter().map(|ids| embedder.embed_ids(ids)).collect();
    let waiting: Vec<u64> = gpus.stats().iter().map(|stats| stats.pending).collect();
    assert_eq!(waiting, [2, 2, 2]);
    drop(stalls);
    gpus.flush();
    let results = calls.into_iter().map(Embedding::wait);
    let refused = results.filter_map(|result| result.err());
    let refused: Vec<Code> = refused.map(|error| error.code()).collect();
    assert_eq!(refused, [Code::QueueFull; 2], "5 of 7 found a place");
    assert_eq!(fill.wait().unwrap(), [0.5]);
    // The texts of a session that is closed find a place too, until all sessions are closed.
    let [first, rest @ ..] = gpus.as_ref() else {
        panic!("there are three");
    };
    let call = embedder.embed_ids(&texts[0]);
    assert_eq!(first.stats().pending, 1);
    first.dispose();
    let vector = call.wait().unwrap();
    assert_eq!(vector.len(), 64);
    rest.iter().for_each(Gpu::dispose);
    let error = embedder.embed_ids(&texts[0]).wait().unwrap_err();
    assert_eq!(error.code(), Code::Disposed);
}

#[test]
fn errors_of_a_text_stay_with_it() {
    let gpus = sessions(2, EngineChoice::Cpu, &manual());
    let embedder = tiny(&gpus);
    let error = embedder.embed_ids(&[1, 500]).wait().unwrap_err();
    assert_eq!(error.code(), Code::InvalidInput);
    assert_eq!(sum(&embedder), EmbedderStats::default());
}

#[test]
fn calls_may_go_through_one_of_the_sessions() {
    let gpus = sessions(2, EngineChoice::Gpu, &manual());
    let embedder = tiny(&gpus);
    let second = &gpus.as_ref()[1];
    let text = ids(&TINY, 3, 12);
    let plan = second.explain(|gpu| drop(embedder.through(gpu).embed_ids(&text)));
    assert!(plan.matches("dispatch").count() >= 10, "{plan}");
    let through = embedder.through(second);
    let calls = [through.embed_ids(&text), through.embed_ids(&text)];
    assert_eq!(pending(&embedder), [0, 24]);
    second.flush();
    let [a, b] = calls.map(|call| call.wait().unwrap());
    assert_eq!(a, b);
    let many = through.embed_many(corpus(40)).wait();
    assert!(many.into_iter().all(|vector| vector.is_ok()));
    assert_eq!(embedder.stats()[0], EmbedderStats::default());
}

#[test]
fn sessions_that_make_no_sense_are_refused() {
    let gpu = open(EngineChoice::Cpu, manual());
    let files = folder(&TINY, Dtype::F32);
    for (gpus, expected) in [
        (vec![], "there is no session"),
        (vec![gpu.clone(), gpu.keyed(1)], "a session is there twice"),
        (vec![gpu.clone(); 65], "more than 64 sessions"),
    ] {
        let error = files.open(&gpus, Storage::F32).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_text_outlives_its_embedder_and_the_device() {
    let texts = texts(5);
    let expected = expected(EngineChoice::Gpu, &texts);
    let gpu = open(EngineChoice::Gpu, manual());
    let embedder = tiny(&gpu);
    let calls: Vec<Embedding> = texts.iter().map(|ids| embedder.embed_ids(ids)).collect();
    drop(embedder);
    destroy(&gpu);
    gpu.flush();
    let vectors: Vec<Vec<f32>> = calls.into_iter().map(|call| call.wait().unwrap()).collect();
    assert_eq!(vectors, expected);
    assert_eq!(gpu.stats().tensors.f32, 0, "nobody needs it any more");
}
