//! Texts at random against Hugging Face's crate, and every character once.

use framebatch::embed::tokenizer::{Matching, Options, Tokenizer};
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::char::canonical_combining_class;

use crate::peer::{Pair, ids, vocab};
use crate::texts::{amount, texts};

#[test]
fn texts_at_random_have_the_ids_of_the_crate() {
    let truths = [false, true];
    for (seed, strip_accents) in [None, Some(false), Some(true)].into_iter().enumerate() {
        for (lowercase, clean_text, handle_chinese_chars) in truths
            .iter()
            .flat_map(|a| truths.map(|b| (*a, b)))
            .flat_map(|(a, b)| truths.map(|c| (a, b, c)))
        {
            let options = Options {
                lowercase,
                strip_accents,
                handle_chinese_chars,
                clean_text,
                ..Options::default()
            };
            let pair = Pair::new(&vocab(), &options);
            for text in texts(seed as u64 + 10, amount() / 24) {
                pair.check(&text);
            }
        }
    }
    let pair = Pair::new(&vocab(), &Options::default());
    texts(0, amount()).for_each(|text| pair.check(&text));
}

#[test]
fn added_tokens_are_found_as_the_crate_finds_them() {
    let mut pair = Pair::new(&vocab(), &Options::default());
    let matching = |bits: u32| Matching {
        strip_left: bits & 1 != 0,
        strip_right: bits & 2 != 0,
        normalized: bits & 4 != 0,
        single_word: bits & 8 != 0,
    };
    let contents = ["<x>", "<xy>", "ing", "日本", "HÉ", "ab a", "##", "token"];
    for (bits, content) in (0..).zip(contents) {
        pair.add(content, matching(bits));
    }
    for (bits, content) in (8..).zip(["thing", "un", "é", "<x", "日", "and", "_a", "it's"]) {
        pair.add(content, matching(bits));
    }
    for text in [
        "<x>",
        "a <x> b",
        "<xy><x>",
        "a  ing b",
        "日 日本 語",
        "he hé HÉ Hé",
        "x ab  a ab a",
        "Token tokens",
        "ing ing",
        "INGing",
        "  ## ##",
        "",
        " ",
    ] {
        pair.check(text);
    }
    for text in texts(1, amount()) {
        pair.check(&text);
        pair.check(
            &text
                .replace("[MASK]", " ing ")
                .replace("[SEP]", "token <xy> "),
        );
    }
}

#[test]
fn truncated_texts_have_the_ids_of_the_crate() {
    let mut pair = Pair::new(&vocab(), &Options::default());
    for (i, text) in texts(2, amount() / 4).enumerate() {
        pair.check_within(2 + i % 40, &text);
    }
}

#[test]
fn a_text_within_a_limit_begins_as_the_whole_does() {
    let pair = Pair::new(&vocab(), &Options::default());
    // Longer than what is normalized at once, with and without spaces.
    for joint in ["", " ", "\u{301}", "日"] {
        let text = texts(4, 120).collect::<Vec<_>>().join(joint);
        assert!(text.len() > 4096);
        pair.check(&text);
        let whole = ids(&pair.ours, &text, usize::MAX);
        for limit in [
            0,
            1,
            2,
            3,
            64,
            whole.len() - 1,
            whole.len(),
            whole.len() + 1,
            usize::MAX,
        ] {
            let mut out = vec![7];
            let encoded = pair.ours.encode(&text, limit, &mut out);
            let kept = limit.clamp(2, whole.len());
            assert_eq!(encoded.tokens, kept);
            assert_eq!(encoded.truncated, kept < whole.len());
            assert_eq!(out[0], 7);
            assert_eq!(out[1..kept], whole[..kept - 1]);
            assert_eq!(out[kept..], whole[whole.len() - 1..]);
        }
    }
}

/// Marks that have a width are kept, in the canonical order: two of them with nothing,
/// an accent, a mark that starts anew, or a control between them.
#[test]
fn kept_marks_have_the_order_of_the_crate() {
    let kept: Vec<char> = ('\0'..=char::MAX)
        .filter(|c| canonical_combining_class(*c) != 0 && !c.is_mark_nonspacing())
        .collect();
    assert!(kept.len() > 10);
    let mut vocab = String::from("[UNK]\n[CLS]\n[SEP]\na\n##b\n");
    for c in &kept {
        vocab.push_str(&format!("{c}\n##{c}\n"));
    }
    let pair = Pair::new(&vocab, &Options::default());
    for first in &kept {
        for second in &kept {
            for between in [
                "", "\u{301}", "\u{93c}", "\u{1b6b}", "\u{93f}", "\u{941}", "\u{1}", "b", " ",
            ] {
                pair.check(&format!("a{first}{between}{second}b"));
            }
        }
    }
    // Every class several times, and none of them in order.
    for step in [1, 3, 7, kept.len() - 1] {
        let run: String = (0..80).map(|i| kept[i * step % kept.len()]).collect();
        pair.check(&format!("a{run}b"));
    }
}

/// What takes each of them past those before it would not end with this test's run.
#[test]
fn a_long_run_of_marks_takes_as_long_as_its_letters() {
    let tokenizer = Tokenizer::new(&vocab(), Options::default()).unwrap();
    let text = "\u{8d4}\u{1b44}".repeat(4 << 20);
    let names = ["[CLS]", "[UNK]", "[SEP]"];
    let expected = names.map(|name| tokenizer.id(name).unwrap());
    assert_eq!(ids(&tokenizer, &text, usize::MAX), expected);
}

/// Between two letters: so what a character is shows, and what becomes of it.
#[test]
fn every_character_has_the_ids_of_the_crate() {
    let characters = || ('\0'..='\u{3ffff}').chain('\u{e0000}'..='\u{e0fff}');
    let mut vocab = String::from("[UNK]\n[CLS]\n[SEP]\n");
    for c in characters().filter(|c| !c.is_whitespace()) {
        vocab.push_str(&format!("{c}\n##{c}\n"));
    }
    for strip_accents in [false, true] {
        let options = Options {
            lowercase: true,
            strip_accents: Some(strip_accents),
            ..Options::default()
        };
        let pair = Pair::new(&vocab, &options);
        let all: Vec<char> = characters().chain('\u{f0000}'..=char::MAX).collect();
        for some in all.chunks(64) {
            let text: String = some.iter().map(|c| format!("a{c}b ")).collect();
            pair.check(&text);
        }
    }
}
