//! The letters that byte-level vocabularies write bytes with: printable characters, those of
//! Latin-1 as themselves, and the others in their order from U+0100 on.

/// The letter of a byte.
pub(super) fn letter(byte: u8) -> char {
    let code = match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => u32::from(byte),
        0..=b' ' => 256 + u32::from(byte),
        0x7f..=0xa0 => 256 + 33 + u32::from(byte - 0x7f),
        0xad => 256 + 33 + 34,
    };
    char::from_u32(code).unwrap_or_default()
}
