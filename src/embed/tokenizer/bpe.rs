//! Byte pair encoding: neighbors become one token, the pair of the lowest rank first, until none
//! does.
//!
//! Letters are characters, or bytes where the pre-tokenizer is byte-level.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::byte_letters::letter;
use super::byte_tokens::Bytes;
use super::fields::{Fields, unsupported};
use super::joints::Joints;
use super::merges::Merges;
use super::output::Output;
use super::pre_tokenizer::Alphabet;
use super::text::number;
use super::vocabulary::Vocabulary;
use crate::embed::json::Value;
use crate::error::Error;

/// Words of more symbols are merged by a heap.
const SHORT: usize = 48;

pub(super) struct Bpe {
    pub(super) vocabulary: Vocabulary,
    merges: Merges,
    joints: Joints,
    unk: Option<u32>,
    fuses_unk: bool,
    letters: Letters,
    /// Whether a piece that is a token is not split.
    ignores_merges: bool,
}

/// What a piece is first split into.
enum Letters {
    /// Bytes, which have these tokens.
    Bytes(Bytes),
    /// Characters. Unknown ones become bytes where all of theirs have tokens.
    Characters(Bytes),
}

/// A token of a word and how many bytes it has: 0 once it is part of the one before.
#[derive(Clone, Copy)]
struct Symbol {
    token: u32,
    length: u32,
    /// The rank at which it joins the next one.
    rank: u32,
}

const NEVER: u32 = u32::MAX;

/// What a text's words are merged in.
#[derive(Default)]
pub(super) struct Workplace {
    symbols: Vec<Symbol>,
    /// The symbols of a word of which parts are merged, and those of the parts before.
    whole: Vec<Symbol>,
    done: Vec<Symbol>,
    word: String,
    previous: Vec<u32>,
    next: Vec<u32>,
    queue: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Bpe {
    /// The model of a file's fields.
    pub(super) fn read(
        fields: Fields<'_>,
        vocabulary: Vocabulary,
        (merges, joints): (Merges, Joints),
        alphabet: Alphabet,
    ) -> Result<Bpe, Error> {
        let is_byte_level = alphabet == Alphabet::Bytes;
        for name in ["continuing_subword_prefix", "end_of_word_suffix"] {
            if let Some(value) = fields.get(name).filter(|value| value.as_text() != Some("")) {
                return Err(fields.unsupported(name, value));
            }
        }
        if let Some(value) = fields
            .get("dropout")
            .filter(|value| **value != Value::Number(0.0))
        {
            return Err(fields.unsupported("dropout", value));
        }
        let flag = |name: &str| Ok::<bool, Error>(fields.flag(name)?.unwrap_or(false));
        let letters = match (is_byte_level, flag("byte_fallback")?) {
            (true, true) => return Err(unsupported("model", "of bytes with byte_fallback")),
            (true, false) => Letters::Bytes(Bytes::letters(&vocabulary)),
            (false, true) => Letters::Characters(Bytes::named(&vocabulary)),
            (false, false) => Letters::Characters(Bytes::none()),
        };
        let missing = match &letters {
            Letters::Bytes(bytes) => bytes.missing(),
            Letters::Characters(_) => None,
        };
        let unk = match (fields.text("unk_token")?, missing) {
            // No byte is unknown.
            (_, None) if is_byte_level => None,
            (Some(name), _) => Some(vocabulary.needed(name)?),
            (None, None) => None,
            (None, Some(byte)) => {
                return Err(unsupported(
                    "vocab",
                    &["without byte ", &byte.to_string()].concat(),
                ));
            }
        };
        Ok(Bpe {
            vocabulary,
            merges,
            joints,
            unk,
            fuses_unk: flag("fuse_unk")?,
            letters,
            ignores_merges: flag("ignore_merges")?,
        })
    }

    /// Appends the tokens of a piece.
    pub(super) fn split(&self, piece: &str, work: &mut Workplace, out: &mut Output) {
        if self.ignores_merges
            && let Some(token) = self.whole(piece, &mut work.word)
        {
            out.push(self.vocabulary.id(token), (0, number(piece.len())));
            return;
        }
        work.symbols.clear();
        match &self.letters {
            Letters::Bytes(bytes) => self.bytes(piece, bytes, &mut work.symbols),
            Letters::Characters(bytes) => self.characters(piece, bytes, &mut work.symbols),
        }
        for at in 1..work.symbols.len() {
            self.rate(&mut work.symbols, at - 1, at);
        }
        match work.symbols.len() <= SHORT {
            true => self.merge_short(&mut work.symbols),
            false => self.merge_parts(work),
        }
        let mut start = 0;
        for symbol in work.symbols.iter().filter(|symbol| symbol.length > 0) {
            let end = start + symbol.length;
            out.push(self.vocabulary.id(symbol.token), (start, end));
            start = end;
        }
    }

    /// The token that a piece is.
    fn whole(&self, piece: &str, word: &mut String) -> Option<u32> {
        match self.letters {
            Letters::Characters(_) => self.vocabulary.place(piece.as_bytes()),
            Letters::Bytes(_) => {
                word.clear();
                word.extend(piece.bytes().map(letter));
                self.vocabulary.place(word.as_bytes())
            }
        }
    }

    fn bytes(&self, piece: &str, bytes: &Bytes, symbols: &mut Vec<Symbol>) {
        let mut unknown = Unknown(0);
        for byte in piece.bytes() {
            match bytes.token(byte) {
                Some(token) => {
                    self.flush(&mut unknown, symbols);
                    symbols.push(Symbol::new(token, 1));
                }
                None => self.note(&mut unknown, 1, symbols),
            }
        }
        self.flush(&mut unknown, symbols);
    }

    fn characters(&self, piece: &str, bytes: &Bytes, symbols: &mut Vec<Symbol>) {
        let mut unknown = Unknown(0);
        for c in piece.chars() {
            let mut buffer = [0; 4];
            let letter = c.encode_utf8(&mut buffer).as_bytes();
            if let Some(token) = self.vocabulary.place(letter) {
                self.flush(&mut unknown, symbols);
                symbols.push(Symbol::new(token, number(letter.len())));
            } else if bytes.has(letter) {
                // Unknown letters before keep waiting, as in Hugging Face's tokenizers.
                symbols.extend(bytes.of(letter).map(|token| Symbol::new(token, 1)));
            } else {
                self.note(&mut unknown, number(letter.len()), symbols);
            }
        }
        self.flush(&mut unknown, symbols);
    }

    /// Takes an unknown letter. Without a token for them, unknown letters are left out.
    fn note(&self, unknown: &mut Unknown, length: u32, symbols: &mut Vec<Symbol>) {
        if !self.fuses_unk {
            self.flush(unknown, symbols);
        }
        unknown.0 += length;
    }

    fn flush(&self, unknown: &mut Unknown, symbols: &mut Vec<Symbol>) {
        let length = std::mem::take(&mut unknown.0);
        if let Some(unk) = self.unk.filter(|_| length > 0) {
            symbols.push(Symbol::new(unk, length));
        }
    }

    /// Notes at which rank two neighbors join.
    fn rate(&self, symbols: &mut [Symbol], left: usize, right: usize) {
        let rank = self.merges.rank(symbols[left].token, symbols[right].token);
        symbols[left].rank = rank.unwrap_or(NEVER);
    }

    /// Looks for the lowest rank again and again.
    fn merge_short(&self, symbols: &mut Vec<Symbol>) {
        loop {
            let (mut best, mut lowest) = (0, NEVER);
            for (at, symbol) in symbols.iter().enumerate() {
                if symbol.rank < lowest {
                    (best, lowest) = (at, symbol.rank);
                }
            }
            if lowest == NEVER {
                return;
            }
            let right = symbols.remove(best + 1);
            symbols[best] = Symbol {
                token: self.merges.whole(lowest),
                length: symbols[best].length + right.length,
                rank: NEVER,
            };
            if best + 1 < symbols.len() {
                self.rate(symbols, best, best + 1);
            }
            if best > 0 {
                self.rate(symbols, best - 1, best);
            }
        }
    }

    /// Cuts a long word where no merge reaches across, and merges each part by itself.
    fn merge_parts(&self, work: &mut Workplace) {
        let mut whole = std::mem::take(&mut work.whole);
        std::mem::swap(&mut whole, &mut work.symbols);
        let mut done = std::mem::take(&mut work.done);
        done.clear();
        let ends_after = |at: usize| {
            let Some(next) = whole.get(at + 1) else {
                return true;
            };
            let token = |symbol: &Symbol| self.vocabulary.token(symbol.token);
            whole[at].rank == NEVER && !self.joints.may_join(token(&whole[at]), token(next))
        };
        let mut start = 0;
        for at in (0..whole.len()).filter(|at| ends_after(*at)) {
            work.symbols.clear();
            work.symbols.extend_from_slice(&whole[start..=at]);
            match work.symbols.len() <= SHORT {
                true => self.merge_short(&mut work.symbols),
                false => self.merge_long(work),
            }
            done.extend(work.symbols.iter().filter(|symbol| symbol.length > 0));
            start = at + 1;
        }
        work.whole = whole;
        work.done = std::mem::replace(&mut work.symbols, done);
    }

    /// Keeps pairs in a queue by their ranks, and from the left. Symbols stay at their places, and
    /// those that were joined to others have no length.
    fn merge_long(&self, work: &mut Workplace) {
        let Workplace {
            symbols,
            previous,
            next,
            queue,
            ..
        } = work;
        let count = symbols.len();
        previous.clear();
        previous.extend((0..count).map(|at| number(at).wrapping_sub(1)));
        next.clear();
        next.extend((0..count).map(|at| number(at + 1)));
        queue.clear();
        let pairs = symbols.iter().enumerate();
        queue.extend(pairs.filter_map(|(at, symbol)| entry(at, symbol)));
        while let Some(Reverse((rank, left))) = queue.pop() {
            let left = left as usize;
            // What is left of a pair that is no more.
            if symbols[left].length == 0 || symbols[left].rank != rank {
                continue;
            }
            let right = next[left] as usize;
            symbols[left].token = self.merges.whole(rank);
            symbols[left].length += symbols[right].length;
            symbols[left].rank = NEVER;
            symbols[right].length = 0;
            let behind = next[right] as usize;
            next[left] = number(behind);
            if behind < count {
                previous[behind] = number(left);
                self.rate(symbols, left, behind);
                queue.extend(entry(left, &symbols[left]));
            }
            let before = previous[left] as usize;
            if before < count {
                self.rate(symbols, before, left);
                queue.extend(entry(before, &symbols[before]));
            }
        }
    }
}

/// How many bytes of unknown letters wait for their token.
struct Unknown(u32);

impl Symbol {
    fn new(token: u32, length: u32) -> Symbol {
        Symbol {
            token,
            length,
            rank: NEVER,
        }
    }
}

fn entry(at: usize, symbol: &Symbol) -> Option<Reverse<(u32, u32)>> {
    (symbol.rank != NEVER).then(|| Reverse((symbol.rank, number(at))))
}
