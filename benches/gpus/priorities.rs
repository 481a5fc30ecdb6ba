//! What a text of high priority waits for beside a corpus of low priority, and what the
//! corpus loses by ten such texts a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use framebatch::{Embedder, Gpu, Priority};

use crate::clock::{Times, time};
use crate::report::{Row, Table};

/// Milliseconds between two texts of high priority.
const PAUSE: Duration = Duration::from_millis(100);

/// Texts of high priority that are timed with nothing beside.
const ALONE: usize = 50;

/// Times texts of high priority alone and beside the corpus, and the corpus alone and beside
/// these.
pub(crate) fn measure(embedder: &Embedder, gpu: &Gpu, texts: &[String]) -> Table {
    let low = embedder.through(&gpu.with_priority(Priority::Low));
    let high = embedder.through(&gpu.with_priority(Priority::High));
    let ask = |text: &String| time(|| high.embed(text).wait().expect("embedded"));
    let corpus = || {
        let vectors = low.embed_many(texts).wait();
        vectors.for_each(|vector| drop(vector.expect("embedded")));
    };
    ask(&texts[0]);
    let alone: Vec<f64> = texts.iter().cycle().take(ALONE).map(ask).collect();
    corpus();
    let corpus_alone = time(corpus);
    let is_over = AtomicBool::new(false);
    let mut beside = Vec::new();
    let corpus_beside = thread::scope(|scope| {
        let corpus = scope.spawn(|| {
            let took = time(corpus);
            is_over.store(true, Ordering::Relaxed);
            took
        });
        for text in texts.iter().cycle() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            beside.push(ask(text));
            thread::sleep(PAUSE);
        }
        corpus.join().expect("the corpus is embedded")
    });
    let (alone, beside) = (Times::new(alone), Times::new(beside));
    let pace = corpus_alone / corpus_beside;
    println!("\nhigh priority   p50 ms   p99 ms");
    for (name, times) in [("alone", &alone), ("beside low", &beside)] {
        println!("{name:13} {:8.2} {:8.2}", times.median(), times.below(99));
    }
    println!("the corpus beside these: {pace:.2} of its pace alone");
    let share = beside.median() / alone.median();
    Table {
        about: "a text of high priority, alone and beside a corpus of low priority",
        unit: None,
        rows: vec![
            Row::new("priorities-alone", "framebatch", alone),
            Row::new("priorities-beside-low", "framebatch", beside)
                .with("times-alone", share)
                .with("corpus-pace", pace),
        ],
    }
}
