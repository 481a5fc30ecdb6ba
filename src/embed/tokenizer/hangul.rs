//! Syllables of Hangul and the letters that they are made of (The Unicode Standard, 3.12).

pub(super) const SYLLABLES: u32 = 0xac00;
pub(super) const LEADING: u32 = 0x1100;
pub(super) const VOWELS: u32 = 0x1161;
/// One before the first trailing consonant.
pub(super) const TRAILING: u32 = 0x11a7;

/// The number of a syllable.
pub(super) fn number(c: char) -> Option<u32> {
    u32::from(c).checked_sub(SYLLABLES).filter(|at| *at < 11172)
}

/// The letters of a syllable.
pub(super) fn letters(c: char) -> Option<[Option<char>; 3]> {
    let at = number(c)?;
    let last = at % 28;
    Some([
        char::from_u32(LEADING + at / 588),
        char::from_u32(VOWELS + at % 588 / 28),
        char::from_u32(TRAILING + last).filter(|_| last > 0),
    ])
}
