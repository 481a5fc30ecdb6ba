//! The facts of a character that a tokenizer needs: its category, and the letters that remain
//! without accents.
//!
//! The facts are those of the old versions of Unicode that models were trained
//! with: categories as in `unicode_categories`, decompositions as in
//! `unicode-normalization-alignments`, which Hugging Face's tokenizers use. They
//! lie in `unicode.bin`; `tests/tokenizer/peer/tables.rs` writes it, and compares it
//! with both. `LICENSE-UNICODE` is Unicode's for its data. White space and case are
//! the standard library's, as there.

use std::sync::LazyLock;

use super::table::Table;

static CHARACTERS: LazyLock<Characters> = LazyLock::new(Characters::read);

/// The facts of all characters.
pub(super) fn characters() -> &'static Characters {
    &CHARACTERS
}

/// Characters below this one lie in one array; the others are a few long runs.
const DENSE: u32 = 0x2fa20;

/// What Hugging Face's tokenizers call Chinese: extension E lacks its first characters.
const IDEOGRAPHS: [(u32, u32); 8] = [
    (0x3400, 0x4dbf),
    (0x4e00, 0x9fff),
    (0xf900, 0xfaff),
    (0x20000, 0x2a6df),
    (0x2a700, 0x2b73f),
    (0x2b740, 0x2b81f),
    (0x2b920, 0x2ceaf),
    (0x2f800, 0x2fa1f),
];

/// The facts of a character.
#[derive(Clone, Copy)]
pub(super) struct Facts(u8);

impl Facts {
    const OTHER: u8 = 1;
    const PUNCTUATION: u8 = 2;
    const STARTING_MARK: u8 = 3;
    const MARK: u8 = 4;
    /// Facts from this number on: the character is no mark, and is ordered by a combining class.
    const ORDERED: u8 = 5;
    const KIND: u8 = 31;
    const DECOMPOSES: u8 = 32;
    const IDEOGRAPH: u8 = 64;
    const SPACE: u8 = 128;

    fn kind(self) -> u8 {
        self.0 & Facts::KIND
    }

    /// Whether this is a control, a format character or one of private use.
    pub(super) fn is_other(self) -> bool {
        self.kind() == Facts::OTHER
    }

    pub(super) fn is_punctuation(self) -> bool {
        self.kind() == Facts::PUNCTUATION
    }

    /// Whether this is a mark without a width, which is what accents are.
    pub(super) fn is_mark(self) -> bool {
        matches!(self.kind(), Facts::STARTING_MARK | Facts::MARK)
    }

    /// Whether nothing moves over this character when marks are put in order.
    pub(super) fn is_starter(self) -> bool {
        self.kind() < Facts::MARK
    }

    pub(super) fn decomposes(self) -> bool {
        self.0 & Facts::DECOMPOSES != 0
    }

    pub(super) fn is_ideograph(self) -> bool {
        self.0 & Facts::IDEOGRAPH != 0
    }

    pub(super) fn is_space(self) -> bool {
        self.0 & Facts::SPACE != 0
    }
}

/// The table, laid out for looking up.
pub(super) struct Characters {
    dense: Vec<Facts>,
    /// Where each run beyond `DENSE` ends, and the facts of its characters.
    runs: Vec<(u32, Facts)>,
    /// The combining classes of the kinds from `ORDERED` on.
    classes: Vec<u8>,
    /// Characters that decompose, in order, and where their letters begin in `left`.
    decomposed: Vec<(u32, usize)>,
    left: Vec<char>,
    /// Where each run of marks without a width ends that have one combining class, and the class.
    marks: Vec<(u32, u8)>,
}

impl Characters {
    fn read() -> Characters {
        let mut table = Table::new(include_bytes!("unicode.bin"));
        let classes = (0..table.number()).map(|_| table.byte()).collect();
        let mut characters = Characters {
            dense: vec![Facts(0); DENSE as usize],
            runs: Vec::new(),
            classes,
            decomposed: Vec::new(),
            left: Vec::new(),
            marks: Vec::new(),
        };
        characters.read_kinds(&mut table);
        characters.read_decomposed(&mut table);
        characters.read_marks(&mut table);
        for (first, last) in IDEOGRAPHS {
            characters.mark(first, last + 1, Facts::IDEOGRAPH);
        }
        for c in (0..DENSE).filter(|c| char::from_u32(*c).is_some_and(char::is_whitespace)) {
            characters.mark(c, c + 1, Facts::SPACE);
        }
        for c in (0..128).filter(u8::is_ascii_punctuation) {
            // BERT counts signs of ASCII as punctuation too, such as `$` and `+`.
            characters.mark(c.into(), u32::from(c) + 1, Facts::PUNCTUATION);
        }
        characters
    }

    /// Runs of characters of one kind, to the last of all.
    fn read_kinds(&mut self, table: &mut Table) {
        let mut at = 0;
        while at <= u32::from(char::MAX) {
            let end = at + table.number();
            let kind = table.byte();
            self.mark(at, end.min(DENSE), kind);
            if end > DENSE {
                self.runs.push((end, Facts(kind)));
            }
            at = end;
        }
    }

    /// Reads for each character its distance from the one before and, in the lowest two bits, how
    /// many letters are left of it; then the distances of these letters, whose lowest bit is the
    /// sign.
    fn read_decomposed(&mut self, table: &mut Table) {
        let (mut from, mut to) = (0, 0);
        for _ in 0..table.number() {
            let head = table.number();
            from += head >> 2;
            self.mark(from, from + 1, Facts::DECOMPOSES);
            self.decomposed.push((from, self.left.len()));
            for _ in 0..head & 3 {
                to = table.moved(to);
                self.left.extend(char::from_u32(to));
            }
        }
        self.decomposed.push((u32::MAX, self.left.len()));
    }

    /// Reads runs of marks of one class, each up to the first mark of another class.
    fn read_marks(&mut self, table: &mut Table) {
        let mut end = 0;
        for _ in 0..table.number() {
            end += table.number();
            self.marks.push((end, table.byte()));
        }
    }

    fn mark(&mut self, from: u32, to: u32, bits: u8) {
        for c in from..to {
            self.dense[c as usize].0 |= bits;
        }
    }

    pub(super) fn facts(&self, c: char) -> Facts {
        let c = u32::from(c);
        match self.dense.get(c as usize) {
            Some(facts) => *facts,
            None => self.runs[self.runs.partition_point(|(end, _)| *end <= c)].1,
        }
    }

    /// The combining class of a character that is neither a starter nor a mark.
    pub(super) fn combining_class(&self, facts: Facts) -> u8 {
        self.classes[usize::from(facts.kind() - Facts::ORDERED)]
    }

    /// The combining class of a mark that is no starter, or of the first of those that it is made
    /// of.
    pub(super) fn class_of_mark(&self, c: char) -> u8 {
        let run = self.marks.partition_point(|(end, _)| *end <= u32::from(c));
        self.marks.get(run).map_or(0, |(_, class)| *class)
    }

    /// The letters of a character that decomposes, without its marks.
    pub(super) fn without_marks(&self, c: char) -> &[char] {
        let at = self
            .decomposed
            .partition_point(|(from, _)| *from < u32::from(c));
        &self.left[self.decomposed[at].1..self.decomposed[at + 1].1]
    }
}
