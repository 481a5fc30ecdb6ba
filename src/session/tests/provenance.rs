use super::*;

const TENSOR: u32 = 3;

/// A tensor of 8 words that the program filled.
fn filled() -> Provenances {
    let mut all = Provenances::default();
    all.forget(TENSOR);
    all.fill(TENSOR, 8);
    all
}

fn why() -> Arc<str> {
    "planned".into()
}

#[test]
fn only_all_words_are_whole() {
    let mut all = filled();
    let cases = [
        (0, 8, true),
        (0, 12, true),
        (0, 7, false),
        (4, 8, false),
        (0, 0, false),
    ];
    for (at, words, is_whole) in cases {
        assert_eq!(
            all.is_whole(TENSOR, Span { at, words }),
            is_whole,
            "{words} from {at}"
        );
    }
    all.fill(TENSOR, 0);
    assert!(all.is_imported(TENSOR));
    assert!(
        !all.is_whole(TENSOR, Span { at: 0, words: 8 }),
        "nobody knows its length"
    );
}

#[test]
fn a_call_is_overwritten_by_younger_calls_alone() {
    let mut all = filled();
    all.write(TENSOR, Ticket(7));
    all.write(TENSOR, Ticket(5)); // Launched later, in another batch.
    let overwritten = [4, 5, 6, 7, 8].map(|call| all.is_overwritten(TENSOR, Ticket(call)));
    assert_eq!(overwritten, [true, true, true, false, false]);
    assert!(all.is_writer(TENSOR, Ticket(7)) && !all.is_writer(TENSOR, Ticket(5)));
    all.retract(TENSOR, Ticket(7));
    assert!(!all.is_writer(TENSOR, Ticket(7)) && all.is_overwritten(TENSOR, Ticket(5)));
    all.fill(TENSOR, 8);
    assert!(!all.is_overwritten(TENSOR, Ticket(0)) && !all.has_written());
}

#[test]
fn what_calls_wrote_is_lost_with_the_device_until_it_is_written_or_filled_anew() {
    type Act = fn(&mut Provenances);
    let cases: [(Act, bool); 5] = [
        (|all| all.fill(TENSOR, 8), true),
        (|all| all.heal(TENSOR), false),
        (Provenances::restored, true),
        (|all| all.forget(TENSOR), false),
        (
            |all| {
                all.restored();
                all.fill(TENSOR, 8);
            },
            false,
        ),
    ];
    for (number, (act, is_lost)) in cases.into_iter().enumerate() {
        let mut all = filled();
        all.lose_written(&why());
        assert!(!all.has_lost(), "no call has written it");
        all.restored();
        all.write(TENSOR, Ticket(1));
        all.lose_written(&why());
        assert!(all.is_lost(TENSOR) && all.has_lost() && !all.has_written());
        act(&mut all);
        assert_eq!(
            (all.is_lost(TENSOR), all.has_lost()),
            (is_lost, is_lost),
            "case {number}"
        );
    }
}

#[test]
fn the_last_reason_is_told() {
    let mut all = filled();
    all.lose(TENSOR, &"first".into());
    all.lose(TENSOR, &why());
    assert_eq!(all.error(TENSOR), Error::TensorLost("planned".into()));
    all.heal(TENSOR);
    assert!(!all.has_lost(), "lost once");
}
