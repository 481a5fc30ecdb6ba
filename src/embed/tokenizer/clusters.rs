//! Grapheme clusters: what a reader takes for one character (Unicode Standard Annex 29).
//!
//! The clusters are those of `unicode-segmentation`, which Hugging Face's tokenizers use. The table is
//! `clusters.bin`; `tests/tokenizer/peer/tables.rs` writes it.

use std::sync::LazyLock;

use super::kinds::Kinds;
use super::table::Table;

static KINDS: LazyLock<Kinds> =
    LazyLock::new(|| Kinds::read(&mut Table::new(include_bytes!("clusters.bin"))));

/// Kinds of characters in the table.
const CARRIAGE_RETURN: u8 = 1;
const LINE_FEED: u8 = 2;
const CONTROL: u8 = 3;
const EXTENDING: u8 = 4;
/// Extends, and does not part the consonants of a conjunct.
const EXTENDING_CONJUNCT: u8 = 5;
/// Extends, and joins the consonants of a conjunct.
const LINKER: u8 = 6;
const JOINER: u8 = 7;
const SPACING_MARK: u8 = 8;
const PREPENDED: u8 = 9;
const LEADING: u8 = 10;
const VOWEL: u8 = 11;
const TRAILING: u8 = 12;
/// A Hangul syllable; with a trailing consonant unless its number is a multiple of 28.
const SYLLABLE: u8 = 13;
const OPEN_SYLLABLE: u8 = 14;
const FLAG: u8 = 15;
const PICTOGRAPH: u8 = 16;
const CONSONANT: u8 = 17;

fn kind(c: char) -> u8 {
    match KINDS.of(c) {
        SYLLABLE if (u32::from(c) - 0xac00).is_multiple_of(28) => OPEN_SYLLABLE,
        kind => kind,
    }
}

/// How many bytes the first cluster of a text has: 0 of an empty one.
pub(super) fn first_cluster(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, first)) = chars.next() else {
        return 0;
    };
    let mut cluster = Cluster::default();
    cluster.push(kind(first));
    for (at, c) in chars {
        let kind = kind(c);
        if !cluster.goes_on(kind) {
            return at;
        }
        cluster.push(kind);
    }
    text.len()
}

/// What decides whether the next character belongs to a cluster.
#[derive(Default)]
struct Cluster {
    last: u8,
    flags: usize,
    emoji: Emoji,
    conjunct: Conjunct,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Emoji {
    #[default]
    None,
    Pictograph,
    Joined,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Conjunct {
    #[default]
    None,
    Consonant,
    Linked,
}

impl Cluster {
    fn push(&mut self, kind: u8) {
        self.flags = match kind {
            FLAG => self.flags + 1,
            _ => 0,
        };
        self.emoji = match (kind, self.emoji) {
            (PICTOGRAPH, _) => Emoji::Pictograph,
            (EXTENDING | EXTENDING_CONJUNCT | LINKER, Emoji::Pictograph) => Emoji::Pictograph,
            (JOINER, Emoji::Pictograph) => Emoji::Joined,
            _ => Emoji::None,
        };
        self.conjunct = match (kind, self.conjunct) {
            (CONSONANT, _) => Conjunct::Consonant,
            (LINKER, Conjunct::Consonant | Conjunct::Linked) => Conjunct::Linked,
            (EXTENDING_CONJUNCT | JOINER, conjunct) => conjunct,
            _ => Conjunct::None,
        };
        self.last = kind;
    }

    fn goes_on(&self, next: u8) -> bool {
        match (self.last, next) {
            (CARRIAGE_RETURN, LINE_FEED) => true,
            (CARRIAGE_RETURN..=CONTROL, _) | (_, CARRIAGE_RETURN..=CONTROL) => false,
            (LEADING, LEADING | VOWEL | SYLLABLE | OPEN_SYLLABLE) => true,
            (OPEN_SYLLABLE | VOWEL, VOWEL | TRAILING) => true,
            (SYLLABLE | TRAILING, TRAILING) => true,
            (_, EXTENDING..=SPACING_MARK) => true,
            (PREPENDED, _) => true,
            (_, CONSONANT) => self.conjunct == Conjunct::Linked,
            (JOINER, PICTOGRAPH) => self.emoji == Emoji::Joined,
            (FLAG, FLAG) => self.flags % 2 == 1,
            _ => false,
        }
    }
}
