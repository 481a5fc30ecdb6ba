//! Threads that never end, for whatever enters a GPU driver.
//!
//! A thread that has used a GPU driver runs that driver's destructors when it ends, and may be
//! caught there: with NVIDIA's 580 on Linux, a process whose threads ended while others opened
//! and closed devices came to a stop. So sessions work on threads of this pool, and callers
//! have one of them do what needs the GPU driver. An idle thread takes the next job; there are
//! as many threads as there were jobs at once.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;

use crate::error::Error;

type Job = Box<dyn FnOnce() + Send>;

/// The threads without a job.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether this is a thread of the pool.
    static IS_LASTING: Cell<bool> = const { Cell::new(false) };
}

/// A job, to be waited for.
#[derive(Debug)]
pub(super) struct Task {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    has_ended: Mutex<bool>,
    ended: Condvar,
}

/// Whether the calling thread is one of the pool. These wait for no job of another session's or of
/// their own: the job may wait for them.
pub(super) fn is_lasting() -> bool {
    IS_LASTING.get()
}

impl Task {
    /// Waits until the job has ended, `longest` at most; whether it has ended.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let has_ended = self.state.lock();
        let ended = &self.state.ended;
        let waited = ended.wait_timeout_while(has_ended, longest, |has_ended| !*has_ended);
        let (has_ended, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *has_ended
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, bool> {
        let has_ended = self.has_ended.lock();
        has_ended.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a job on a thread of the pool.
///
/// # Errors
///
/// [`Error::Fatal`] where the system gives no thread for it.
pub(super) fn spawn(job: impl FnOnce() + Send + 'static) -> Result<Task, Error> {
    let state = Arc::new(State {
        has_ended: Mutex::new(false),
        ended: Condvar::new(),
    });
    let own = Arc::clone(&state);
    hand_over(Box::new(move || {
        let outcome = catch_unwind(AssertUnwindSafe(job));
        *own.lock() = true;
        own.ended.notify_all();
        drop(outcome); // A job whose panic matters catches it itself.
    }))?;
    Ok(Task { state })
}

/// Runs a job on a thread of the pool, and blocks until its output is there. A panic of the job
/// continues on the calling thread.
///
/// # Errors
///
/// [`Error::Fatal`] where the system gives no thread for it.
pub(super) fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    if IS_LASTING.get() {
        return Ok(job());
    }
    let (sender, receiver) = channel();
    hand_over(Box::new(move || {
        let outcome = catch_unwind(AssertUnwindSafe(job));
        let _ = sender.send(outcome); // The receiver waits below.
    }))?;
    Ok(given(receiver.recv().expect("the job sends what it gives")))
}

/// Runs a job on a thread of the pool, for an async caller that awaits the output.
///
/// # Errors
///
/// [`Error::Fatal`] where the system gives no thread for it.
pub(super) async fn enter<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    if IS_LASTING.get() {
        return Ok(job());
    }
    let (sender, receiver) = oneshot::channel();
    hand_over(Box::new(move || {
        let outcome = catch_unwind(AssertUnwindSafe(job));
        // An output that nobody awaits any more is dropped here, on the thread that made it.
        drop(sender.send(outcome));
    }))?;
    Ok(given(receiver.await.expect("the job sends what it gives")))
}

fn given<T>(outcome: Result<T, Box<dyn Any + Send>>) -> T {
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

fn hand_over(mut job: Job) -> Result<(), Error> {
    while let Some(thread) = idle().pop() {
        match thread.send(job) {
            Ok(()) => return Ok(()),
            Err(unsent) => job = unsent.0,
        }
    }
    let (sender, jobs) = channel::<Job>();
    let work = move || {
        IS_LASTING.set(true);
        job();
        idle().push(sender.clone());
        while let Ok(job) = jobs.recv() {
            job();
            idle().push(sender.clone());
        }
    };
    let started = thread::Builder::new().name("framebatch".into()).spawn(work);
    match started {
        Ok(_) => Ok(()), // Nobody joins a thread that never ends.
        Err(error) => Err(Error::Fatal(format!("the system gave no thread: {error}"))),
    }
}

fn idle() -> MutexGuard<'static, Vec<Sender<Job>>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn jobs_at_once_have_threads_of_their_own_and_later_ones_take_them_over() {
        let together = Arc::new(Barrier::new(4));
        let tasks = [(); 3].map(|()| {
            let together = Arc::clone(&together);
            spawn(move || {
                together.wait();
            })
        });
        together.wait();
        for task in tasks {
            let task = task.expect("a thread");
            task.wait(Duration::MAX);
            assert!(*task.state.lock());
        }
        let first = run(|| thread::current().id()).expect("a thread");
        assert_ne!(first, thread::current().id());
        // A job that runs another job does so on its own thread.
        let (outer, inner) =
            run(|| (thread::current().id(), run(|| thread::current().id()))).expect("a thread");
        assert_eq!(inner.ok(), Some(outer));
    }

    #[test]
    fn a_panic_of_a_job_ends_no_thread_and_reaches_who_waits() {
        let caught = catch_unwind(|| run(|| panic!("planned")));
        let panic = caught.expect_err("it goes on here");
        assert_eq!(panic.downcast_ref(), Some(&"planned"));
        let task = spawn(|| panic!("planned")).expect("a thread");
        assert!(task.wait(Duration::MAX));
        assert!(!is_lasting() && run(is_lasting).is_ok_and(|here| here));
        assert_eq!(pollster::block_on(enter(|| 7)).ok(), Some(7));
    }

    #[test]
    fn a_wait_for_a_job_that_goes_on_ends_with_its_time() {
        let (sender, receiver) = channel::<()>();
        let task = spawn(move || {
            let _ = receiver.recv(); // Returns when the sender is dropped.
        });
        let task = task.expect("a thread");
        task.wait(Duration::from_millis(10));
        assert!(!*task.state.lock());
        drop(sender);
        task.wait(Duration::MAX);
    }
}
