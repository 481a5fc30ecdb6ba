//! Native runs of many items: what becomes of each, and what stops them.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn, ready};
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::Poll;

use engines::{both, in_time, manual, open};
use framebatch::{EngineChoice, Error, Gpu, Outcome};
use futures_channel::oneshot;

/// An error of an item that makes no call.
#[derive(Clone, Debug, PartialEq)]
struct Odd(u32);

fn engine() -> Gpu {
    open(EngineChoice::Cpu, manual())
}

#[test]
fn items_that_begin_together_are_one_batch() {
    in_time(|| {
        for gpu in engines::both_manual() {
            let mut run = pin!(gpu.run_all([2.0, 4.0, 6.0], |gpu, end: f32| {
                gpu.lerp(&[0.0], &[end], 0.5)
            }));
            let outcome = pollster::block_on(poll_fn(|context| {
                let polled = run.as_mut().poll(context);
                gpu.flush();
                polled
            }));
            let expected = [1.0, 2.0, 3.0].map(|x| Outcome::Done(vec![x]));
            assert_eq!(outcome.results, expected);
            let counts = (outcome.succeeded, outcome.failed, outcome.skipped);
            assert_eq!((counts, outcome.batches), ((3, 0, 0), 1));
        }
    });
}

#[test]
fn a_call_that_is_refused_fails_alone() {
    in_time(|| {
        for gpu in both() {
            let run = gpu.run_all([1, 2, 1], |gpu, len| gpu.lerp(&[0.0], &vec![1.0; len], 1.0));
            let outcome = run.wait();
            assert_eq!((outcome.succeeded, outcome.failed), (2, 1));
            assert!(matches!(
                &outcome.results[1],
                Outcome::Failed(Error::InvalidInput(_))
            ));
        }
    });
}

#[test]
fn no_items_are_an_outcome_too() {
    let gpu = engine();
    let none: [u32; 0] = [];
    let outcome = gpu.run_all(none, |_, _| ready(Ok::<(), Odd>(()))).wait();
    assert!(outcome.results.is_empty());
}

#[test]
fn no_more_items_at_once_than_asked_for() {
    let gpu = engine();
    for most in [0, 1, 2, 5, usize::MAX] {
        let (running, highest) = (Cell::new(0_usize), Cell::new(0));
        let work = |_: &Gpu, item: u32| {
            running.set(running.get() + 1);
            highest.set(running.get().max(highest.get()));
            let mut polls = 0;
            let running = &running;
            poll_fn(move |context| {
                polls += 1;
                if polls < 3 {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                running.set(running.get() - 1);
                Poll::Ready(Ok::<u32, Odd>(item))
            })
        };
        let outcome = gpu.run_all(0..5, work).max_concurrent(most).wait();
        assert_eq!(highest.get(), most.clamp(1, 5));
        let expected: Vec<_> = (0..5).map(Outcome::Done).collect();
        assert_eq!(outcome.results, expected);
    }
}

/// Items that settle when the test says so, by their numbers.
struct Held(RefCell<Vec<Option<Settle>>>);

/// Settles an item.
type Settle = oneshot::Sender<Result<u32, Odd>>;

impl Held {
    fn new() -> Rc<Held> {
        Rc::new(Held(RefCell::new(Vec::new())))
    }

    fn work(self: &Rc<Self>) -> impl Future<Output = Result<u32, Odd>> + use<> {
        let (sender, receiver) = oneshot::channel();
        self.0.borrow_mut().push(Some(sender));
        async { receiver.await.expect("the test holds the senders") }
    }

    fn settle(&self, item: usize, result: Result<u32, Odd>) -> bool {
        let sender = self.0.borrow_mut()[item].take();
        sender.expect("an item settles once").send(result).is_ok()
    }

    fn begun(&self) -> usize {
        self.0.borrow().len()
    }
}

/// What a future has come to.
fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[test]
fn the_first_error_ends_the_run_where_it_is_to() {
    let gpu = engine();
    let held = Held::new();
    let run = gpu.run_all(0..4, |_, _: u32| held.work());
    let mut run = pin!(run.max_concurrent(3).stop_on_first_error());
    assert!(poll(run.as_mut()).is_none());
    assert!(held.settle(2, Ok(7)));
    assert!(poll(run.as_mut()).is_none());
    assert_eq!(held.begun(), 4);
    assert!(held.settle(1, Err(Odd(1))));
    let outcome = poll(run.as_mut()).expect("it is over");
    assert_eq!(
        outcome.results,
        [
            Outcome::Skipped,
            Outcome::Failed(Odd(1)),
            Outcome::Done(7),
            Outcome::Skipped
        ]
    );
    let counts = (outcome.succeeded, outcome.failed, outcome.skipped);
    assert_eq!(counts, (1, 1, 2));
    // The others were given up.
    assert!(!held.settle(0, Ok(0)));
}

#[test]
fn errors_end_nothing_unless_they_are_to() {
    let gpu = engine();
    let work = |_: &Gpu, item: u32| ready(if item == 0 { Err(Odd(0)) } else { Ok(item) });
    let outcome = gpu.run_all(0..3, work).max_concurrent(1).wait();
    assert_eq!((outcome.succeeded, outcome.failed), (2, 1));
}

#[test]
fn a_run_stops_when_it_is_told_to() {
    let gpu = engine();
    let held = Held::new();
    let (stop, told) = oneshot::channel::<()>();
    let run = gpu.run_all(0..4, |_, _: u32| held.work());
    let mut run = pin!(run.max_concurrent(2).stop_when(async {
        told.await.unwrap_or_default();
    }));
    assert!(poll(run.as_mut()).is_none());
    // What settles in the moment of the stop has settled.
    assert!(held.settle(0, Ok(5)));
    stop.send(()).unwrap();
    let outcome = poll(run.as_mut()).expect("it is over");
    assert_eq!(outcome.results[0], Outcome::Done(5));
    assert_eq!((outcome.succeeded, outcome.skipped), (1, 3));
    assert_eq!(held.begun(), 2);
}

#[test]
fn a_run_that_is_stopped_before_it_begins_calls_nothing() {
    let gpu = engine();
    let held = Held::new();
    let run = gpu.run_all(0..4, |_, _: u32| held.work());
    let outcome = run.stop_when(ready(())).wait();
    assert_eq!((outcome.skipped, held.begun()), (4, 0));
    // One that is never told runs to its end.
    let work = |_: &Gpu, item: u32| ready(Ok::<u32, Odd>(item));
    let outcome = gpu.run_all(0..4, work).stop_when(pending()).wait();
    assert_eq!(outcome.succeeded, 4);
}

#[test]
fn the_observer_hears_of_items_as_they_settle() {
    let gpu = engine();
    let held = Held::new();
    let (sender, heard) = mpsc::channel();
    let run = gpu.run_all(0..3, |_, _: u32| held.work());
    let mut run = pin!(run.on_settled(move |place, result| {
        sender.send((place, result.clone())).unwrap();
    }));
    assert!(poll(run.as_mut()).is_none());
    for (item, result) in [(2, Ok(8)), (0, Err(Odd(3))), (1, Ok(9))] {
        assert!(held.settle(item, result.clone()));
        let outcome = poll(run.as_mut());
        assert_eq!(heard.try_recv().unwrap(), (item, result));
        assert_eq!(outcome.is_some(), item == 1);
    }
}

#[test]
fn a_dropped_run_gives_up_its_calls() {
    in_time(|| {
        let gpu = engine();
        {
            let mut run = pin!(gpu.run_all([1.0, 2.0], |gpu, end: f32| {
                gpu.lerp(&[0.0], &[end], 0.5)
            }));
            assert!(poll(run.as_mut()).is_none());
            assert_eq!(gpu.stats().pending, 2);
        }
        assert_eq!(gpu.stats().pending, 0);
    });
}

#[test]
fn a_session_that_ends_fails_what_had_begun_and_what_begins() {
    in_time(|| {
        let gpu = engine();
        let mut run = pin!(gpu.run_all([1.0, 2.0, 3.0], |gpu, end: f32| {
            gpu.lerp(&[0.0], &[end], 0.5)
        }));
        assert!(poll(run.as_mut()).is_none());
        gpu.dispose();
        let outcome = pollster::block_on(run);
        assert_eq!(outcome.failed, 3);
    });
}
