//! Structures that come and go: a structure that is given up is freed, and its pending
//! calls are still computed.

use super::*;
use crate::Code;

/// A structure of rows of so many floats.
fn structure(session: &mut Session<impl Device>, width: u32) -> RecipeId {
    session.recipe(ops::lerp(width, Timing::Row).expect("a width"))
}

/// Asks for a row halfway between zeros and twice its width.
fn ask_row(session: &mut Session<impl Device>, recipe: RecipeId, width: u32) -> Accepted {
    let side = width.next_multiple_of(4) as usize;
    let room: &mut [f32] =
        bytemuck::cast_slice_mut(session.room(2 * side as u64 + 4).expect("room"));
    room[..side].fill(0.0);
    room[side..2 * side].fill(2.0 * width as f32);
    room[2 * side] = 0.5;
    submit(session, recipe, 1)
}

#[test]
fn thousands_of_structures_take_the_memory_of_a_few() {
    let mut session = session(1 << 20);
    let mut held = Vec::new();
    for width in 1..5000 {
        let recipe = structure(&mut session, width);
        let ticket = ask_row(&mut session, recipe, width).ticket;
        held.push(recipe);
        if held.len() > 8 {
            session.forget(held.drain(..4));
        }
        if width % 3 == 0 {
            let sent = launch(&mut session);
            let settlement = land(&mut session, sent);
            let (last, floats) = values(&settlement).pop().expect("three calls");
            assert_eq!((last, floats), (ticket, vec![width as f32; width as usize]));
        }
    }
    assert!(session.programs.recipes().len() <= 16);
}

#[test]
fn a_number_is_good_until_its_last_holder_and_its_last_call() {
    let mut session = session(1 << 20);
    let twice = [(); 2].map(|()| structure(&mut session, 5));
    assert_eq!(twice[0], twice[1]);
    let tickets = twice.map(|recipe| ask_row(&mut session, recipe, 5).ticket);
    session.forget([twice[0]]);
    let third = ask_row(&mut session, twice[1], 5).ticket;
    session.forget([twice[1]]);
    session.forget([twice[1], RecipeId(77)]); // Given up too often, and a number that nobody knows.

    let refused = Submission {
        recipe: twice[1],
        rows: 1,
        scalar: 0,
        key: None,
    };
    assert!(session.programs.get(twice[1]).is_none());
    let error = session.submit(&refused, NOW).unwrap_err();
    assert_eq!(error.code(), Code::InvalidInput);
    let other = structure(&mut session, 6);
    assert_ne!(other, twice[1], "calls of it are pending");

    // The calls are sent again where the device is lost meanwhile.
    let lost = launch(&mut session);
    session.lose(lost.generation);
    session.replace_device(Frail::new(1 << 20), NOW);
    let newcomer = structure(&mut session, 7);
    assert_ne!(newcomer, twice[1], "they are sent again");
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    let right = |ticket| (ticket, vec![5.0; 5]);
    assert_eq!(
        values(&settlement),
        [tickets[0], tickets[1], third].map(right)
    );
    assert_eq!(
        structure(&mut session, 8),
        twice[1],
        "it can be given again"
    );
    assert!(session.programs.get(other).is_some());
}

#[test]
fn what_is_asked_for_again_in_time_is_the_same() {
    let mut session = session(1 << 20);
    let recipe = structure(&mut session, 5);
    let ticket = ask_row(&mut session, recipe, 5).ticket;
    session.forget([recipe]);
    assert_eq!(structure(&mut session, 5), recipe);
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(ticket, vec![5.0; 5])]);
    assert!(session.programs.get(recipe).is_some(), "somebody holds it");
}

#[test]
fn a_call_as_large_as_the_last_is_refused_where_it_no_longer_fits() {
    let mut session = session(1 << 20);
    let width = 1 << 12;
    let recipe = structure(&mut session, width);
    for _ in 0..2 {
        ask_row(&mut session, recipe, width);
    }
    // The number becomes another structure's: what calls of the first took is not what
    // these take.
    let sent = launch(&mut session);
    land(&mut session, sent);
    session.forget([recipe]);
    assert_eq!(structure(&mut session, 5), recipe);
    let ticket = ask_row(&mut session, recipe, 5).ticket;
    let sent = launch(&mut session);
    assert_eq!(values(&land(&mut session, sent)), [(ticket, vec![5.0; 5])]);

    // Another device holds less.
    let large = structure(&mut session, width);
    ask_row(&mut session, large, width);
    session.flush();
    let sent = session.launch(NOW).expect("a batch to send");
    land(&mut session, sent);
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 13), NOW);
    let again = Submission {
        recipe: large,
        rows: 1,
        scalar: 0,
        key: None,
    };
    let error = session.submit(&again, NOW).unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded);
}

#[test]
fn a_structure_given_up_while_calls_restore_is_there_for_the_calls_they_interrupted() {
    let mut session = session(1 << 20);
    let recipe = structure(&mut session, 5);
    let ticket = ask_row(&mut session, recipe, 5).ticket;
    session.begin_restoration();
    session.forget([recipe]);
    // The number of a structure that is gone would be given to the next.
    let other = structure(&mut session, 7);
    assert_ne!(other, recipe);
    session.end_restoration();
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(ticket, vec![5.0; 5])]);
}
