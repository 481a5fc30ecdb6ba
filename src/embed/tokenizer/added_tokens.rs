//! Tokens that are found in a text before it is split into words: `[MASK]`, and
//! whatever else a model's files add to its vocabulary.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::classes::is_word;
use crate::error::Error;

/// How a token is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// White space before the token belongs to it (`lstrip`).
    pub strip_left: bool,
    /// White space behind the token belongs to it (`rstrip`).
    pub strip_right: bool,
    /// The token is normalized, and looked for in the normalized text.
    pub normalized: bool,
    /// The token is none within a word, such as `cat` in `cats`.
    pub single_word: bool,
}

/// Tokens that are looked for in the same text.
#[derive(Default)]
pub(super) struct AddedTokens {
    /// In the order of their contents, so that those with one beginning are neighbors.
    tokens: Vec<Token>,
    /// The bytes that tokens begin with.
    firsts: Vec<bool>,
}

/// A token that is added to a vocabulary; that whose content comes first is the greatest, and of
/// equal ones that with the lowest id.
pub(super) struct Token {
    pub(super) content: String,
    pub(super) id: u32,
    pub(super) matching: Matching,
}

impl Ord for Token {
    fn cmp(&self, other: &Token) -> Ordering {
        let by_content = other.content.cmp(&self.content);
        by_content.then_with(|| other.id.cmp(&self.id))
    }
}

impl PartialOrd for Token {
    fn partial_cmp(&self, other: &Token) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Token {}

/// A part of a text: a token, or what lies between two.
pub(super) struct Part {
    pub(super) id: Option<u32>,
    pub(super) range: Range<usize>,
}

impl AddedTokens {
    /// Adds tokens.
    pub(super) fn add(&mut self, tokens: impl IntoIterator<Item = Token>) -> Result<(), Error> {
        // A heap sorts, and is smaller than what sorts faster.
        let mut heap: BinaryHeap<Token> = std::mem::take(&mut self.tokens).into();
        heap.extend(tokens);
        while let Some(token) = heap.pop() {
            self.tokens.push(token);
        }
        // Normalization may make two tokens one: the first of them is found, as in tokenizers.
        self.tokens
            .dedup_by(|next, kept| next.content == kept.content);
        self.firsts = vec![false; 256];
        for token in &self.tokens {
            let Some(first) = token.content.bytes().next() else {
                return Err(Error::InvalidInput("an added token is empty".into()));
            };
            self.firsts[usize::from(first)] = true;
        }
        Ok(())
    }

    /// Leaves out tokens with ids from `rows` on.
    pub(super) fn limit(&mut self, rows: u32) {
        self.tokens.retain(|token| token.id < rows);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    pub(super) fn id(&self, content: &str) -> Option<u32> {
        let found = self
            .tokens
            .binary_search_by(|token| token.content.as_str().cmp(content));
        found.ok().map(|at| self.tokens[at].id)
    }

    /// The highest id, if there are tokens.
    pub(super) fn last_id(&self) -> Option<u32> {
        self.tokens.iter().map(|token| token.id).max()
    }

    /// Splits the whole text into tokens and the parts between them, in order.
    pub(super) fn split(&self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        let (mut searched, mut done) = (0, 0);
        while let Some((found, token)) = self.next(text, searched) {
            searched = found.end;
            let Range { mut start, mut end } = found;
            if token.matching.single_word && is_within_word(text, start, end) {
                continue;
            }
            if token.matching.strip_left {
                start = text[..start].trim_end().len().max(done);
            }
            if token.matching.strip_right {
                end = text.len() - text[end..].trim_start().len();
            }
            if done < start {
                let range = done..start;
                parts.push(Part { id: None, range });
            }
            parts.push(Part {
                id: Some(token.id),
                range: start..end,
            });
            done = end;
        }
        if done < text.len() {
            let range = done..text.len();
            parts.push(Part { id: None, range });
        }
        parts
    }

    /// The leftmost token from `from` on, the longest of several.
    fn next(&self, text: &str, from: usize) -> Option<(Range<usize>, &Token)> {
        if self.is_empty() {
            return None;
        }
        let bytes = text.as_bytes();
        (from..bytes.len())
            .filter(|at| self.firsts[usize::from(bytes[*at])])
            .find_map(|at| {
                let token = self.longest(&bytes[at..])?;
                Some((at..at + token.content.len(), token))
            })
    }

    /// The longest token that a text begins with.
    fn longest(&self, text: &[u8]) -> Option<&Token> {
        let mut found = None;
        // The tokens that begin as the text does, as far as it was looked at.
        let mut tokens = &self.tokens[..];
        for (at, byte) in text.iter().enumerate() {
            let byte_of = |token: &Token| token.content.as_bytes().get(at).copied();
            tokens = &tokens[tokens.partition_point(|token| byte_of(token) < Some(*byte))..];
            tokens = &tokens[..tokens.partition_point(|token| byte_of(token) == Some(*byte))];
            // The shortest token comes first.
            let Some(first) = tokens.first() else {
                break;
            };
            if first.content.len() == at + 1 {
                found = Some(first);
            }
            if tokens.len() == 1 && found.is_some_and(|found| std::ptr::eq(found, first)) {
                break;
            }
        }
        found
    }
}

/// Whether a letter, digit or the like touches a part of a text.
fn is_within_word(text: &str, start: usize, end: usize) -> bool {
    let (before, behind) = (
        text[..start].chars().next_back(),
        text[end..].chars().next(),
    );
    before.is_some_and(is_word) || behind.is_some_and(is_word)
}
