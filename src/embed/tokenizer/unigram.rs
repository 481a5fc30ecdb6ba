//! Unigram, as SentencePiece has it: of all ways to split a piece of text into tokens, that with
//! the highest sum of scores.
//!
//! Sums are made, and ties decided, as in Hugging Face's tokenizers.

use super::beginnings::Match;
use super::byte_tokens::Bytes;
use super::fields::{Fields, unsupported, wrong};
use super::output::Output;
use super::text::{Origin, number};
use super::vocabulary::{SEED, Vocabulary, extend};
use crate::error::Error;

/// What an unknown character costs more than the rarest token.
const PENALTY: f64 = 10.0;

pub(super) struct Unigram {
    pub(super) vocabulary: Vocabulary,
    /// The score of each token.
    scores: Vec<f64>,
    unk: u32,
    /// The tokens of bytes, which unknown characters become where all of theirs are known.
    bytes: Bytes,
    unk_score: f64,
}

/// What splits are searched for in.
#[derive(Default)]
pub(super) struct Workplace {
    ways: Vec<Best>,
    /// The tokens of the best way, from the last to the first, with their offsets.
    path: Vec<(u32, Origin)>,
}

/// The best way to a place of a text.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    /// Where its last token begins; `NONE` where there is no way.
    start: u32,
    token: u32,
}

const NONE: u32 = u32::MAX;

impl Unigram {
    /// The model of a file's fields.
    pub(super) fn read(
        fields: Fields<'_>,
        vocabulary: Vocabulary,
        scores: Vec<f64>,
    ) -> Result<Unigram, Error> {
        let unk = fields.count("unk_id")?;
        let unk = unk.ok_or_else(|| unsupported("model", "without unk_id"))?;
        if unk as usize >= vocabulary.len() || scores.len() != vocabulary.len() {
            return Err(wrong(&[
                "unk_id ",
                &unk.to_string(),
                " is the id of no token",
            ]));
        }
        let bytes = match fields.flag("byte_fallback")? {
            Some(true) => Bytes::named(&vocabulary),
            _ => Bytes::none(),
        };
        let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(Unigram {
            vocabulary,
            scores,
            unk,
            bytes,
            unk_score: lowest - PENALTY,
        })
    }

    /// Whether an id is that of unknown characters.
    pub(super) fn is_unknown(&self, id: u32) -> bool {
        id == self.vocabulary.id(self.unk)
    }

    /// Appends the tokens of a piece.
    pub(super) fn split(&self, piece: &str, work: &mut Workplace, out: &mut Output) {
        let Workplace { ways, path } = work;
        self.search(piece, ways);
        path.clear();
        let mut end = piece.len();
        while end > 0 {
            let Best { start, token, .. } = ways[end];
            match path.last_mut() {
                // Unknown characters in a row are one token.
                Some((last, offsets)) if token == self.unk && *last == token => offsets.0 = start,
                _ => path.push((token, (start, number(end)))),
            }
            end = start as usize;
        }
        for (token, offsets) in path.iter().rev().copied() {
            match token == self.unk {
                true => self.unknown(piece, offsets, out),
                false => out.push(self.vocabulary.id(token), offsets),
            }
        }
    }

    /// Finds the best way to each place.
    fn search(&self, piece: &str, ways: &mut Vec<Best>) {
        let bytes = piece.as_bytes();
        ways.clear();
        ways.resize(
            bytes.len() + 1,
            Best {
                score: 0.0,
                start: NONE,
                token: 0,
            },
        );
        let mut start = 0;
        while start < bytes.len() {
            let so_far = ways[start].score;
            let mut relax = |end: usize, token: u32, score: f64| {
                let score = score + so_far;
                let way = &mut ways[end];
                if way.start == NONE || score > way.score {
                    let start = number(start);
                    *way = Best {
                        score,
                        start,
                        token,
                    };
                }
            };
            let (mut end, mut hash, mut width) = (start, SEED, 0);
            let mut is_known = false;
            let last = bytes.len().min(start + self.vocabulary.longest);
            while end < last {
                hash = extend(hash, &bytes[end]);
                end += 1;
                if !piece.is_char_boundary(end) {
                    continue;
                }
                let is_single = width == 0;
                if is_single {
                    width = end - start;
                }
                match self.vocabulary.matches(hash, &bytes[start..end]) {
                    Match::None => break,
                    Match::Beginning => {}
                    Match::Token(token) => {
                        relax(end, token, self.scores[token as usize]);
                        is_known |= is_single;
                    }
                }
            }
            if width == 0 {
                width = piece[start..].chars().next().map_or(1, char::len_utf8);
            }
            if !is_known {
                relax(start + width, self.unk, self.unk_score);
            }
            start += width;
        }
    }

    /// Appends the tokens of unknown characters: a token that they are together, their bytes, or
    /// the token of what is unknown.
    fn unknown(&self, piece: &str, offsets: Origin, out: &mut Output) {
        let text = &piece.as_bytes()[offsets.0 as usize..offsets.1 as usize];
        if let Some(token) = self.vocabulary.place(text) {
            out.push(self.vocabulary.id(token), offsets);
        } else if self.bytes.has(text) {
            for token in self.bytes.of(text) {
                out.push(self.vocabulary.id(token), offsets);
            }
        } else {
            out.push(self.vocabulary.id(self.unk), offsets);
        }
    }
}
