//! Chunks that were not submitted, and what waits behind them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::writing::{asked, pose, result_of, written};
use super::*;

/// A device of many small chunks.
fn in_chunks() -> Frail {
    Frail::in_chunks(1 << 20, 256).gpu()
}

/// Lands all chunks of a batch, and those that are sent in their place.
fn land_chunks(session: &mut Session<Frail>, sent: Launch) -> Vec<Settlement> {
    let mut flights = VecDeque::from(sent.flights);
    let mut settlements = Vec::new();
    while let Some(flight) = flights.pop_front() {
        let outcome = pollster::block_on(flight);
        if let Some(mut settled) = session.settle(sent.batch, sent.generation, outcome) {
            flights.extend(settled.next.drain(..));
            settlements.push(settled);
        }
    }
    settlements
}

/// What became of the calls of a batch, one chunk of which is not submitted.
struct Outcome {
    /// Whether each of the two writes was acknowledged, and what the reading behind each found.
    writes: [(bool, Option<f32>); 2],
    /// How many of the calls that name no tensor were answered.
    others: usize,
}

/// Sends writes of a lost tensor and readings of it between other calls, so that the chunk behind
/// `spared` others is not submitted, as often as it is tried.
fn play(spared: usize, fault: &Error, times: usize) -> Outcome {
    let mut session = Session::new(in_chunks(), config()).expect("valid settings");
    let pose = pose(&mut session);
    written(&mut session, pose, 1.0);
    let sent = launch(&mut session);
    land_chunks(&mut session, sent);
    told(&mut session);
    let planned = Arc::from("planned");
    session.provenances.lose(pose.target, &planned);
    let mut others = vec![put(&mut session, 1.0, 40)];
    let calls = [5.0, 7.0].map(|value| {
        let writer = written(&mut session, pose, value);
        others.push(put(&mut session, 2.0, 40));
        (writer, asked(&mut session, pose, None))
    });
    session.flush();
    let (mut settlements, mut heard) = (Vec::new(), Vec::new());
    let mut flying = VecDeque::new();
    for attempt in 0.. {
        let device = session.devices.primary_mut();
        if device.fault.is_none() && attempt < times {
            (device.spared, device.fault) = (spared, Some(fault.clone()));
        }
        // As soon as a batch may go again it does, whatever is on its way.
        if let Some(sent) = session.launch(NOW) {
            let (batch, generation) = (sent.batch, sent.generation);
            flying.extend(sent.flights.into_iter().map(|own| (batch, generation, own)));
        }
        heard.extend(told(&mut session));
        let Some((batch, generation, flight)) = flying.pop_front() else {
            break;
        };
        let outcome = pollster::block_on(flight);
        if let Some(mut settled) = session.settle(batch, generation, outcome) {
            flying.extend(settled.next.drain(..).map(|own| (batch, generation, own)));
            settlements.push(settled);
        }
    }
    assert_eq!((session.pending(), loads(&session)), (0, 1));
    let well = settlements.iter().filter(|settled| settled.outcome.is_ok());
    let well = well.flat_map(|settled| &settled.answers);
    let answered: Vec<Ticket> = well
        .filter(|answer| answer.is_last())
        .map(|own| own.ticket)
        .collect();
    Outcome {
        writes: calls.map(|(writer, reader)| {
            let found = answered.contains(&reader).then(|| {
                let settled = settlements.iter().rfind(|settled| {
                    let mut own = settled.answers.iter();
                    settled.outcome.is_ok() && own.any(|own| own.ticket == reader)
                });
                result_of(std::slice::from_ref(settled.expect("answered")), reader)[0]
            });
            (heard.contains(&(writer, Ok(()))), found)
        }),
        others: others.iter().filter(|own| answered.contains(own)).count(),
    }
}

#[test]
fn nobody_reads_a_lost_tensor_that_a_chunk_should_have_written_which_was_not_submitted() {
    let shortage = Error::OutOfMemory("planned".into());
    // A shortage is over after six attempts, or soon.
    let faults = [
        (Error::Fatal("planned".into()), 1),
        (shortage.clone(), 6),
        (shortage, 2),
    ];
    let (mut lost, mut late) = (0, 0);
    for (fault, times) in faults {
        for spared in 0..12 {
            let Outcome { writes, others } = play(spared, &fault, times);
            let what = format!("{spared} chunks before {fault}, {times} times: {writes:?}");
            let [(first, early), (second, last)] = writes;
            assert!(early.is_none_or(|found| first && found == 5.0), "{what}");
            let expected = if second { 7.0 } else { 5.0 };
            assert!(
                last.is_none_or(|found| (first || second) && found == expected),
                "{what}"
            );
            assert!(others > 0, "{what}");
            lost += usize::from(!first && early.is_none());
            late += usize::from(!second && last == Some(5.0));
        }
    }
    assert!(lost > 0 && late > 0, "{lost} lost, {late} late");
}

#[test]
fn flights_that_come_after_their_chunks_were_refused_are_ignored() {
    let config = BatchConfig {
        max_pieces_in_flight: Some(2),
        ..config()
    };
    let mut session = Session::new(in_chunks(), config).expect("valid settings");
    let first = put(&mut session, 1.0, 300);
    let second = put(&mut session, 2.0, 300);
    let mut sent = launch(&mut session);
    for number in 1..=ATTEMPTS {
        session.lose(session.generation());
        let mut refused = Vec::new();
        while let Some(settled) = session.refuse_chunk() {
            refused.extend(settled.answers.iter().map(|answer| answer.ticket));
        }
        let is_last = number == ATTEMPTS;
        assert_eq!(refused.contains(&first), is_last, "{number} devices");
        for flight in std::mem::take(&mut sent.flights) {
            // The flight came before the device was lost.
            let outcome = pollster::block_on(flight);
            if is_last {
                let settled = session.settle(sent.batch, sent.generation, outcome);
                assert!(settled.is_none(), "its chunk was refused");
            }
        }
        session.replace_device(in_chunks(), NOW);
        sent = session.launch(NOW).expect("sent again");
    }
    assert_eq!(tickets(last_sent(&session)), [second]);
    let settlements = land_chunks(&mut session, sent);
    let words: u32 = (settlements.iter().flat_map(|settled| &settled.answers))
        .map(|answer| answer.span.words)
        .sum();
    assert_eq!((words, session.pending()), (300, 0));
}
