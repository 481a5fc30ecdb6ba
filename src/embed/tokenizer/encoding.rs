//! A text on its way through the stages of a tokenizer.

use std::ops::Range;

use super::model::Workspace;
use super::output::Output;
use super::pieces::Pieces;
use super::post_processor::Trim;
use super::stages::Stages;
use super::text::{Follows, Origin, number};

/// Appends the tokens of a text.
pub(super) struct Encoding<'a> {
    stages: &'a Stages,
    trims: &'a [Trim],
    out: &'a mut Output,
    pieces: Pieces,
    work: Workspace,
    /// The number of tokens beyond which no more are needed.
    enough: usize,
    /// How many tokens there were before this text.
    before: usize,
    /// Whether there are more.
    is_done: bool,
    /// Whether pieces of the text were not looked at.
    has_left: bool,
}

impl<'a> Encoding<'a> {
    pub(super) fn new(stages: &'a Stages, trims: &'a [Trim], out: &'a mut Output) -> Encoding<'a> {
        let needs_origins = stages.pre_tokenizer.needs_origins();
        let follows = match needs_origins && !stages.normalizer.is_none() {
            true => Follows::Origins,
            false => out.follows,
        };
        Encoding {
            stages,
            trims,
            pieces: Pieces::new(follows),
            work: Workspace::default(),
            enough: usize::MAX,
            before: out.len(),
            is_done: false,
            has_left: false,
            out,
        }
    }

    /// Takes a text, up to the piece behind which there are more than so many tokens. Returns
    /// whether something of the text was left.
    pub(super) fn run(mut self, text: &str, most: usize) -> bool {
        self.enough = self.before.saturating_add(most);
        for part in self.stages.given.split(text) {
            if self.is_left() {
                break;
            }
            match part.id {
                Some(id) => {
                    let offsets = (number(part.range.start), number(part.range.end));
                    self.push_added(id, offsets, &text[part.range]);
                }
                None => self.given(text, part.range),
            }
        }
        self.has_left
    }

    /// Whether something that comes next is left, because there are enough tokens.
    fn is_left(&mut self) -> bool {
        self.has_left |= self.is_done;
        self.is_done
    }

    /// Takes a part of the text as it is given, slice by slice.
    fn given(&mut self, text: &str, mut part: Range<usize>) {
        while !part.is_empty() && !self.is_left() {
            let end = part.start + self.slice(&text[part.clone()]);
            self.pieces.text.take(&text[part.start..end], part.start);
            let (text, spare) = self.pieces.texts();
            self.stages.normalizer.normalize(text, spare);
            self.normalized();
            part.start = end;
        }
    }

    /// The length of the part of a text that is normalized next: most of a long text that will be
    /// truncated need not be normalized. Only BERT's texts are sliced, at spaces, which none of
    /// their words contains, unless an added token might contain one.
    fn slice(&self, text: &str) -> usize {
        const SLICE: usize = 2048;
        let stages = self.stages;
        if !stages.is_bert || !stages.normalized.is_empty() {
            return text.len();
        }
        let mut behind = text.bytes().enumerate().skip(SLICE);
        let space = behind.find(|(_, byte)| matches!(byte, b' ' | b'\n'));
        space.map_or(text.len(), |(at, _)| at)
    }

    /// Takes the normalized text.
    fn normalized(&mut self) {
        let whole = 0..self.pieces.text.text.len();
        if self.stages.normalized.is_empty() {
            return self.pieces(whole);
        }
        let parts = self.stages.normalized.split(&self.pieces.text.text);
        // Pre-tokenizers write texts anew.
        let text = std::mem::take(&mut self.pieces.text);
        for part in parts {
            if self.is_left() {
                break;
            }
            match part.id {
                Some(id) => {
                    let offsets = (0, number(part.range.len()));
                    let offsets = text.offsets(&part.range, offsets);
                    self.push_added(id, offsets, &text.text[part.range]);
                }
                None => {
                    self.pieces.text = text.part(part.range.clone());
                    self.pieces(0..part.range.len());
                }
            }
        }
        self.pieces.text = text;
    }

    /// Takes the text, a range of which is no added token.
    fn pieces(&mut self, range: Range<usize>) {
        self.pieces.ranges.clear();
        if range.is_empty() {
            return;
        }
        self.pieces.ranges.push(range);
        self.stages.pre_tokenizer.split(&mut self.pieces);
        for at in 0..self.pieces.ranges.len() {
            if self.is_left() {
                return;
            }
            let piece = &self.pieces.ranges[at].clone();
            let (start, text) = (self.out.len(), &self.pieces.text);
            let model = &self.stages.model;
            model.split(&text.text[piece.clone()], &mut self.work, self.out);
            if self.out.follows == Follows::Origins {
                for at in start..self.out.len() {
                    self.out.offsets[at] = self.offsets(piece, at);
                }
            }
            self.is_done = self.out.len() > self.enough;
        }
    }

    fn push_added(&mut self, id: u32, offsets: Origin, content: &str) {
        let offsets = self.trimmed(self.out.len(), content, offsets);
        self.out.push(id, offsets);
    }

    /// The offsets in the text as given of a token whose offsets within its piece are known.
    fn offsets(&self, piece: &Range<usize>, at: usize) -> Origin {
        let (id, within) = (self.out.ids[at], self.out.offsets[at]);
        let offsets = self.pieces.text.offsets(piece, within);
        if self.trims.is_empty() {
            return offsets;
        }
        let model = &self.stages.model;
        let token = match model.has_text_of(id) {
            true => model.vocabulary().token_of(id),
            false => {
                let (from, to) = (within.0 as usize, within.1 as usize);
                &self.pieces.text.text[piece.start + from..piece.start + to]
            }
        };
        self.trimmed(at, token, offsets)
    }

    /// The offsets of a token without the spaces that the post-processor takes off.
    fn trimmed(&self, at: usize, token: &str, offsets: Origin) -> Origin {
        self.trims.iter().fold(offsets, |offsets, trim| {
            trim.apply(token, at - self.before, offsets)
        })
    }
}
