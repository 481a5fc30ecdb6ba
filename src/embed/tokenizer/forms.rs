//! The normalization forms of Unicode: NFC, NFD, NFKC and NFKD.
//!
//! The forms are those of `unicode-normalization-alignments`, which Hugging Face's tokenizers use; each
//! character comes with the change by which that crate follows offsets. The table is `forms.bin`,
//! and `tests/tokenizer/peer/tables.rs` writes it.

use std::ops::Range;
use std::sync::LazyLock;

use super::hangul;
use super::kinds::Kinds;
use super::rewrite::Rewrite;
use super::table::{Table, moved};
use super::text::Text;

static FORMS: LazyLock<Forms> = LazyLock::new(Forms::read);

/// A normalization form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Whether what only looks alike becomes equal: the K of the names.
    pub(super) is_compatible: bool,
    /// Whether letters and marks become one character: the C of the names.
    pub(super) composes: bool,
}

/// What is known of a character: its combining class, and what may happen to it.
#[derive(Clone, Copy, Default)]
struct Facts {
    class: u8,
    bits: u8,
}

const DECOMPOSES: u8 = 1;
const DECOMPOSES_COMPATIBLY: u8 = 2;
/// The character may become one with that before it.
const COMPOSES: u8 = 4;
/// The character is a mark in the sense of Unicode's general category.
const MARK: u8 = 8;

/// A character, and where that which it is made of lies in a list.
type Decomposed = (char, Range<usize>);

struct Forms {
    kinds: Kinds,
    facts: Vec<Facts>,
    /// Characters that decompose, in order.
    canonical: Vec<Decomposed>,
    compatible: Vec<Decomposed>,
    /// What they are made of.
    parts: Vec<char>,
    /// Pairs that become one character, in order.
    pairs: Vec<(char, char, char)>,
}

impl Forms {
    fn read() -> Forms {
        let mut table = Table::new(include_bytes!("forms.bin"));
        let kinds = Kinds::read(&mut table);
        let facts = (0..table.number()).map(|_| Facts {
            class: table.byte(),
            bits: table.byte(),
        });
        let facts = facts.collect();
        let mut forms = Forms {
            kinds,
            facts,
            canonical: Vec::new(),
            compatible: Vec::new(),
            parts: Vec::new(),
            pairs: Vec::new(),
        };
        forms.read_canonical(&mut table);
        forms.read_compatible(&mut table);
        forms
    }

    /// Reads for each character its distance from the one before and, in the lowest three bits, how
    /// many characters it is made of besides the first, and whether the two of it become it; then
    /// these characters, each as the distance from the one before in its place. The first one may
    /// decompose in its turn; it was read before then.
    fn read_canonical(&mut self, table: &mut Table) {
        let (mut from, mut first, mut other) = (0, 0, 0);
        for _ in 0..table.number() {
            let head = table.number();
            from = moved(from, head >> 3);
            first = table.moved(first);
            let (whole, one) = (character(from), character(first));
            let start = self.parts.len();
            match self
                .canonical
                .binary_search_by_key(&one, |(known, _)| *known)
            {
                Ok(at) => self.parts.extend_from_within(self.canonical[at].1.clone()),
                Err(_) => self.parts.push(one),
            }
            for _ in 0..head & 3 {
                other = table.moved(other);
                self.parts.push(character(other));
            }
            if head & 4 != 0 {
                let pair = (one, character(other), whole);
                let place = self.pairs.partition_point(|known| *known < pair);
                self.pairs.insert(place, pair);
            }
            let place = self.canonical.partition_point(|(known, _)| *known < whole);
            self.canonical
                .insert(place, (whole, start..self.parts.len()));
        }
    }

    /// Reads runs of characters that become one after another: the distance from the last run's
    /// end, how many they are, and of how many characters each is made: more than one only of a
    /// run of one.
    fn read_compatible(&mut self, table: &mut Table) {
        let (mut from, mut to) = (0, 0);
        for _ in 0..table.number() {
            from += table.number();
            let (run, length) = (table.number(), table.number());
            let start = self.parts.len();
            for _ in 0..length {
                to = table.moved(to);
                self.parts.push(character(to));
            }
            self.compatible
                .push((character(from), start..self.parts.len()));
            for _ in 1..run {
                (from, to) = (from + 1, to + 1);
                let start = self.parts.len();
                self.parts.push(character(to));
                self.compatible.push((character(from), start..start + 1));
            }
        }
    }

    fn facts(&self, c: char) -> Facts {
        let kind = usize::from(self.kinds.of(c));
        self.facts.get(kind).copied().unwrap_or_default()
    }

    fn decomposed(&self, c: char, facts: Facts, form: Form) -> Option<&[char]> {
        if form.is_compatible && facts.bits & DECOMPOSES_COMPATIBLY != 0 {
            return parts(&self.compatible, &self.parts, c);
        }
        let decomposes = facts.bits & DECOMPOSES != 0;
        decomposes.then(|| parts(&self.canonical, &self.parts, c))?
    }

    fn composed(&self, one: char, other: char) -> Option<char> {
        let pair = self
            .pairs
            .binary_search_by(|(a, b, _)| (*a, *b).cmp(&(one, other)));
        pair.ok().map(|at| self.pairs[at].2)
    }
}

/// What a character of a list decomposes to.
fn parts<'a>(list: &[Decomposed], all: &'a [char], c: char) -> Option<&'a [char]> {
    let at = list.binary_search_by_key(&c, |(from, _)| *from).ok()?;
    Some(&all[list[at].1.clone()])
}

fn character(code: u32) -> char {
    char::from_u32(code).unwrap_or_default()
}

/// Whether a character is a mark: an accent, or the sign of a vowel.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii() && FORMS.facts(c).bits & MARK != 0
}

/// Makes `to` of `from` in a form. Returns whether there was anything to do.
pub(super) fn normalize(form: Form, from: &Text, to: &mut Text) -> bool {
    let forms = &*FORMS;
    let mut touched = DECOMPOSES | COMPOSES;
    if form.is_compatible {
        touched |= DECOMPOSES_COMPATIBLY;
    }
    let is_plain = |c: char| {
        let facts = forms.facts(c);
        c.is_ascii()
            || (facts.class == 0 && facts.bits & touched == 0 && hangul::number(c).is_none())
    };
    if from.text.chars().all(is_plain) {
        return false;
    }
    let mut writer = Writer {
        forms,
        form,
        to: Rewrite::new(from, to),
        unordered: Vec::new(),
        composed: Composed::default(),
    };
    for c in from.text.chars() {
        writer.take(c);
    }
    writer.finish();
    true
}

/// A character, its combining class, and its change: see [`Rewrite::push`].
type Changed = (u8, char, isize);

/// A text that is being normalized.
struct Writer<'a> {
    forms: &'static Forms,
    form: Form,
    to: Rewrite<'a>,
    /// Characters whose canonical order is not settled yet.
    unordered: Vec<Changed>,
    composed: Composed,
}

/// What may still become one with what follows.
#[derive(Default)]
struct Composed {
    /// A starter, and its change.
    starter: Option<(char, isize)>,
    /// The class of the last of the marks.
    last: Option<u8>,
    /// Marks behind the starter that did not become one with it.
    marks: Vec<(char, isize)>,
}

impl Writer<'_> {
    fn take(&mut self, c: char) {
        let forms = self.forms;
        let facts = forms.facts(c);
        if let Some(letters) = hangul::letters(c) {
            for (at, letter) in letters.into_iter().flatten().enumerate() {
                self.place(0, letter, isize::from(at > 0));
            }
        } else if let Some(parts) = forms.decomposed(c, facts, self.form) {
            for (at, part) in parts.iter().enumerate() {
                let class = forms.facts(*part).class;
                self.place(class, *part, isize::from(at > 0));
            }
        } else {
            self.place(facts.class, c, 0);
        }
    }

    fn place(&mut self, class: u8, c: char, change: isize) {
        if class == 0 {
            self.order();
            self.write(0, c, change);
        } else {
            self.unordered.push((class, c, change));
        }
    }

    /// Writes the waiting characters in canonical order.
    fn order(&mut self) {
        if self.unordered.is_empty() {
            return;
        }
        let mut unordered = std::mem::take(&mut self.unordered);
        // Class after class, of which there are few, and within a class in their order.
        let mut done = 0;
        while let Some(next) = (unordered.iter().map(|(class, ..)| *class))
            .filter(|class| *class > done)
            .min()
        {
            for (class, c, change) in unordered.iter().filter(|(class, ..)| *class == next) {
                self.write(*class, *c, *change);
            }
            done = next;
        }
        unordered.clear();
        self.unordered = unordered;
    }

    fn write(&mut self, class: u8, c: char, change: isize) {
        match self.form.composes {
            true => self.compose(class, c, change),
            false => self.to.push(c, change),
        }
    }

    fn compose(&mut self, class: u8, c: char, change: isize) {
        let Some((starter, its_change)) = self.composed.starter else {
            match class {
                0 => self.composed.starter = Some((c, change)),
                _ => self.to.push(c, change),
            }
            return;
        };
        let is_blocked = self.composed.last.is_some_and(|last| last >= class);
        let whole = if is_blocked {
            None
        } else {
            self.whole(starter, c)
        };
        if let Some(whole) = whole {
            self.composed.starter = Some((whole, its_change + change - 1));
        } else if class == 0 {
            self.flush();
            self.composed.starter = Some((c, change));
        } else {
            self.composed.marks.push((c, change));
            self.composed.last = Some(class);
        }
    }

    fn whole(&self, one: char, other: char) -> Option<char> {
        let composes = self.forms.facts(other).bits & COMPOSES != 0;
        composes.then(|| syllable(one, other).or_else(|| self.forms.composed(one, other)))?
    }

    fn flush(&mut self) {
        if let Some((c, change)) = self.composed.starter.take() {
            self.to.push(c, change);
        }
        self.composed.last = None;
        for (c, change) in self.composed.marks.drain(..) {
            self.to.push(c, change);
        }
    }

    fn finish(mut self) {
        self.order();
        self.flush();
    }
}

/// The syllable of Hangul that two letters make, or a syllable and a letter.
fn syllable(one: char, other: char) -> Option<char> {
    let within =
        |c: char, first: u32, count: u32| u32::from(c).checked_sub(first).filter(|at| *at < count);
    if let (Some(leading), Some(vowel)) = (
        within(one, hangul::LEADING, 19),
        within(other, hangul::VOWELS, 21),
    ) {
        return char::from_u32(hangul::SYLLABLES + leading * 588 + vowel * 28);
    }
    let trailing = within(other, hangul::TRAILING + 1, 27)?;
    let open = hangul::number(one).filter(|at| at % 28 == 0)?;
    char::from_u32(hangul::SYLLABLES + open + trailing + 1)
}
