//! Texts at random against Hugging Face's crate, and every character once.
//!
//! `FUZZED_TEXTS` says how many texts, 2,000 of each kind unless set.

use framebatch::embed::tokenizer::{Matching, Options, Tokenizer};
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::char::canonical_combining_class;

use crate::peer::{Pair, ids, vocab};

pub(crate) fn amount() -> usize {
    let given = std::env::var("FUZZED_TEXTS");
    given.map_or(2_000, |amount| amount.parse().unwrap())
}

/// Words of scripts and of what is hard in them: final sigmas, marks in any order,
/// ideographs of every extension, emoji, controls, private use, what is unassigned.
const ALPHABETS: [&str; 12] = [
    "aAbBeEiI thing untokenizerly ",
    "ΑΒΣΟΔΥσςάΐΰ \u{345}\u{301}",
    "éÈüÅåñçßİıǅſﬁK\u{212b}Ñẞ ÀÉ",
    "a\u{301}\u{327}\u{302e}\u{1d165}\u{1d16e}\u{5b0}\u{5bc}\u{93c}\u{334}\u{b55}é\u{2dff}",
    "日本語のテキスト々ヴパ゛ 한국어각\u{1100}\u{1161}\u{11a8}",
    "㐀䶿一鿿豈舘\u{fa6c}𠀀𪛟𪜀𫜿𫝀𫠟𫠠𫤠𬺯𬺰𮯠\u{2f800}\u{2fa1d}\u{30000}",
    "👍🏽👨\u{200d}👩\u{200d}👧❤\u{fe0f}🇩🇪😀☃\u{e0067}\u{e007f}",
    "\0\u{1}\t\n\r\u{b}\u{c}\u{7f}\u{85}\u{a0}\u{ad}\u{200b}\u{2028}\u{3000}\u{feff}\u{fffd} a",
    "\u{e000}\u{f8ff}\u{f0000}\u{10fffd}\u{378}\u{2fe0}\u{ffff}\u{10ffff}\u{1e922}x",
    "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~«»¿—’§¶·\u{2e52}\u{10fff}",
    "приветМИРёЁйї नमस्तेকোৌ తెలుగు ಕೀ \u{1d15e}\u{1d1bf} ᾳΏϔ",
    "[CLS][SEP][MASK][UNK][PAD][mask]##ing [unused0] <x>",
];

/// Texts of a few hundred characters at most.
pub(crate) fn texts(seed: u64, amount: usize) -> impl Iterator<Item = String> {
    let mut random = Random(seed);
    let alphabets = ALPHABETS.map(|letters| letters.chars().collect::<Vec<char>>());
    (0..amount).map(move |_| {
        let mut text = String::new();
        for _ in 0..random.next() % 12 {
            let letters = &alphabets[random.next() as usize % alphabets.len()];
            let length = if random.next().is_multiple_of(64) {
                130
            } else {
                12
            };
            for _ in 0..random.next() % length {
                let any = random.next();
                let among = letters[any as usize % letters.len()];
                // Now and then any character at all, low ones more often.
                let rare = any >> 26 == 0;
                let all = random.next() >> (11 + any % 8);
                text.push(char::from_u32(all).filter(|_| rare).unwrap_or(among));
            }
            if random.next().is_multiple_of(4) {
                text.push_str(["[MASK]", " ", "[SEP]", "<x>"][random.next() as usize % 4]);
            }
        }
        text
    })
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    }
}

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
    };
    let contents = ["<x>", "<xy>", "ing", "日本", "HÉ", "ab a", "##", "token"];
    for (bits, content) in (0..).zip(contents) {
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
