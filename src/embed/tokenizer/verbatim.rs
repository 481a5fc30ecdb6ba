//! Tokens that are found in a text before it is split into words: `[MASK]`, and
//! whatever else a model's files add to its vocabulary.

use std::ops::Range;

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
}

/// Tokens that are looked for in the same text.
#[derive(Default)]
pub(super) struct Verbatim {
    tokens: Vec<Token>,
}

struct Token {
    content: String,
    id: u32,
    matching: Matching,
}

/// A part of a text: a token, or what lies between two.
pub(super) struct Part {
    pub(super) id: Option<u32>,
    pub(super) range: Range<usize>,
}

impl Verbatim {
    pub(super) fn add(
        &mut self,
        content: String,
        id: u32,
        matching: Matching,
    ) -> Result<(), Error> {
        if content.is_empty() {
            return Err(Error::InvalidInput("an added token is empty".into()));
        }
        if self.id(&content).is_some() {
            let problem = ["the token '", &content, "' is added twice"].concat();
            return Err(Error::InvalidInput(problem));
        }
        self.tokens.push(Token {
            content,
            id,
            matching,
        });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    pub(super) fn id(&self, content: &str) -> Option<u32> {
        let found = self.tokens.iter().find(|token| token.content == content);
        found.map(|token| token.id)
    }

    /// Splits the whole text into tokens and the parts between them, in order.
    pub(super) fn split(&self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        let (mut searched, mut done) = (0, 0);
        while let Some((found, token)) = self.next(text, searched) {
            searched = found.end;
            let Range { mut start, mut end } = found;
            if token.matching.strip_left {
                start = text[..start].trim_end().len();
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
        let mut firsts = [false; 256];
        for token in &self.tokens {
            firsts[usize::from(token.content.as_bytes()[0])] = true;
        }
        let bytes = text.as_bytes();
        (from..bytes.len())
            .filter(|at| firsts[usize::from(bytes[*at])])
            .find_map(|at| {
                let here = self
                    .tokens
                    .iter()
                    .filter(|token| bytes[at..].starts_with(token.content.as_bytes()));
                let token = here.max_by_key(|token| token.content.len())?;
                Some((at..at + token.content.len(), token))
            })
    }
}
