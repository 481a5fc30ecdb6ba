//! What a reader should know of the tokenizer, as tables.

use framebatch::Code;
use framebatch::embed::tokenizer::{Encoded, Matching, Options, Tokenizer};

use crate::pair::{Pair, ids};

const VOCAB: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\nun\n##related\nσ\n##σ\n##ς\nna\n\
    ##ive\n!\n日\n本\n#\nThe\nnaïve\nα\n##ι\n##α";

/// The tokens of a text, without those around it.
fn tokens(options: Options, text: &str) -> String {
    let tokenizer = Tokenizer::new(VOCAB, options).unwrap();
    let all: Vec<&str> = VOCAB.lines().collect();
    let ids = ids(&tokenizer, text, 64);
    assert_eq!((ids[0], ids[ids.len() - 1]), (2, 3));
    let words = ids[1..ids.len() - 1].iter().map(|id| all[*id as usize]);
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn texts_are_split_into_pieces() {
    let cases = [
        ("", ""),
        (" \t\n", ""),
        ("The cats", "the cat ##s"),
        ("unrelated", "un ##related"),
        ("dog the", "[UNK] the"),
        // One piece that is missing makes the whole word unknown.
        ("catz", "[UNK]"),
        ("cat!cats", "cat ! cat ##s"),
        ("naïve NAÏVE nai\u{308}ve", "na ##ive na ##ive na ##ive"),
        // Each letter by itself: the last sigma is one like any other.
        ("ΣΣΣ σς", "σ ##σ ##σ σ ##ς"),
        ("日本", "日 本"),
        ("the日cat", "the 日 cat"),
        ("th\u{ad}e\u{200b} \u{0}c\u{fffd}at", "the cat"),
        ("the\u{a0}cat\u{3000}the", "the cat the"),
        ("##s", "# # [UNK]"),
        ("the [MASK] cat[SEP]", "the [MASK] cat [SEP]"),
        ("[mask]", "[UNK] [UNK] [UNK]"),
        // An iota that has no width: what it was taken for is what is left.
        ("ᾳ α\u{345}", "α α"),
    ];
    for (text, expected) in cases {
        assert_eq!(tokens(Options::default(), text), expected, "{text:?}");
    }
}

#[test]
fn options_change_what_they_say() {
    let usual = Options::default;
    let cased = || Options {
        lowercase: false,
        ..usual()
    };
    let kept = || Options {
        strip_accents: Some(false),
        ..usual()
    };
    let cases = [
        ("The the", cased(), "The the"),
        ("naïve", cased(), "naïve"),
        ("naïve NAÏVE", kept(), "naïve naïve"),
        (
            "Naïve na\u{308}ive",
            Options {
                strip_accents: Some(true),
                ..cased()
            },
            "[UNK] na ##ive",
        ),
        (
            "日本 日",
            Options {
                handle_chinese_chars: false,
                ..usual()
            },
            "[UNK] 日",
        ),
        (
            "c\u{1}at the\tcat",
            Options {
                clean_text: false,
                ..usual()
            },
            "[UNK] the cat",
        ),
        (
            "cats cat",
            Options {
                max_chars_per_word: 3,
                ..usual()
            },
            "[UNK] cat",
        ),
        (
            "cats thecat",
            Options {
                continuing_prefix: String::new(),
                ..usual()
            },
            "[UNK] the cat",
        ),
        (
            "dog [MASK]",
            Options {
                unk: "cat".into(),
                verbatim: Vec::new(),
                ..usual()
            },
            "cat cat cat cat",
        ),
    ];
    for (text, options, expected) in cases {
        Pair::new(VOCAB, &options).check(text);
        assert_eq!(tokens(options, text), expected, "{text:?}");
    }
}

#[test]
fn lines_of_a_vocabulary_are_its_ids() {
    // Lines as files have them: line ends of two kinds, a hole, a token that is there twice.
    let vocab = "[UNK]\r\n[CLS]\r\n[SEP]\r\n\r\ncat \r\nthe\r\ncat\r\n";
    let mut tokenizer = Tokenizer::new(vocab, Options::default()).unwrap();
    assert_eq!(tokenizer.vocabulary_len(), 7);
    assert_eq!(ids(&tokenizer, "the cat dog", 9), [1, 5, 6, 0, 2]);
    assert_eq!(tokenizer.id("the"), Some(5));
    assert_eq!(tokenizer.id("[MASK]"), None);
    tokenizer.add("[MASK]", 40, Matching::default()).unwrap();
    assert_eq!(tokenizer.id("[MASK]"), Some(40));
    assert_eq!(ids(&tokenizer, "the[MASK]", 9), [1, 5, 40, 2]);
    Pair::new(vocab, &Options::default()).check("the cat dog [MASK]");
}

#[test]
fn a_limit_counts_the_special_tokens() {
    let tokenizer = Tokenizer::new(VOCAB, Options::default()).unwrap();
    let cases: [(usize, &[u32], bool); 5] = [
        (5, &[2, 5, 6, 7, 3], false),
        (4, &[2, 5, 6, 3], true),
        (3, &[2, 5, 3], true),
        (2, &[2, 3], true),
        (0, &[2, 3], true),
    ];
    for (limit, expected, truncated) in cases {
        let mut out = Vec::new();
        let encoded = tokenizer.encode("the cats", limit, &mut out);
        assert_eq!(out, expected);
        let tokens = expected.len();
        assert_eq!(encoded, Encoded { tokens, truncated });
    }
}

#[test]
fn what_is_missing_is_named() {
    for missing in ["[UNK]", "[CLS]", "[SEP]"] {
        let vocab = VOCAB.replace(missing, "other");
        let error = Tokenizer::new(&vocab, Options::default()).err().unwrap();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(missing), "{error}");
    }
    let mut tokenizer = Tokenizer::new(VOCAB, Options::default()).unwrap();
    let normalized = Matching {
        normalized: true,
        ..Matching::default()
    };
    let cases = [
        ("", Matching::default(), "is empty"),
        ("\u{301}", normalized, "is empty"),
    ];
    for (content, matching, expected) in cases {
        let error = tokenizer.add(content, 9, matching).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// As in Hugging Face's tokenizers: contents that normalization makes one are one token, the first.
#[test]
fn tokens_that_are_equal_once_normalized_are_the_first_of_them() {
    let normalized = Matching {
        normalized: true,
        ..Matching::default()
    };
    for contents in [
        ["<User>", "<user>"],
        ["<user>", "<User>"],
        ["<user>", "<user>"],
    ] {
        let mut tokenizer = Tokenizer::new(VOCAB, Options::default()).unwrap();
        for (content, id) in contents.iter().zip([900, 901]) {
            tokenizer.add(content, id, normalized).unwrap();
        }
        let mut ids = Vec::new();
        tokenizer.encode("<USER> <user>", 16, &mut ids);
        assert_eq!(ids[1..ids.len() - 1], [900, 900], "{contents:?}");
    }
}
