//! A batch in several chunks: which chunk answers whom, and what becomes of the other
//! chunks when one fails or the device is lost between two.

use std::collections::BTreeMap;

use super::*;
use crate::Code;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::tensor::DType;

/// Rows of the calls of a batch: two small ones, one that is cut, two more.
const ROWS: [u32; 5] = [4, 8, 100, 3, 40];

fn session_in_chunks() -> Session<Frail> {
    Session::new(Frail::in_chunks(1 << 20, 256), config()).expect("valid settings")
}

fn ask_all(session: &mut Session<Frail>) -> Vec<Ticket> {
    let calls = (0_u8..).map(f32::from).zip(ROWS);
    calls
        .map(|(value, rows)| put(session, value, rows))
        .collect()
}

/// What was answered: the floats so far, or why there are none.
#[derive(Default)]
struct Answers {
    begun: BTreeMap<Ticket, Vec<f32>>,
    done: BTreeMap<Ticket, Result<Vec<f32>, Code>>,
}

impl Answers {
    fn take(&mut self, settlement: &Settlement) {
        for answer in &settlement.answers {
            let ticket = answer.ticket;
            let done = match &settlement.outcome {
                Err(error) => Some(Err(error.code())),
                Ok(_) => {
                    let begun = self.begun.entry(ticket).or_default();
                    begun.truncate(answer.at as usize);
                    assert_eq!(begun.len(), answer.at as usize, "parts come in order");
                    begun.extend(floats(settlement, answer));
                    answer.is_last().then(|| Ok(begun.clone()))
                }
            };
            if let Some(done) = done {
                assert!(self.done.insert(ticket, done).is_none(), "answered twice");
            }
        }
    }

    /// Lands the flights of a batch, one of them with an outcome of its own.
    fn land(
        &mut self,
        session: &mut Session<Frail>,
        launch: Launch,
        fails: Option<(usize, &Error)>,
    ) {
        for (index, flight) in launch.flights.into_iter().enumerate() {
            let arrived = pollster::block_on(flight);
            let outcome = match fails {
                Some((at, error)) if at == index => Err(error.clone()),
                _ => arrived,
            };
            if let Some(settlement) = session.settle(launch.batch, launch.generation, outcome) {
                self.take(&settlement);
            }
        }
    }

    /// The tickets that were answered well, each with its own floats.
    fn well(&self, tickets: &[Ticket]) -> Vec<usize> {
        let floats = |index: usize| vec![index as f32 + 1.0; ROWS[index] as usize];
        let well = tickets.iter().enumerate().filter(|(index, ticket)| {
            let answer = self.done.get(ticket).expect("answered");
            if let Ok(given) = answer {
                assert_eq!(given, &floats(*index), "call {index}");
            }
            answer.is_ok()
        });
        well.map(|(index, _)| index).collect()
    }
}

#[test]
fn parts_of_a_cut_call_are_its_whole_result() {
    let mut session = session_in_chunks();
    let tickets = ask_all(&mut session);
    let sent = launch(&mut session);
    let chunks = sent.flights.len();
    assert!(chunks > 3, "{chunks} chunks");
    let mut answers = Answers::default();
    answers.land(&mut session, sent, None);
    assert_eq!(answers.well(&tickets), [0, 1, 2, 3, 4]);
    let stats = session.stats();
    assert_eq!((stats.batches, stats.pieces), (1, chunks as u64));
    assert_eq!((stats.settled, stats.rejected), (5, 0));
    assert_eq!((session.pending(), session.in_flight()), (0, 0));
    assert_eq!(session.queue.pending_bytes(), 0);
}

#[test]
fn a_chunk_that_lands_gives_its_calls_room_in_the_queue() {
    let mut session = session_in_chunks();
    ask_all(&mut session);
    let mut sent = launch(&mut session);
    let first = pollster::block_on(sent.flights.remove(0));
    let settlement = session.settle(sent.batch, sent.generation, first);
    let settlement = settlement.expect("on its way");
    assert!(!settlement.is_last);
    let done = settlement.answers.iter().filter(|answer| answer.is_last());
    assert_eq!(session.pending(), ROWS.len() - done.count());
    assert_eq!(
        session.in_flight(),
        1,
        "a batch counts until its last chunk"
    );
}

#[test]
fn a_failed_chunk_takes_its_own_calls_along_and_no_others() {
    let chunks = {
        let mut session = session_in_chunks();
        ask_all(&mut session);
        launch(&mut session).flights.len()
    };
    for failed in 0..chunks {
        let mut session = session_in_chunks();
        let tickets = ask_all(&mut session);
        let sent = launch(&mut session);
        let chunk = session.queue.in_flight()[0].way.chunks[failed].chunk;
        let unharmed: Vec<usize> = (0..ROWS.len())
            .filter(|index| !(chunk.first..chunk.end).contains(index))
            .collect();
        let mut answers = Answers::default();
        let fault = Error::OutOfMemory("test".into());
        answers.land(&mut session, sent, Some((failed, &fault)));
        assert_eq!(answers.well(&tickets), unharmed, "chunk {failed}");
        let stats = session.stats();
        assert_eq!(stats.settled, unharmed.len() as u64);
        assert_eq!(stats.settled + stats.rejected, ROWS.len() as u64);
        assert_eq!((session.pending(), loads(&session)), (0, 1));
        assert_eq!(session.queue.pending_bytes(), 0);
    }
}

#[test]
fn a_loss_between_two_chunks_answers_nobody_twice() {
    for lost in 0..4 {
        let mut session = session_in_chunks();
        let tickets = ask_all(&mut session);
        let sent = launch(&mut session);
        let mut answers = Answers::default();
        let loss = Error::DeviceLost("test".into());
        answers.land(&mut session, sent, Some((lost, &loss)));
        let before = answers.done.len();
        assert!(session.is_lost() && before < ROWS.len(), "chunk {lost}");
        assert_eq!(session.pending(), ROWS.len() - before);
        // The next device may cut the batch in another way, or not at all.
        session.replace_device(
            match lost % 2 {
                0 => Frail::in_chunks(1 << 20, 100),
                _ => Frail::new(1 << 20),
            },
            NOW,
        );
        let again = session.launch(NOW).expect("sent again");
        assert_eq!(super::tickets(last_sent(&session)), tickets[before..]);
        answers.land(&mut session, again, None);
        assert_eq!(answers.well(&tickets), [0, 1, 2, 3, 4], "chunk {lost}");
        assert_eq!(session.stats().settled, ROWS.len() as u64);
        assert_eq!(session.stats().batches, 1);
    }
}

#[test]
fn a_batch_of_which_each_attempt_answers_some_is_answered_whole() {
    let mut session = session_in_chunks();
    let tickets = ask_all(&mut session);
    let mut answers = Answers::default();
    let mut losses = 0;
    session.flush();
    while let Some(mut sent) = session.launch(NOW) {
        let before = answers.done.len();
        while answers.done.len() == before {
            let outcome = pollster::block_on(sent.flights.remove(0));
            let settlement = session.settle(sent.batch, sent.generation, outcome);
            answers.take(&settlement.expect("on its way"));
        }
        if session.in_flight() > 0 {
            let loss = Err(Error::DeviceLost("test".into()));
            let told = session.settle(sent.batch, sent.generation, loss);
            assert!(told.is_none(), "lost {losses} times before");
            losses += 1;
            session.replace_device(Frail::in_chunks(1 << 20, 16), NOW);
        }
    }
    assert!(losses >= ATTEMPTS, "{losses} losses");
    assert_eq!(answers.well(&tickets), [0, 1, 2, 3, 4]);
}

#[test]
fn a_cut_call_that_is_never_whole_is_an_error_at_last() {
    let mut session = session_in_chunks();
    let ticket = put(&mut session, 1.0, ROWS[2]);
    session.flush();
    for attempt in 1..=ATTEMPTS {
        let mut sent = session.launch(NOW).expect("sent");
        let first = pollster::block_on(sent.flights.remove(0));
        let part = session.settle(sent.batch, sent.generation, first);
        assert!(!part.expect("on its way").is_last);
        let loss = Err(Error::DeviceLost("test".into()));
        let told = session.settle(sent.batch, sent.generation, loss);
        assert_eq!(told.is_some(), attempt == ATTEMPTS, "attempt {attempt}");
        if let Some(told) = told {
            assert_eq!(told.answers[0].ticket, ticket);
        }
        session.replace_device(Frail::in_chunks(1 << 20, 256), NOW);
    }
    assert_eq!(session.pending(), 0);
}

#[test]
fn a_call_given_up_between_its_parts_is_heard_of_no_more() {
    let mut session = session_in_chunks();
    let tickets = ask_all(&mut session);
    let mut sent = launch(&mut session);
    let mut answers = Answers::default();
    let cut = tickets[2];
    while !answers.begun.contains_key(&cut) {
        let outcome = pollster::block_on(sent.flights.remove(0));
        let settlement = session.settle(sent.batch, sent.generation, outcome);
        answers.take(&settlement.expect("on its way"));
    }
    assert!(!answers.done.contains_key(&cut) && session.abort(cut));
    let begun = answers.begun[&cut].len();
    answers.land(&mut session, sent, None);
    assert_eq!(answers.begun[&cut].len(), begun);
    assert_eq!(answers.done.len(), ROWS.len() - 1);
    let stats = session.stats();
    assert_eq!((stats.settled, stats.rejected, stats.pending), (4, 1, 0));
}

#[test]
fn explained_chunks_are_told_apart() {
    let mut session = session_in_chunks();
    session.begin_explain();
    ask_all(&mut session);
    let text = session.end_explain();
    assert!(text.starts_with("piece 1 of "), "{text}");
    assert!(text.contains("piece 4 of "), "{text}");
}

/// The chunks of eight calls of a network: rows of 4 floats, multiplied to `wide` floats and
/// back.
fn chunks_of_networks(device: Frail, rows: u32, wide: u32) -> usize {
    let limits = BatchConfig {
        memory_budget: Some(10 << 20),
        ..config()
    };
    let mut session = Session::new(device, limits).expect("valid settings");
    let mut chain = Chain::default();
    let [x, there, back] = [[rows, 4], [4, wide], [wide, 4]].map(|dims| {
        let shape = Shape::new(&dims).expect("a small shape");
        chain.input(shape, DType::F32, Home::Call).expect("room")
    });
    let y = chain.matmul(x, there).expect("they fit");
    let y = chain.matmul(y, back).expect("they fit");
    chain.output(y).expect("a node of it");
    let recipe = session.recipe(chain);
    session.begin_explain();
    for _ in 0..8 {
        let words = u64::from(4 * rows + 8 * wide);
        session.room(words).expect("room");
        submit(&mut session, recipe, 0);
    }
    let plan = session.end_explain();
    plan.matches("piece ").count().max(1)
}

/// A chunk's intermediates may take three quarters of the 8 MiB of live bytes on a GPU.
/// Operands and results are in a GPU's memory six times; a CPU answers as it goes.
#[test]
fn what_stays_on_the_gpu_counts_once() {
    let cpu = || Frail::new(1 << 28);
    // 4 MiB of intermediates, 64 KiB of operands and results.
    assert_eq!(chunks_of_networks(cpu().gpu(), 512, 256), 1);
    assert_eq!(chunks_of_networks(cpu(), 512, 256), 8);
    // 8 MiB of intermediates.
    assert_eq!(chunks_of_networks(cpu().gpu(), 512, 512), 2);
    // 2 MiB of operands and results, and half of that of intermediates.
    assert_eq!(chunks_of_networks(cpu().gpu(), 8192, 4), 4);
    assert_eq!(chunks_of_networks(cpu(), 8192, 4), 4);
}
