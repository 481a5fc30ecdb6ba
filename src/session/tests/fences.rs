//! Fences: none passes while a batch holds a call from before it.

use super::*;

/// Fences, and the newest call before each.
#[derive(Debug, Default)]
pub(super) struct Fences(Vec<(Fence, Ticket)>);

impl Fences {
    /// Puts a fence behind the newest call, if there was any.
    pub(super) fn put(&mut self, session: &Session<impl Device>, newest: Option<Ticket>) {
        self.0
            .extend(newest.map(|newest| (session.fence(), newest)));
    }

    /// Holds that a fence which has passed has no call before it in any batch.
    pub(super) fn check(&self, session: &Session<impl Device>) {
        let passed = |fence: &Fence| session.has_passed(*fence);
        for (_, newest) in self.0.iter().filter(|(fence, _)| passed(fence)) {
            for batch in session.queue.batches() {
                let mut held = batch.calls().iter();
                assert!(held.all(|call| newest.is_before(call.ticket)), "{newest:?}");
            }
        }
    }

    /// Holds that all fences have passed: nothing is pending.
    pub(super) fn assert_passed(&self, session: &Session<impl Device>) {
        assert!(self.0.iter().all(|(fence, _)| session.has_passed(*fence)));
    }
}

/// A session that has one chunk in flight at a time.
fn one_by_one() -> Session<Frail> {
    let limits = BatchConfig {
        max_pieces_in_flight: Some(1),
        ..config()
    };
    Session::new(Frail::in_chunks(1 << 20, 256), limits).expect("valid settings")
}

/// Lands what is in flight, chunk by chunk, as long as `goes_on` says so.
fn land_while(
    session: &mut Session<Frail>,
    mut sent: Launch,
    mut goes_on: impl FnMut(&Session<Frail>) -> bool,
) -> usize {
    let mut landed = 0;
    while goes_on(session) && !sent.flights.is_empty() {
        let outcome = pollster::block_on(sent.flights.remove(0));
        let settlement = session.settle(sent.batch, sent.generation, outcome);
        let settlement = settlement.expect("on its way");
        sent.flights.extend(settlement.next);
        landed += 1;
    }
    landed
}

#[test]
fn where_nothing_is_pending_a_fence_passes_at_once() {
    let mut session = one_by_one();
    let fence = session.fence();
    assert!(session.has_passed(fence));
    put(&mut session, 1.0, 4);
    assert!(session.has_passed(fence), "the call is behind it");
    let behind = session.fence();
    assert!(!session.has_passed(behind), "the call may still be sent");
    let sent = launch(&mut session);
    put(&mut session, 2.0, 4);
    assert!(!session.has_passed(behind));
    assert!(session.has_passed(fence));
    land(&mut session, sent);
    assert!(session.has_passed(behind));
}

#[test]
fn a_call_that_is_given_up_keeps_a_fence_until_its_last_chunk() {
    let mut session = one_by_one();
    let ticket = put(&mut session, 1.0, 100);
    let sent = launch(&mut session);
    assert_eq!(sent.flights.len(), 1);
    assert!(session.abort(ticket));
    let fence = session.fence();
    let landed = land_while(&mut session, sent, |session| !session.has_passed(fence));
    assert!(landed > 2, "{landed} chunks");
    assert_eq!(session.in_flight(), 0);
    assert!(session.has_passed(fence));
}

#[test]
fn a_failed_chunk_keeps_a_fence_until_the_last_one() {
    let mut session = one_by_one();
    let ticket = put(&mut session, 1.0, 100);
    let mut sent = launch(&mut session);
    sent.flights.clear();
    let failure = Err(Error::Fatal("test".into()));
    let settlement = session.settle(sent.batch, sent.generation, failure);
    let settlement = settlement.expect("on its way");
    assert_eq!(settlement.answers[0].ticket, ticket);
    let fence = session.fence();
    assert!(!session.has_passed(fence), "other chunks are still to come");
    sent.flights.extend(settlement.next);
    land_while(&mut session, sent, |_| true);
    assert!(session.has_passed(fence));
}

#[test]
fn a_batch_that_goes_again_keeps_a_fence() {
    let mut session = one_by_one();
    put(&mut session, 1.0, 4);
    let given_up = put(&mut session, 2.0, 4);
    launch(&mut session);
    assert!(session.abort(given_up));
    let fence = session.fence();
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20), NOW);
    assert!(!session.has_passed(fence), "it waits to go again");
    let again = session.launch(NOW).expect("sent again");
    assert!(!session.has_passed(fence));
    land(&mut session, again);
    assert!(session.has_passed(fence));
}

#[test]
fn calls_that_wait_for_a_kernel_keep_a_fence() {
    let device = Frail::new(1 << 20).compiling();
    let mut session = Session::new(device, config()).expect("valid settings");
    put(&mut session, 1.0, 4);
    let fence = session.fence();
    session.flush();
    assert!(
        session.launch(NOW).is_none(),
        "its kernel is being compiled"
    );
    // Calls of later batches join the parked batch, and make it no younger.
    put(&mut session, 2.0, 4);
    session.flush();
    assert!(session.launch(NOW).is_none());
    assert!(!session.has_passed(fence));
    for work in session.compiles() {
        let compiled = pollster::block_on(work);
        session.compiled(session.generation(), compiled, NOW);
    }
    let sent = session.launch(NOW).expect("compiled by now");
    assert!(!session.has_passed(fence));
    land(&mut session, sent);
    assert!(session.has_passed(fence));
}

#[test]
fn what_a_disposed_session_held_keeps_no_fence() {
    let mut session = one_by_one();
    put(&mut session, 1.0, 100);
    launch(&mut session);
    put(&mut session, 2.0, 4);
    let fence = session.fence();
    session.dispose();
    assert!(session.has_passed(fence));
}

#[test]
fn fences_pass_where_numbers_of_batches_begin_again() {
    let mut session = one_by_one();
    put(&mut session, 1.0, 4);
    session.queue.open_mut().origin = BatchId(u32::MAX);
    let numbers = [u32::MAX - 1, u32::MAX, 0, 1];
    let passed = numbers.map(|number| session.has_passed(Fence(number)));
    assert_eq!(passed, [true, false, false, false]);
    session.queue.open_mut().origin = BatchId(0);
    let passed = numbers.map(|number| session.has_passed(Fence(number)));
    assert_eq!(passed, [true, true, false, false]);
}
