//! What texts are searched for: strings, characters, and the regular expressions that
//! `tokenizer.json` files are known to have, each as a scanner by hand.
//!
//! Other regular expressions are refused where they are read.

use std::ops::Range;

use super::classes::{Class, classes};
use super::fields::{Fields, shown, unsupported};
use crate::embed::json::Value;
use crate::error::Error;

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// A string, which is not empty.
    String(String),
    /// At least so many spaces.
    Spaces(usize),
    /// At least so many characters of white space.
    WhiteSpace(usize),
    /// The words of a byte-level vocabulary.
    Words(Words),
}

/// How texts are split into words, white space and all, by a regular expression of GPT-2's family:
/// short forms such as `'s`, letters, digits, other signs, white space, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// Whether the short forms may be capital, a sign other than a space may lead letters, and
    /// line ends go with the signs before them or end white space: what GPT-4 added.
    is_later: bool,
    /// The most digits of a word.
    digits: usize,
}

/// GPT-2's words.
pub(super) const GPT_2: Words = Words {
    is_later: false,
    digits: usize::MAX,
};

/// The regular expressions that are known.
const KNOWN: [(&str, Pattern); 11] = [
    (" {2,}", Pattern::Spaces(2)),
    (" +", Pattern::Spaces(1)),
    (r"\s+", Pattern::WhiteSpace(1)),
    (r"\s{2,}", Pattern::WhiteSpace(2)),
    (r"\s", Pattern::WhiteSpace(0)),
    (
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        Pattern::Words(GPT_2),
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        LATER_1,
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        LATER_3,
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        LATER_3,
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        LATER_3,
    ),
    (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        LATER_3,
    ),
];

const LATER_1: Pattern = Pattern::Words(Words {
    is_later: true,
    digits: 1,
});
const LATER_3: Pattern = Pattern::Words(Words {
    is_later: true,
    digits: 3,
});

impl Pattern {
    /// The `pattern` of a part: `{ "String": … }` or `{ "Regex": … }`.
    pub(super) fn read(part: Fields<'_>) -> Result<Pattern, Error> {
        let given = part.get("pattern").unwrap_or(&Value::Null);
        if let Some(Value::Text(text)) = given.get("String")
            && !text.is_empty()
        {
            return Ok(Pattern::String(text.clone()));
        }
        let Some(Value::Text(regex)) = given.get("Regex") else {
            return Err(part.unsupported("pattern", given));
        };
        if let Some((_, pattern)) = KNOWN.iter().find(|(known, _)| known == regex) {
            return Ok(pattern.clone());
        }
        let is_plain = |byte: u8| !r"\.+*?()|[]{}^$#&-~".as_bytes().contains(&byte);
        if !regex.is_empty() && regex.bytes().all(is_plain) {
            return Ok(Pattern::String(regex.clone()));
        }
        let shown = shown(&Value::Text(regex.clone()));
        Err(unsupported(&[part.name, ".pattern.Regex"].concat(), &shown))
    }

    /// The next match in a text from a character on.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        match self {
            Pattern::String(string) => {
                let (text, string) = (text.as_bytes(), string.as_bytes());
                let mut places = from..(text.len() + 1).saturating_sub(string.len());
                let at = places.find(|at| text[*at..].starts_with(string))?;
                Some(at..at + string.len())
            }
            Pattern::Spaces(least) => run(text, from, *least, |c| c == ' '),
            // One by one.
            Pattern::WhiteSpace(0) => {
                let at = from + text[from..].find(char::is_whitespace)?;
                Some(at..at + text[at..].chars().next()?.len_utf8())
            }
            Pattern::WhiteSpace(least) => run(text, from, *least, char::is_whitespace),
            Pattern::Words(words) => {
                (from < text.len()).then(|| from..from + words.first(&text[from..]))
            }
        }
    }
}

/// The next run of at least so many characters of a kind.
fn run(text: &str, from: usize, least: usize, is: impl Fn(char) -> bool) -> Option<Range<usize>> {
    let mut at = from;
    loop {
        let start = at + text[at..].find(&is)?;
        let rest = &text[start..];
        let end = start + rest.find(|c| !is(c)).unwrap_or(rest.len());
        if text[start..end].chars().nth(least - 1).is_some() {
            return Some(start..end);
        }
        at = end;
    }
}

impl Words {
    /// How many bytes the first word of a text has that is not empty.
    fn first(self, text: &str) -> usize {
        let short = self.short_form(text);
        if short > 0 {
            return short;
        }
        let mut chars = text.chars();
        let first = chars.next().unwrap_or_default();
        let (class, width) = (classes().of(first), first.len_utf8());
        let next = chars.next().map(|c| classes().of(c)).unwrap_or_default();
        let is_space = first == ' ';
        let leads = match self.is_later {
            true => !(class.is_letter() || class.is_number() || first == '\r' || first == '\n'),
            false => is_space,
        };
        if class.is_letter() || (leads && next.is_letter()) {
            return width + while_in(&text[width..], Class::is_letter);
        }
        if class.is_number() || (is_space && !self.is_later && next.is_number()) {
            return self.number(text);
        }
        let is_sign = |class: Class| !(class.is_space() || class.is_letter() || class.is_number());
        let has_next = text.len() > width;
        if is_sign(class) || (is_space && has_next && is_sign(next)) {
            let end = width + while_in(&text[width..], is_sign);
            return match self.is_later {
                true => text.len() - text[end..].trim_start_matches(['\r', '\n']).len(),
                false => end,
            };
        }
        self.white_space(text)
    }

    /// Digits, one space before them where that belongs to them.
    fn number(self, text: &str) -> usize {
        let start = usize::from(text.starts_with(' '));
        let mut digits = text[start..].char_indices().take(self.digits);
        let end = digits.find(|(_, c)| !classes().of(*c).is_number());
        match (end, self.digits) {
            (Some((at, _)), _) => start + at,
            (None, usize::MAX) => text.len(),
            (None, most) => (text.char_indices().nth(most)).map_or(text.len(), |(at, _)| at),
        }
    }

    /// White space, of which the last character is left to the word behind.
    fn white_space(self, text: &str) -> usize {
        let run = text.len() - text.trim_start().len();
        if self.is_later
            && let Some(at) = text[..run].rfind(['\r', '\n'])
        {
            return at + 1;
        }
        let last = text[..run].chars().next_back().map_or(0, char::len_utf8);
        match run == text.len() || run == last {
            true => run,
            false => run - last,
        }
    }

    /// `'s`, `'ll` and the like.
    fn short_form(self, text: &str) -> usize {
        let Some(rest) = text.strip_prefix('\'') else {
            return 0;
        };
        let folded = |c: char| match (self.is_later, c) {
            // Case folding makes an S of the long s, and no other of these letters of another.
            (true, 'ſ') => 's',
            (true, c) => c.to_ascii_lowercase(),
            (false, c) => c,
        };
        let mut chars = rest.chars();
        let first = chars.next().unwrap_or_default();
        let second = chars.next().unwrap_or_default();
        match (folded(first), folded(second)) {
            ('s' | 't' | 'm' | 'd', _) => 1 + first.len_utf8(),
            ('r' | 'v', 'e') | ('l', 'l') => 3,
            _ => 0,
        }
    }
}

/// How many bytes of a text are of characters of a class, up to the first of another one.
fn while_in(text: &str, is: impl Fn(Class) -> bool) -> usize {
    let end = text.char_indices().find(|(_, c)| !is(classes().of(*c)));
    end.map_or(text.len(), |(at, _)| at)
}
