//! The map of characters that SentencePiece keeps in its models, by which most texts become NFKC.
//!
//! The map has an entry for beginnings of texts; of several the shortest one counts. It is looked
//! up as Hugging Face's tokenizers do: clusters of up to five bytes whole, and replaced whole, then
//! each character.

use super::clusters::first_cluster;
use super::fields::Fields;
use super::rewrite::Rewrite;
use super::text::Text;
use crate::error::Error;

pub(super) struct Precompiled {
    /// A trie as a double array: Aoe, "An Efficient Digital Search Algorithm by Using a
    /// Double-Array Structure" (1989), in the units of Darts-clone.
    trie: Vec<u32>,
    /// What beginnings become, each up to a zero byte.
    texts: String,
    /// The characters of ASCII that stay as they are.
    plain: [bool; 128],
}

impl Precompiled {
    pub(super) fn read(part: Fields<'_>) -> Result<Precompiled, Error> {
        let encoded = part.needed_text("precompiled_charsmap")?;
        let wrong =
            || Error::InvalidInput([part.name, ".precompiled_charsmap is damaged"].concat());
        let bytes = decoded(encoded).ok_or_else(wrong)?;
        let (length, rest) = bytes.split_first_chunk().ok_or_else(wrong)?;
        let units = u32::from_le_bytes(*length) as usize / 4;
        let trie = rest.get(..units * 4).ok_or_else(wrong)?;
        let trie = trie.as_chunks().0.iter().copied().map(u32::from_le_bytes);
        let texts = String::from_utf8(rest[units * 4..].into()).map_err(|_| wrong())?;
        let mut map = Precompiled {
            trie: trie.collect(),
            texts,
            plain: [false; 128],
        };
        for c in '\0'..'\u{80}' {
            map.plain[c as usize] = map.find(c.encode_utf8(&mut [0; 4])).is_none();
        }
        Ok(map)
    }

    /// What a text becomes that the map has an entry for. Damaged maps end early.
    fn find(&self, text: &str) -> Option<&str> {
        let unit = |at: u32| self.trie.get(at as usize).copied();
        let mut at = offset(unit(0)?);
        for byte in text.bytes().take_while(|byte| *byte != 0) {
            at ^= u32::from(byte);
            let here = unit(at)?;
            if here & (1 << 31 | 0xff) != u32::from(byte) {
                return None;
            }
            at ^= offset(here);
            if here >> 8 & 1 == 1 {
                let start = (unit(at)? & !(1 << 31)) as usize;
                let text = self.texts.get(start..)?;
                return Some(text.split('\0').next().unwrap_or_default());
            }
        }
        None
    }

    /// Makes `to` of `from`.
    pub(super) fn normalize(&self, from: &Text, to: &mut Text) {
        let text = &from.text;
        let bytes = text.as_bytes();
        let is_plain = |at: usize| {
            let next = bytes.get(at + 1).unwrap_or(&b' ');
            bytes[at].is_ascii() && self.plain[usize::from(bytes[at])] && next.is_ascii()
        };
        let mut writer = Writer {
            to: Rewrite::new(from, to),
            last: None,
        };
        let mut at = 0;
        while at < bytes.len() {
            if is_plain(at) {
                writer.push(char::from(bytes[at]), 0);
                at += 1;
                continue;
            }
            let cluster = &text[at..at + first_cluster(&text[at..])];
            at += cluster.len();
            let whole = if cluster.len() < 6 {
                self.find(cluster)
            } else {
                None
            };
            match whole {
                Some(new) => writer.replace(cluster, new),
                None => self.each(cluster, &mut writer),
            }
        }
        writer.flush();
    }

    fn each(&self, cluster: &str, writer: &mut Writer<'_>) {
        for c in cluster.chars() {
            let mut bytes = [0; 4];
            let old = c.encode_utf8(&mut bytes);
            match self.find(old) {
                Some(new) => writer.replace(old, new),
                None => writer.push(c, 0),
            }
        }
    }
}

/// Where the children of a unit lie.
fn offset(unit: u32) -> u32 {
    (unit >> 10) << ((unit & 1 << 9) >> 6)
}

/// A text that is being normalized.
struct Writer<'a> {
    to: Rewrite<'a>,
    /// The last character, whose change may still count what is removed behind it.
    last: Option<(char, isize)>,
}

impl Writer<'_> {
    fn push(&mut self, c: char, change: isize) {
        self.flush();
        self.last = Some((c, change));
    }

    fn flush(&mut self) {
        if let Some((c, change)) = self.last.take() {
            self.to.push(c, change);
        }
    }

    /// Puts a text in the place of another one. What is removed at the very beginning is not
    /// counted, as in Hugging Face's tokenizers.
    fn replace(&mut self, old: &str, new: &str) {
        let (before, after) = (old.chars().count(), new.chars().count());
        for (at, c) in new.chars().enumerate() {
            self.push(c, isize::from(at >= before));
        }
        if let Some((_, change)) = &mut self.last {
            *change -= before.saturating_sub(after).cast_signed();
        }
    }
}

/// The bytes that a text stands for in base64 (RFC 4648, section 4).
fn decoded(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut waiting) = (0_u32, 0);
    for c in text.bytes() {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        waiting += 6;
        if waiting >= 8 {
            waiting -= 8;
            bytes.push((bits >> waiting).to_le_bytes()[0]);
        }
    }
    Some(bytes)
}
