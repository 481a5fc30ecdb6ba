//! Writes the tables of characters, and holds them to the crates that they are from.
//!
//! `UPDATE_TABLES=1 cargo test -p framebatch-tokenizer-peer tables` writes it anew.

use regex_syntax::hir::{Class, ClassUnicode, HirKind};
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;
use unicode_normalization_alignments::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
    is_combining_mark,
};
use unicode_segmentation::UnicodeSegmentation;

use crate::fuzz::MARKS_WITH_A_WIDTH;

const OTHER: u8 = 1;
const PUNCTUATION: u8 = 2;
const STARTING_MARK: u8 = 3;
const MARK: u8 = 4;
const ORDERED: u8 = 5;

#[test]
fn the_tables_are_what_the_crates_say() {
    let tables = [
        ("unicode", table()),
        ("classes", classes()),
        ("clusters", clusters()),
        ("forms", forms()),
    ];
    for (name, table) in tables {
        let path = format!("src/embed/tokenizer/{name}.bin");
        let path = crate::root().join(path);
        if std::env::var_os("UPDATE_TABLES").is_some() {
            std::fs::write(&path, &table).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        let name = path.display();
        assert!(kept == table, "{name} is not what the crates say");
    }
}

#[test]
fn marks_with_a_width_are_those_of_the_crates() {
    let marks: String = characters()
        .filter(|c| canonical_combining_class(*c) != 0 && !c.is_mark_nonspacing())
        .collect();
    assert_eq!(
        marks.escape_unicode().to_string(),
        MARKS_WITH_A_WIDTH.escape_unicode().to_string()
    );
}

fn table() -> Vec<u8> {
    let mut classes: Vec<u8> = characters()
        .filter(|c| !c.is_mark_nonspacing())
        .map(canonical_combining_class)
        .filter(|class| *class != 0)
        .collect();
    classes.sort_unstable();
    classes.dedup();
    assert!(classes.len() < usize::from(31 - ORDERED));

    let mut table = Vec::new();
    write(&mut table, classes.len());
    table.extend(&classes);
    write_kinds(&mut table, |c| kind(c, &classes));
    write_decomposed(&mut table);
    write_marks(&mut table);
    table
}

fn write_kinds(table: &mut Vec<u8>, kind: impl Fn(char) -> u8) {
    // A surrogate is no character; whatever it joins is the shorter.
    let kind_at = |c| char::from_u32(c).map(&kind);
    let (mut from, mut last) = (0, kind('\0'));
    for c in 1..=u32::from(char::MAX) {
        let kind = kind_at(c).unwrap_or(last);
        if kind != last {
            write(table, (c - from) as usize);
            table.push(last);
            (from, last) = (c, kind);
        }
    }
    write(table, (u32::from(char::MAX) + 1 - from) as usize);
    table.push(last);
}

fn kind(c: char, classes: &[u8]) -> u8 {
    let class = canonical_combining_class(c);
    // Three marks of Tibetan have no class, and become marks that have one.
    let first = c.to_string().nfd().map(|(part, _)| part).next();
    let starts = first.is_some_and(|first| canonical_combining_class(first) == 0);
    let kinds = [
        (c.is_other(), OTHER),
        (c.is_punctuation(), PUNCTUATION),
        (c.is_mark_nonspacing() && starts, STARTING_MARK),
        (c.is_mark_nonspacing() && !starts, MARK),
    ];
    let mut kinds = kinds.iter().filter(|(holds, _)| *holds);
    match (kinds.next(), class) {
        (Some((_, kind)), _) => {
            assert!(
                kinds.next().is_none() && (class == 0 || *kind == MARK),
                "{c:?}"
            );
            *kind
        }
        (None, 0) => 0,
        (None, class) => ORDERED + classes.binary_search(&class).unwrap() as u8,
    }
}

fn write_decomposed(table: &mut Vec<u8>) {
    let is_hangul = |c: &char| ('\u{ac00}'..='\u{d7a3}').contains(c);
    let decomposed: Vec<(char, Vec<char>)> = characters()
        .filter(|c| !is_hangul(c) && !c.is_mark_nonspacing())
        .map(|c| (c, c.to_string().nfd().map(|(d, _)| d).collect::<Vec<_>>()))
        .filter(|(c, all)| *all != [*c])
        .map(|(c, all)| {
            let left: Vec<char> = all
                .iter()
                .copied()
                .filter(|d| !d.is_mark_nonspacing())
                .collect();
            // No mark that is taken off kept other marks in their order.
            assert_eq!(canonical_combining_class(left[0]), 0, "{c:?}");
            assert!(left.len() < 4, "{c:?}");
            (c, left)
        })
        .collect();
    write(table, decomposed.len());
    let (mut last_from, mut last_to) = (0, '\0');
    for (from, left) in decomposed {
        let from = u32::from(from) as usize;
        write(table, (from - last_from) << 2 | left.len());
        last_from = from;
        for to in left {
            write(table, step(last_to, to));
            last_to = to;
        }
    }
}

/// The combining classes of marks that are taken off, or of the first mark of those that one is made
/// of: runs up to the first mark of another class.
fn write_marks(table: &mut Vec<u8>) {
    let marks = characters().filter(|c| c.is_mark_nonspacing());
    let classes = marks
        .map(|c| {
            let first = c.to_string().nfd().next().unwrap().0;
            (u32::from(c), canonical_combining_class(first))
        })
        .filter(|(_, class)| *class != 0);
    let mut runs: Vec<(u32, u8)> = Vec::new();
    for (c, class) in classes {
        match runs.last_mut() {
            Some((end, last)) if *last == class => *end = c + 1,
            _ => runs.push((c + 1, class)),
        }
    }
    write(table, runs.len());
    let mut last = 0;
    for (end, class) in runs {
        write(table, (end - last) as usize);
        table.push(class);
        last = end;
    }
}

/// Letters, numbers, characters of words, white space: a bit each.
fn classes() -> Vec<u8> {
    let sets = [r"\p{L}", r"\p{N}", r"\w", r"\s"].map(|class| {
        let parsed = regex_syntax::parse(class).unwrap();
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
            panic!("{class} is no class of characters");
        };
        class.clone()
    });
    let mut table = Vec::new();
    write_kinds(&mut table, |c| {
        let is_in = |set: &ClassUnicode| {
            let ranges = set.ranges();
            let at = ranges.partition_point(|range| range.end() < c);
            ranges.get(at).is_some_and(|range| range.start() <= c)
        };
        (0..)
            .zip(&sets)
            .map(|(bit, set)| u8::from(is_in(set)) << bit)
            .sum()
    });
    table
}

/// What grapheme clusters are made of, as it shows beside characters that are known.
fn clusters() -> Vec<u8> {
    let mut table = Vec::new();
    write_kinds(&mut table, cluster_kind);
    table
}

/// Kinds of characters, as `clusters.rs` numbers them.
fn cluster_kind(c: char) -> u8 {
    const CONSONANT: char = '\u{915}';
    const LINKER: char = '\u{94d}';
    const PICTOGRAPH: char = '\u{1f600}';
    const JOINER: char = '\u{200d}';
    let is_one = |text: &[char]| {
        let text: String = text.iter().collect();
        text.graphemes(true).count() == 1
    };
    match c {
        '\r' => return 1,
        '\n' => return 2,
        JOINER => return 7,
        '\u{ac00}'..='\u{d7a3}' => return 13,
        _ if c.is_ascii() => return if c.is_ascii_control() { 3 } else { 0 },
        _ => {}
    }
    // Most planes have no characters so far.
    let is_empty = ('\u{40000}'..'\u{e0000}').contains(&c);
    if is_one(&['a', c]) {
        let joins_pictographs = is_one(&[PICTOGRAPH, c, JOINER, PICTOGRAPH]);
        let links = is_one(&[CONSONANT, c, CONSONANT]);
        let extends = is_one(&[CONSONANT, c, LINKER, CONSONANT]);
        return match (joins_pictographs, links, extends) {
            (true, true, _) => 6,
            (true, false, true) => 5,
            (true, false, false) => 4,
            (false, false, false) => 8,
            (false, ..) => panic!("{c:?} is of no kind that is known"),
        };
    }
    if is_one(&[c, 'a']) {
        return 9;
    }
    if is_empty {
        return 0;
    }
    let (leading, vowel, trailing) = ('\u{1100}', '\u{1160}', '\u{11a8}');
    if is_one(&[c, leading]) {
        10
    } else if is_one(&[c, vowel]) {
        11
    } else if is_one(&[c, trailing]) {
        12
    } else if is_one(&[c, '\u{1f1e6}']) {
        15
    } else if is_one(&[c, JOINER, PICTOGRAPH]) {
        16
    } else if is_one(&[c, LINKER, CONSONANT]) {
        17
    } else if !is_one(&[c, '\u{301}']) {
        3
    } else {
        0
    }
}

/// What the normalization forms do with each character: its combining class and bits, then how it
/// decomposes.
fn forms() -> Vec<u8> {
    let mut pairs = Vec::new();
    let mut canonical = Vec::new();
    write_canonical(&mut canonical, &mut pairs);
    let mut compatible = Vec::new();
    write_compatible(&mut compatible);
    let is_hangul_part = |c: char| matches!(c, '\u{1161}'..='\u{1175}' | '\u{11a8}'..='\u{11c2}');
    let facts = |c: char| {
        let bits = [
            decomposed(c).is_some(),
            compatibly_decomposed(c).is_some(),
            pairs.contains(&c) || is_hangul_part(c),
            is_combining_mark(c),
        ];
        let bits = (0..).zip(bits).map(|(bit, holds)| u8::from(holds) << bit);
        (canonical_combining_class(c), bits.sum::<u8>())
    };
    let mut all: Vec<(u8, u8)> = characters().map(facts).collect();
    all.sort_unstable();
    all.dedup();
    let mut table = Vec::new();
    write_kinds(&mut table, |c| all.binary_search(&facts(c)).unwrap() as u8);
    write(&mut table, all.len());
    for (class, bits) in all {
        table.extend([class, bits]);
    }
    table.extend(canonical);
    table.extend(compatible);
    table
}

fn is_syllable(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

/// What a character decomposes to, if that is something else.
fn decomposed(c: char) -> Option<Vec<char>> {
    let mut parts = Vec::new();
    decompose_canonical(c, |part| parts.push(part));
    (!is_syllable(c) && parts != [c]).then_some(parts)
}

/// What a character decomposes to compatibly, if that is something else again.
fn compatibly_decomposed(c: char) -> Option<Vec<char>> {
    let mut parts = Vec::new();
    decompose_compatible(c, |part| parts.push(part));
    (!is_syllable(c) && parts != [c] && Some(&parts) != decomposed(c).as_ref()).then_some(parts)
}

/// `seconds` gets all characters that become one with others before them.
fn write_canonical(table: &mut Vec<u8>, seconds: &mut Vec<char>) {
    // What was written before, which others may be made of.
    let mut known: Vec<char> = Vec::new();
    let mut entries: Vec<(char, char, Vec<char>, bool)> = Vec::new();
    let mut waiting: Vec<(char, Vec<char>)> = characters()
        .filter_map(|c| Some((c, decomposed(c)?)))
        .collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|(c, parts)| {
            let (last, beginning) = parts.split_last().unwrap();
            let start = beginning
                .iter()
                .copied()
                .reduce(|one, other| compose(one, other).unwrap_or('\0'));
            let whole = start.and_then(|start| compose(start, *last));
            let entry = match start.filter(|_| whole == Some(*c)) {
                Some(start) if beginning.len() == 1 || known.contains(&start) => {
                    (*c, start, vec![*last], true)
                }
                // What it is made of comes first.
                Some(_) => return true,
                None => (*c, parts[0], parts[1..].to_vec(), false),
            };
            known.push(*c);
            entries.push(entry);
            false
        });
        assert!(waiting.len() < before);
    }
    write(table, entries.len());
    let (mut last_from, mut last_first, mut last_other) = ('\0', '\0', '\0');
    for (from, first, others, composes) in entries {
        assert!(others.len() < 4);
        let head = step(last_from, from) << 3 | usize::from(composes) << 2 | others.len();
        write(table, head);
        write(table, step(last_first, first));
        (last_from, last_first) = (from, first);
        for other in others {
            write(table, step(last_other, other));
            last_other = other;
            if composes {
                seconds.push(other);
            }
        }
    }
    seconds.sort_unstable();
    seconds.dedup();
}

fn write_compatible(table: &mut Vec<u8>) {
    let mut runs: Vec<(u32, u32, Vec<u32>)> = Vec::new();
    for (c, parts) in characters().filter_map(|c| Some((c, compatibly_decomposed(c)?))) {
        let parts: Vec<u32> = parts.into_iter().map(u32::from).collect();
        let c = u32::from(c);
        match runs.last_mut() {
            Some((from, length, to))
                if to.len() == 1 && c == *from + *length && parts == [to[0] + *length] =>
            {
                *length += 1;
            }
            _ => runs.push((c, 1, parts)),
        }
    }
    write(table, runs.len());
    let (mut last_from, mut last_to) = (0, '\0');
    for (from, length, parts) in runs {
        write(table, (from - last_from) as usize);
        write(table, length as usize);
        write(table, parts.len());
        for part in parts {
            let part = char::from_u32(part).unwrap();
            write(table, step(last_to, part));
            last_to = part;
        }
        last_from = from + length - 1;
        last_to = char::from_u32(u32::from(last_to) + length - 1).unwrap();
    }
}

/// The way from one character to another, the lowest bit as the sign.
fn step(from: char, to: char) -> usize {
    let (from, to) = (u32::from(from), u32::from(to));
    (from.abs_diff(to) << 1 | u32::from(to < from)) as usize
}

fn characters() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

fn write(table: &mut Vec<u8>, mut number: usize) {
    while number > 127 {
        table.push(number as u8 | 128);
        number >>= 7;
    }
    table.push(number as u8);
}
