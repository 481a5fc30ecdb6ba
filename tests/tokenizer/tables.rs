//! Writes the table of characters, and holds it to the crates that it is from.
//!
//! `UPDATE_TABLES=1 cargo test --test tokenizer tables` writes it anew.

use std::path::Path;

use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;
use unicode_normalization_alignments::char::canonical_combining_class;

const OTHER: u8 = 1;
const PUNCTUATION: u8 = 2;
const STARTING_MARK: u8 = 3;
const MARK: u8 = 4;
const ORDERED: u8 = 5;

#[test]
fn the_table_is_what_the_crates_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/embed/tokenizer/unicode.bin");
    let table = table();
    if std::env::var_os("UPDATE_TABLES").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let kept = std::fs::read(&path).unwrap_or_default();
    assert!(
        kept == table,
        "{} is not what the crates say",
        path.display()
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
    write_kinds(&mut table, &classes);
    write_decomposed(&mut table);
    table
}

fn write_kinds(table: &mut Vec<u8>, classes: &[u8]) {
    // A surrogate is no character; whatever it joins is the shorter.
    let kind_at = |c| char::from_u32(c).map(|c| kind(c, classes));
    let (mut from, mut last) = (0, 0);
    for c in 0..=u32::from(char::MAX) {
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
    let kinds = [
        (c.is_other(), OTHER),
        (c.is_punctuation(), PUNCTUATION),
        (c.is_mark_nonspacing() && class == 0, STARTING_MARK),
        (c.is_mark_nonspacing() && class != 0, MARK),
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
    let (mut last_from, mut last_to) = (0, 0);
    for (from, left) in decomposed {
        let from = u32::from(from) as usize;
        write(table, (from - last_from) << 2 | left.len());
        last_from = from;
        for to in left {
            let to = u32::from(to) as usize;
            let step = to.abs_diff(last_to) << 1;
            write(table, step | usize::from(to < last_to));
            last_to = to;
        }
    }
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
