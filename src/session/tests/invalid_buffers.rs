//! Buffers of tensors that there was no memory for, as launches tell that name them.

use super::computing::{Record, floats_of, read, step};
use super::*;
use crate::graph::UnaryFn;

const A: [f32; 9] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];

const NEGATE: Record = |g, x| Ok(vec![(g.unary(UnaryFn::Neg, x[0])?, 0)]);
const COPY: Record = |_, x| Ok(vec![(x[0], 1)]);

fn is_negated(floats: &[f32]) -> bool {
    floats.iter().zip(A).all(|(x, y)| *x == -y)
}

/// Sends what waits, as often as it goes again.
fn run(session: &mut Session<Frail>) -> Vec<Settlement> {
    session.flush();
    let mut settlements = Vec::new();
    while let Some(sent) = session.launch(NOW) {
        let (batch, generation) = (sent.batch, sent.generation);
        for flight in flights(session, sent) {
            let outcome = pollster::block_on(flight);
            settlements.extend(session.settle(batch, generation, outcome));
        }
    }
    settlements
}

/// A session on a GPU, and a tensor that calls wrote: without that the CPU takes over.
fn written(beside: Option<Frail>) -> (Session<Frail>, u32) {
    let mut session = Session::new(Frail::new(1 << 20).gpu(), config()).expect("valid settings");
    if let Some(cpu) = beside {
        session = session.with_companion(cpu, None);
    }
    let state = session.hold();
    let words: &[u32] = bytemuck::cast_slice(&A);
    session.fill(state, words).expect("room");
    let ticket = step(&mut session, &[state], NEGATE);
    run(&mut session);
    assert_eq!(told(&mut session), [(ticket, Ok(()))]);
    (session, state)
}

#[test]
fn a_tensor_is_written_again_where_there_was_no_memory_for_its_buffer() {
    for shared in [false, true] {
        let (mut session, state) = written(None);
        let [target, neighbor] = std::array::from_fn(|_| match shared {
            true => session.hold_shared(9, &[]),
            false => session.hold(),
        });
        for tensor in [target, neighbor] {
            session.allocate(tensor, 9).expect("as far as is known");
        }
        let home = session.place(target).expect("held").home();
        session.devices.primary_mut().invalid = vec![home];

        let writer = step(&mut session, &[state, target], COPY);
        let reader = read(&mut session, target);
        assert!(run(&mut session).is_empty(), "the call is never sent again");
        let lost = Err(Code::DeviceLost);
        assert_eq!(told(&mut session), [(writer, Ok(())), (reader, lost)]);

        // There is memory now: only what lay in the buffer is lost.
        let early = read(&mut session, neighbor);
        let writers = [target, neighbor].map(|to| step(&mut session, &[state, to], COPY));
        let readers = [state, target, neighbor].map(|tensor| read(&mut session, tensor));
        let settlements = run(&mut session);
        let expected = [(early, lost), (writers[0], Ok(())), (writers[1], Ok(()))];
        assert_eq!(told(&mut session), expected, "shared: {shared}");
        for reader in readers {
            assert!(is_negated(&floats_of(&settlements, reader)));
        }
        assert_eq!(session.pending(), 0);
    }
}

#[test]
fn a_tensor_comes_again_from_the_cpu_where_there_was_no_memory_for_its_buffer() {
    let (mut session, _) = written(Some(Frail::new(1 << 20)));
    let tensor = session.hold_shared(9, &[]);
    let words: &[u32] = bytemuck::cast_slice(&A);
    session.fill(tensor, words).expect("room");
    let home = session.place(tensor).expect("held").home();
    session.devices.primary_mut().invalid = vec![home];
    for _ in 0..2 {
        let reader = read(&mut session, tensor);
        let settlements = run(&mut session);
        assert_eq!(floats_of(&settlements, reader), A);
    }
    assert_eq!(told(&mut session), []);
    assert!(session.devices.primary().invalid.is_empty());
    assert_eq!(session.stats().fallbacks, 0, "the GPU computes it");
}
