//! A GPU that has less memory than a batch needs: the batch goes again in smaller
//! chunks, then to the CPU; no call fails.

use std::collections::BTreeMap;

use super::limits::COPIES;
use super::*;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::tensor::DType;

/// Bytes of a chunk that the device likes.
const TARGET: u64 = 4096;

/// A session whose GPU has so many bytes for a chunk, with a CPU beside it.
fn scarce(capacity: u64) -> Session<Frail> {
    let device = Frail {
        capacity,
        ..Frail::in_chunks(1 << 20, TARGET).gpu()
    };
    let session = Session::new(device, config()).expect("valid settings");
    session.with_companion(Frail::new(1 << 20), None)
}

/// Sends until nothing is left, as a face does. Returns each call's floats.
fn finish(session: &mut Session<Frail>) -> BTreeMap<Ticket, Vec<f32>> {
    let mut results: BTreeMap<Ticket, Vec<f32>> = BTreeMap::new();
    let mut done = Vec::new();
    session.flush();
    while let Some(sent) = session.launch(NOW) {
        let (batch, generation) = (sent.batch, sent.generation);
        for flight in flights(session, sent) {
            let outcome = pollster::block_on(flight);
            let Some(settlement) = session.settle(batch, generation, outcome) else {
                continue;
            };
            for answer in &settlement.answers {
                let begun = results.entry(answer.ticket).or_default();
                begun.truncate(answer.at as usize); // Sent again, the result begins anew.
                assert_eq!(begun.len(), answer.at as usize, "parts come in order");
                begun.extend(floats(&settlement, answer));
                if answer.is_last() {
                    done.push(answer.ticket);
                }
            }
        }
    }
    assert_eq!(done.len(), results.len(), "each call once");
    results
}

/// Asks for calls of many lengths, one of them larger than a chunk. Returns what they give.
fn mixed(session: &mut Session<Frail>) -> BTreeMap<Ticket, Vec<f32>> {
    let rows = [3, 200, 5000, 1, 64, 900, 17];
    let calls = (0_u16..).map(f32::from).zip(rows);
    let calls =
        calls.map(|(value, rows)| (put(session, value, rows), vec![value + 1.0; rows as usize]));
    calls.collect()
}

#[test]
fn chunks_are_halved_until_they_fit() {
    for (capacity, gpu) in [(u64::MAX, 7), (3 * TARGET, 7), (TARGET, 7), (100, 0)] {
        let mut session = scarce(capacity);
        let expected = mixed(&mut session);
        assert_eq!(finish(&mut session), expected, "{capacity} bytes");
        let stats = session.stats();
        assert_eq!((stats.settled, stats.rejected), (7, 0), "{capacity} bytes");
        assert_eq!(stats.ran_on_gpu, gpu, "{capacity} bytes");
        let is_relieved = gpu < 7;
        assert_eq!(stats.fallbacks, u64::from(is_relieved));
        assert_eq!(session.take_fallback(), is_relieved);
        assert!(!session.take_fallback(), "said once");
        assert_eq!(session.devices.primary().trims > 0, capacity <= TARGET);
        assert_eq!((session.pending(), loads(&session)), (0, 1));

        // The next batch starts with chunks of the usual size.
        let expected = mixed(&mut session);
        assert_eq!(finish(&mut session), expected);
    }
}

#[test]
fn a_kernel_without_a_function_for_the_cpu_takes_nobody_along_when_memory_is_short() {
    let mut session = scarce(0);
    let plus = suspicion::adds("of_the_cpu_too", 2.0);
    let alone = suspicion::define("of_the_gpu_alone", None);
    let known = suspicion::apply(&mut session, &plus, 3.0);
    let refused = suspicion::apply(&mut session, &alone, 3.0);
    let plain = put(&mut session, 1.0, 3);
    let expected = BTreeMap::from([(known, vec![5.0]), (plain, vec![2.0; 3])]);
    assert_eq!(finish(&mut session), expected);
    let answered = session.take_answered().expect("a call that was refused");
    assert_eq!(answered.tickets, [refused]);
    assert!(session.take_answered().is_none());
    let error = answered.outcome.expect_err("no memory");
    assert_eq!(error.code(), crate::Code::OutOfMemory);
    assert!(error.to_string().contains("'of_the_gpu_alone'"), "{error}");
    let stats = session.stats();
    assert_eq!((stats.settled, stats.rejected), (2, 1));
    assert_eq!((session.pending(), loads(&session)), (0, 1));
}

#[test]
fn what_memory_was_short_for_goes_alone() {
    let mut session = scarce(u64::MAX);
    let first = put(&mut session, 1.0, 3);
    let held = launch(&mut session);
    session.devices.primary_mut().fault = Some(Error::OutOfMemory("full".into()));
    let short = put(&mut session, 2.0, 3);
    let failed = launch(&mut session);
    put(&mut session, 3.0, 3);
    let (batch, generation) = (failed.batch, failed.generation);
    let outcome = pollster::block_on(flight(failed));
    assert!(session.settle(batch, generation, outcome).is_none());

    // The first batch still has its memory.
    session.flush();
    assert_eq!(session.due(NOW), Due::Idle);
    assert!(session.launch(NOW).is_none());
    let settlement = land(&mut session, held);
    assert_eq!(settlement.answers[0].ticket, first);
    assert_eq!(session.due(NOW), Due::Now);
    let again = session.launch(NOW).expect("there is room now");
    assert!(session.launch(NOW).is_none(), "nothing goes with it");
    let settlement = land(&mut session, again);
    assert_eq!(values(&settlement), [(short, vec![3.0; 3])]);
    assert_eq!(finish(&mut session).len(), 1, "the last goes as usual");
    assert_eq!(session.stats().rejected, 0);
}

#[test]
fn calls_given_up_meanwhile_are_not_sent_again() {
    let mut session = scarce(100);
    let tickets: Vec<Ticket> = mixed(&mut session).into_keys().collect();
    let sent = launch(&mut session);
    for ticket in &tickets {
        assert!(session.abort(*ticket));
    }
    let (batch, generation) = (sent.batch, sent.generation);
    for flight in sent.flights {
        let outcome = pollster::block_on(flight);
        assert!(session.settle(batch, generation, outcome).is_none());
    }
    assert!(finish(&mut session).is_empty());
    assert_eq!((session.pending(), loads(&session)), (0, 1));
}

#[test]
fn a_device_without_memory_for_its_tensors_is_given_up() {
    let mut session = scarce(u64::MAX);
    let shape = Shape::new(&[1 << 19]).expect("a shape");
    let mut chain = Chain::default();
    let x = chain
        .input(shape, DType::F32, Home::Resident)
        .expect("room");
    let sum = chain
        .unary(crate::graph::UnaryFn::Relu, x)
        .expect("one tensor");
    chain.output(sum).expect("a node");
    let recipe = session.recipe(chain);
    // The tensor is too large for the CPU to have a copy.
    let tensor = session.hold();
    let words = vec![2.0_f32.to_bits(); 1 << 19];
    session.fill(tensor, &words).expect("held");
    session.devices.primary_mut().max_side_bytes = 1 << 24;
    session.devices.primary_mut().capacity = 100;
    session.room(8).expect("room")[0] = tensor;
    let ticket = submit(&mut session, recipe, 0).ticket;
    assert!(finish(&mut session).is_empty());
    assert_eq!(session.life.loss(), Some(recovery::Loss::Exhausted));

    session.replace_device(Frail::new(1 << 24), NOW);
    assert!(!session.is_lost());
    session.fill(tensor, &words).expect("held");
    assert!(session.give_up_unreadable().is_empty());
    let results = finish(&mut session);
    assert!(results[&ticket].iter().all(|value| *value == 2.0));
    assert_eq!(session.stats().rejected, 0);
}

#[test]
fn batches_leave_tensors_their_memory() {
    const MIB: u64 = 1 << 20;
    let limits = BatchConfig {
        memory_budget: Some(64 * MIB),
        ..config()
    };
    let mut session = Session::new(Frail::new(1 << 28), limits).expect("valid settings");
    let most = |session: &Session<Frail>| session.queue.config().max_batch_bytes;
    let live = 64 * MIB - (64 * MIB).div_ceil(5);
    assert_eq!(session.devices.primary().allowed, 64 * MIB);
    assert_eq!(most(&session), live / COPIES);
    let tensors = [20_u32, 20].map(|mib| {
        let tensor = session.hold();
        let words = vec![0; (u64::from(mib) * MIB / 4) as usize];
        session.fill(tensor, &words).expect("held");
        tensor
    });
    assert_eq!(most(&session), (live - 40 * MIB) / COPIES);
    session.fill(tensors[0], &[0; 4]).expect("held");
    assert_eq!(most(&session), (live - 20 * MIB - 16) / COPIES);
    session.release(tensors[1]);
    assert_eq!(most(&session), (live - 16) / COPIES);
    // Batches go on, whatever tensors take.
    session
        .fill(tensors[0], &vec![0; 15 * MIB as usize])
        .expect("held");
    assert_eq!(most(&session), MIB);
    session.fill(tensors[0], &[0; 4]).expect("held");
    // A filling that is refused midway has taken memory too, until the tensor is given up.
    let refused = session.hold();
    let outcome = session.place_with(refused, None, |device| {
        device.fill(refused, &vec![0; 5 * MIB as usize], None)?;
        Err(Error::InvalidInput("not what it holds".into()))
    });
    assert!(outcome.is_err());
    assert_eq!(most(&session), (live - 20 * MIB - 16) / COPIES);
    session.release(refused);
    assert_eq!(most(&session), (live - 16) / COPIES);
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 28), NOW);
    assert_eq!(session.devices.primary().allowed, 64 * MIB);
    assert_eq!(most(&session), live / COPIES);
}

#[test]
fn trimmed_sessions_keep_what_is_on_its_way() {
    let mut session = scarce(u64::MAX);
    let ticket = put(&mut session, 1.0, 3);
    let sent = launch(&mut session);
    session.trim();
    assert_eq!(session.devices.primary().trims, 0, "a batch is on its way");
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(ticket, vec![2.0; 3])]);
    let before = session.stats().host_bytes;
    session.trim();
    assert_eq!(session.devices.primary().trims, 1);
    assert!(session.arenas.spare().is_empty() && session.stats().host_bytes < before);
    let expected = mixed(&mut session);
    assert_eq!(finish(&mut session), expected);
}
