//! Insertions: vectors of tensors that calls write to a page of an index, and searches of it.

use super::writing::result_of;
use super::*;
use crate::graph::insertion::{Insertion, NOTHING};
use crate::graph::searching::{DeviceBlocks, Mask, NOBODY, Scan, Searching, block_words};

const DIM: u32 = 4;

/// Blocks of the only page.
const BLOCKS: u32 = 2;

fn roomy() -> Session<Frail> {
    session(1 << 26)
}

fn page(session: &mut Session<Frail>) -> u32 {
    let page = session.hold();
    clear(session, page);
    page
}

fn clear(session: &mut Session<Frail>, page: u32) {
    session
        .clear(page, BLOCKS * block_words(1))
        .expect("there is room");
}

/// A tensor of vectors, each of them these floats, in a slab.
fn source(session: &mut Session<Frail>, vectors: &[[f32; DIM as usize]]) -> u32 {
    let words: &[u32] = bytemuck::cast_slice(vectors);
    let number = session.hold_shared(words.len() as u32, &[]);
    session.fill(number, words).expect("there is room");
    number
}

/// Asks for rows of an insertion: the row in the source, the place, and the id.
fn try_insert(
    session: &mut Session<Frail>,
    source: u32,
    page: u32,
    rows: &[[u32; 3]],
) -> Result<Ticket, Error> {
    let rows: Vec<[u32; 3]> = rows
        .iter()
        .map(|[row, place, id]| [*row, *place, id.wrapping_add(1)])
        .collect();
    insertion(session, &[source, page], &rows)
}

fn insert(session: &mut Session<Frail>, source: u32, page: u32, rows: &[[u32; 3]]) -> Ticket {
    try_insert(session, source, page, rows).expect("taken")
}

fn remove(session: &mut Session<Frail>, page: u32, places: &[u32]) -> Ticket {
    let rows: Vec<[u32; 3]> = places.iter().map(|place| [NOTHING, *place, 0]).collect();
    insertion(session, &[page], &rows).expect("taken")
}

fn insertion(
    session: &mut Session<Frail>,
    tensors: &[u32],
    rows: &[[u32; 3]],
) -> Result<Ticket, Error> {
    let recipe = session.recipe(Insertion {
        packing: None,
        is_scaled: false,
        dim: DIM,
        has_source: tensors.len() == 2,
    });
    let words = (3 * rows.len()).next_multiple_of(4);
    let room = session.room(words as u64 + 2).expect("room");
    room[..3 * rows.len()].copy_from_slice(rows.as_flattened());
    room[words..words + tensors.len()].copy_from_slice(tensors);
    let submission = Submission {
        recipe,
        rows: rows.len() as u32,
        scalar: 0,
        key: None,
    };
    Ok(session.submit(&submission, NOW)?.ticket)
}

/// Asks for the four vectors of a page with the largest products with `[1, 0, 0, 0]`.
fn search(session: &mut Session<Frail>, page: u32) -> Ticket {
    let device = DeviceBlocks {
        count: BLOCKS,
        first: BLOCKS,
    };
    search_in(session, 0, device, &[page])
}

/// Asks for the same of several pages, the first of them host pages of so many blocks.
fn search_in(
    session: &mut Session<Frail>,
    blocks: u32,
    device: DeviceBlocks,
    pages: &[u32],
) -> Ticket {
    let recipe = session.recipe(Searching {
        scan: Scan {
            packing: None,
            is_distance: false,
            is_short: true,
        },
        quads: 1,
        count: 4,
        blocks,
        page: BLOCKS,
        device,
        mask: Mask::default(),
    });
    let room = session.room(4 + pages.len() as u64).expect("room");
    room[..4].copy_from_slice(&[1.0_f32.to_bits(), 0, 0, 0]);
    room[4..4 + pages.len()].copy_from_slice(pages);
    submit(session, recipe, 1).ticket
}

/// The ids that a search found.
fn found(settlements: &[Settlement], search: Ticket) -> Vec<u32> {
    let result = result_of(settlements, search);
    let ids = result[..4].iter().map(|id| id.to_bits());
    ids.take_while(|id| *id != NOBODY).collect()
}

fn vector(x: f32) -> [f32; DIM as usize] {
    [x, 1.0, 1.0, 1.0]
}

fn settled(session: &mut Session<Frail>) -> Vec<Settlement> {
    let sent = launch(session);
    land_all(session, sent)
}

#[test]
fn searches_find_what_was_inserted_before_them_and_not_removed() {
    let mut session = roomy();
    let page = page(&mut session);
    let source = source(&mut session, &[vector(1.0), vector(3.0), vector(2.0)]);
    let empty = search(&mut session, page);
    // The last place, one beside it, and the first one; the ids of the first and of the last vector.
    insert(&mut session, source, page, &[[0, 127, 0], [1, 126, 7]]);
    let first = search(&mut session, page);
    insert(&mut session, source, page, &[[2, 0, NOBODY - 1]]);
    let both = search(&mut session, page);
    remove(&mut session, page, &[126]);
    let less = search(&mut session, page);
    // A place that was given up is taken again.
    insert(
        &mut session,
        source,
        page,
        &[[1, 126, 8], [NOTHING, 127, u32::MAX]],
    );
    let again = search(&mut session, page);
    let settlements = settled(&mut session);
    let cases: [(Ticket, &[u32]); 5] = [
        (empty, &[]),
        (first, &[7, 0]),
        (both, &[7, NOBODY - 1, 0]),
        (less, &[NOBODY - 1, 0]),
        (again, &[8, NOBODY - 1]),
    ];
    for (at, (search, ids)) in cases.into_iter().enumerate() {
        assert_eq!(found(&settlements, search), ids, "search {at}");
    }
    assert!(told(&mut session).iter().all(|(_, told)| told.is_ok()));
}

#[test]
fn a_search_looks_through_all_pages_of_both_kinds() {
    let mut session = roomy();
    // A host page of two blocks and one of one; device pages of one block, two blocks, and two of
    // which one is searched.
    let blocks = [2, 1, 1, 2, 2];
    let pages = blocks.map(|_| page(&mut session));
    let source = source(&mut session, &[vector(1.0)]);
    let lasts = [127, 63, 63, 127, 63];
    for ((id, page), place) in (0..).zip(pages).zip(lasts) {
        insert(&mut session, source, page, &[[0, place, id]]);
    }
    let device = |count| DeviceBlocks { count, first: 1 };
    let cases: [(u32, u32, &[u32]); 5] = [
        (2, 0, &[0]),
        (3, 0, &[0, 1]),
        (3, 1, &[0, 1, 2]),
        (0, 4, &[2, 3, 4]),
        (3, 3, &[0, 1, 2, 3]),
    ];
    for (host, count, ids) in cases {
        let first = if host == 0 { 2 } else { 0 };
        let named = &pages[first..first + ids.len()];
        let all = search_in(&mut session, host, device(count), named);
        assert_eq!(
            found(&settled(&mut session), all),
            ids,
            "{host} and {count}"
        );
    }
}

#[test]
fn insertions_of_a_frame_are_one_dispatch() {
    let mut session = roomy();
    let page = page(&mut session);
    let sources = [1.0, 2.0, 3.0].map(|x| source(&mut session, &[vector(x)]));
    session.begin_explain();
    for (place, source) in (0..).zip(sources) {
        insert(&mut session, source, page, &[[0, place, place]]);
    }
    search(&mut session, page);
    let plan = session.end_explain();
    let kernels = plan.lines().filter(|line| line.starts_with("dispatch"));
    let names: Vec<&str> = kernels
        .filter_map(|line| line.split([' ', '(']).nth(1))
        .collect();
    assert_eq!(
        names,
        ["pack_vectors", "top_k_scan", "top_k_merge"],
        "{plan}"
    );

    // Two vectors of one place are written in the order in which they were given.
    session.begin_explain();
    for source in sources {
        insert(&mut session, source, page, &[[0, 5, 5]]);
    }
    let plan = session.end_explain();
    assert_eq!(plan.matches("pack_vectors").count(), 3, "{plan}");
}

#[test]
fn vectors_with_what_is_no_number_are_never_found() {
    let mut session = roomy();
    let page = page(&mut session);
    let wrong = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.1e17, -1.1e17];
    let vectors: Vec<[f32; 4]> = wrong.iter().map(|x| [1.0, 1.0, *x, 1.0]).collect();
    let source = source(&mut session, &[&vectors[..], &[vector(1e17)]].concat());
    let rows: Vec<[u32; 3]> = (0..6).map(|k| [k, k, k]).collect();
    insert(&mut session, source, page, &rows);
    let only = search(&mut session, page);
    assert_eq!(found(&settled(&mut session), only), [5]);
}

#[test]
fn words_that_a_tensor_lacks_are_refused() {
    let mut session = roomy();
    let page = page(&mut session);
    let source = source(&mut session, &[vector(1.0), vector(2.0)]);
    let cases = [
        ([2, 0, 0], "a tensor of 8 words has no word 11"),
        ([NOTHING - 1, 0, 0], "a tensor of 8 words has no word"),
        ([1, 128, 0], "a tensor of 768 words has no word 1151"),
        ([NOTHING, u32::MAX, 0], "a tensor of 768 words has no word"),
    ];
    for (row, message) in cases {
        let error = try_insert(&mut session, source, page, &[[0, 0, 0], row]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(message), "{error}");
    }
    insert(&mut session, source, page, &[[1, 127, 0]]);
    assert!(told(&mut session).is_empty());
}

#[test]
fn after_a_loss_a_page_is_refused_until_its_vectors_are_inserted_again() {
    for is_healed in [false, true] {
        let mut session = roomy();
        let page = page(&mut session);
        let source = source(&mut session, &[vector(1.0)]);
        insert(&mut session, source, page, &[[0, 3, 3]]);
        settled(&mut session);
        told(&mut session);
        let waiting = search(&mut session, page);
        session.lose(session.generation());
        session.replace_device(Frail::new(1 << 26), NOW);
        clear(&mut session, page);
        let words = vector(1.0).map(f32::to_bits);
        session.fill(source, &words).expect("there is room");
        assert!(session.is_tensor_lost(page));
        if is_healed {
            session.begin_restoration();
            insert(&mut session, source, page, &[[0, 3, 3]]);
            session.end_restoration();
            session.heal(page);
        }
        assert_eq!(session.give_up_unreadable(), []);
        session.flush();
        let mut settlements = Vec::new();
        while let Some(sent) = session.launch(NOW) {
            settlements.extend(land_all(&mut session, sent));
        }
        match is_healed {
            true => assert_eq!(found(&settlements, waiting), [3]),
            false => assert_eq!(told(&mut session), [(waiting, Err(Code::DeviceLost))]),
        }
    }
}

#[test]
fn a_page_of_zeros_is_no_older_page() {
    let mut session = roomy();
    let older = page(&mut session);
    let source = source(&mut session, &[vector(1.0)]);
    insert(&mut session, source, older, &[[0, 3, 3]]);
    settled(&mut session);
    session.release(older);
    let newer = page(&mut session);
    let empty = search(&mut session, newer);
    assert_eq!(found(&settled(&mut session), empty), [0_u32; 0]);
}
