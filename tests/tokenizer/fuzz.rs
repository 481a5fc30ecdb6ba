//! Texts at random against Hugging Face's crate, and every character once.

use framebatch::embed::tokenizer::{Matching, Options, Tokenizer};

use crate::pair::{Pair, ids, vocab};
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
            let mut pair = Pair::new(&vocab(), &options);
            for text in texts(seed as u64 + 10, amount() / 24) {
                pair.check(&text);
            }
        }
    }
    let mut pair = Pair::new(&vocab(), &Options::default());
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
    let mut pair = Pair::new(&vocab(), &Options::default());
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

/// Marks that have a combining class and a width, in the version of Unicode that the crate has.
pub(crate) const MARKS_WITH_A_WIDTH: &str = "\
    \u{8d4}\u{8d5}\u{8d6}\u{8d7}\u{8d8}\u{8d9}\u{8da}\u{8db}\u{8dc}\u{8dd}\u{8de}\u{8df}\
    \u{8e0}\u{8e1}\u{1b44}\u{1baa}\u{1bf2}\u{1bf3}\u{1dfb}\u{302e}\u{302f}\u{a953}\u{a9c0}\
    \u{111c0}\u{11235}\u{1134d}\u{11442}\u{11446}\u{116b6}\u{11c3f}\u{1d165}\u{1d166}\u{1d16d}\
    \u{1d16e}\u{1d16f}\u{1d170}\u{1d171}\u{1d172}\u{1e000}\u{1e001}\u{1e002}\u{1e003}\u{1e004}\
    \u{1e005}\u{1e006}\u{1e008}\u{1e009}\u{1e00a}\u{1e00b}\u{1e00c}\u{1e00d}\u{1e00e}\u{1e00f}\
    \u{1e010}\u{1e011}\u{1e012}\u{1e013}\u{1e014}\u{1e015}\u{1e016}\u{1e017}\u{1e018}\u{1e01b}\
    \u{1e01c}\u{1e01d}\u{1e01e}\u{1e01f}\u{1e020}\u{1e021}\u{1e023}\u{1e024}\u{1e026}\u{1e027}\
    \u{1e028}\u{1e029}\u{1e02a}\u{1e944}\u{1e945}\u{1e946}\u{1e947}\u{1e948}\u{1e949}\u{1e94a}";

/// Marks that have a width are kept, in the canonical order: two of them with nothing,
/// an accent, a mark that starts anew, or a control between them.
#[test]
fn kept_marks_have_the_order_of_the_crate() {
    let kept: Vec<char> = MARKS_WITH_A_WIDTH.chars().collect();
    let mut vocab = String::from("[UNK]\n[CLS]\n[SEP]\na\n##b\n");
    for c in &kept {
        vocab.push_str(&format!("{c}\n##{c}\n"));
    }
    let mut pair = Pair::new(&vocab, &Options::default());
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
        let mut pair = Pair::new(&vocab, &options);
        let all: Vec<char> = characters().chain('\u{f0000}'..=char::MAX).collect();
        for some in all.chunks(64) {
            let text: String = some.iter().map(|c| format!("a{c}b ")).collect();
            pair.check(&text);
        }
    }
}
