//! What splits a piece of text into tokens: one of the models of a `tokenizer.json`.

use super::bpe::{self, Bpe};
use super::fields::{Fields, shown, unsupported, wrong};
use super::lists::Lists;
use super::model_reader::{ModelParts, Shape};
use super::output::Output;
use super::pre_tokenizer::Alphabet;
use super::unigram::{self, Unigram};
use super::vocabulary::Vocabulary;
use super::wordpiece::WordPiece;
use crate::error::Error;

pub(super) enum Model {
    WordPiece(WordPiece),
    Unigram(Unigram),
    Bpe(Bpe),
}

/// What models work in.
#[derive(Default)]
pub(super) struct Workspace {
    hashes: Vec<u32>,
    unigram: unigram::Workplace,
    bpe: bpe::Workplace,
}

impl Model {
    /// The model that a file describes.
    pub(super) fn read(parts: ModelParts, alphabet: Alphabet) -> Result<Model, Error> {
        let value = parts.fields;
        let fields = Fields::new("model", &value);
        let kind = match fields.get("type") {
            // Older files leave the kind out.
            None => "WordPiece",
            Some(kind) => match kind.as_text() {
                Some(kind @ ("WordPiece" | "Unigram" | "BPE")) => kind,
                _ => return Err(unsupported("model", &shown(kind))),
            },
        };
        if alphabet == Alphabet::Bytes && kind != "BPE" {
            return Err(unsupported("pre_tokenizer", "'ByteLevel' without a BPE"));
        }
        let Lists {
            vocabulary,
            scores,
            merges,
            joints,
            ..
        } = parts.lists;
        match (kind, parts.shape) {
            ("WordPiece", Shape::Ids) => Ok(Model::WordPiece(WordPiece::read(fields, vocabulary)?)),
            ("Unigram", Shape::Scores) => {
                Ok(Model::Unigram(Unigram::read(fields, vocabulary, scores)?))
            }
            ("BPE", Shape::Ids) => {
                let merges = merges.ok_or_else(|| wrong(&["model has no merges"]))?;
                Ok(Model::Bpe(Bpe::read(
                    fields,
                    vocabulary,
                    (merges, joints),
                    alphabet,
                )?))
            }
            (_, Shape::None) => Err(wrong(&["model has no vocab"])),
            _ => Err(wrong(&["vocab is of another kind than the model"])),
        }
    }

    /// Appends the tokens of a piece, with offsets within the piece.
    pub(super) fn split(&self, piece: &str, work: &mut Workspace, out: &mut Output) {
        match self {
            Model::WordPiece(model) => model.split(piece, &mut work.hashes, out),
            Model::Unigram(model) => model.split(piece, &mut work.unigram, out),
            Model::Bpe(model) => model.split(piece, &mut work.bpe, out),
        }
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        match self {
            Model::WordPiece(model) => &model.vocabulary,
            Model::Unigram(model) => &model.vocabulary,
            Model::Bpe(model) => &model.vocabulary,
        }
    }

    /// Whether the text of a token is that which the vocabulary has for its id. Unknown characters
    /// of Unigram are their own.
    pub(super) fn has_text_of(&self, id: u32) -> bool {
        match self {
            Model::Unigram(model) => !model.is_unknown(id),
            Model::WordPiece(_) | Model::Bpe(_) => true,
        }
    }
}
