//! Holders of one answer on several threads: whichever holder gives up at whatever moment, the
//! others get the answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::native::embedder::SharedFuture;
use crate::native::platform::thread::{self, JoinHandle};
use crate::native::platform::{Mutex, block_on};

/// An answer that another thread gives.
#[derive(Clone, Default)]
struct Answer(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    given: Option<u32>,
    waker: Option<Waker>,
}

impl Answer {
    fn give(&self, answer: u32) {
        let mut state = self.0.lock().unwrap();
        state.given = Some(answer);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Future for Answer {
    type Output = u32;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u32> {
        let mut state = self.0.lock().unwrap();
        let Some(answer) = state.given else {
            state.waker = Some(context.waker().clone());
            drop(state);
            // The answer may come while a holder polls and has not registered its waker.
            thread::yield_now();
            return Poll::Pending;
        };
        Poll::Ready(answer)
    }
}

/// A holder that polls `looks` times and then gives up.
fn fickle(mut held: SharedFuture<Answer>, looks: u32) -> JoinHandle<()> {
    thread::spawn(move || {
        for _ in 0..looks {
            let mut context = Context::from_waker(Waker::noop());
            let looked = Pin::new(&mut held).poll(&mut context);
            if let Poll::Ready(answer) = looked {
                assert_eq!(answer, 7);
                return; // The holder has its answer.
            }
        }
    })
}

fn patient(held: SharedFuture<Answer>) -> JoinHandle<()> {
    thread::spawn(move || assert_eq!(block_on(held), 7))
}

fn explore(story: fn(SharedFuture<Answer>, Answer)) {
    let schedules = std::env::var("MODEL_SCHEDULES").map_or(1000, |given| given.parse().unwrap());
    let told = move || {
        let answer = Answer::default();
        story(SharedFuture::new(answer.clone()), answer);
    };
    shuttle::check_random(told, schedules);
}

#[test]
fn a_holder_that_gives_up_while_it_looks_leaves_nobody_waiting() {
    explore(|held, answer| {
        let holders = [
            fickle(held.clone(), 1),
            patient(held.clone()),
            patient(held),
        ];
        answer.give(7);
        holders
            .into_iter()
            .for_each(|holder| holder.join().unwrap());
    });
}

#[test]
fn holders_come_and_go_and_each_gets_the_answer() {
    explore(|held, answer| {
        let weak = held.downgrade();
        let mut holders = vec![patient(held.clone()), fickle(held, 2)];
        answer.give(7);
        // Equal texts are asked for at any time.
        if let Some(held) = weak.upgrade() {
            holders.extend([fickle(held.clone(), 1), patient(held)]);
        }
        for holder in holders {
            holder.join().unwrap();
        }
        assert!(weak.upgrade().is_none(), "somebody keeps it");
    });
}
