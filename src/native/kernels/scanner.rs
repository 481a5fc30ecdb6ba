//! Code as words, numbers and signs, without comments.

/// A word, a number or a sign, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// The byte of the code where the token begins.
    pub(super) at: usize,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    /// One character that is neither.
    Sign,
}

impl Token<'_> {
    /// Whether the token is this sign.
    pub(super) fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }
}

/// What ends a comment of one line.
const LINE_BREAKS: [char; 7] = [
    '\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}',
];

/// A text whose comments are spaces, so that nobody finds another end of them.
pub(super) fn without_comments(code: &str) -> String {
    let mut made = String::with_capacity(code.len());
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let length = if rest.starts_with("//") {
            rest.find(LINE_BREAKS).unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else {
            let length = rest.find('/').unwrap_or(rest.len());
            let taken = length.max(rest.chars().next().map_or(0, char::len_utf8));
            made += &rest[..taken];
            at += taken;
            continue;
        };
        at += length;
        for letter in rest[..length].chars() {
            match letter {
                '\n' => made.push('\n'),
                other => made.extend(std::iter::repeat_n(' ', other.len_utf16())),
            }
        }
    }
    made
}

/// The tokens of a text without comments.
pub(super) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        } else if next == '_' || next.is_alphabetic() {
            length_while(rest, |c| c == '_' || c.is_alphanumeric())
        } else if next.is_ascii_digit() {
            number(rest)
        } else {
            next.len_utf8()
        };
        let kind = match next {
            '_' => Kind::Word,
            _ if next.is_alphabetic() => Kind::Word,
            _ if next.is_ascii_digit() => Kind::Number,
            _ => Kind::Sign,
        };
        tokens.push(Token {
            kind,
            text: &rest[..length],
            at,
        });
        at += length;
    }
    tokens
}

/// Bytes of the comment that a text begins with; comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            match rest.chars().next() {
                Some(next) => at += next.len_utf8(),
                None => return at,
            }
        }
    }
}

/// Bytes of the number that a text begins with, with its suffix.
fn number(text: &str) -> usize {
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut last = ' ';
    length_while(text, |c| {
        let is_exponent = match is_hexadecimal {
            true => matches!(last, 'p' | 'P'),
            false => matches!(last, 'e' | 'E'),
        };
        last = c;
        c == '.' || c.is_ascii_alphanumeric() || matches!(c, '+' | '-') && is_exponent
    })
}

fn length_while(text: &str, mut holds: impl FnMut(char) -> bool) -> usize {
    text.find(|c| !holds(c)).unwrap_or(text.len())
}
