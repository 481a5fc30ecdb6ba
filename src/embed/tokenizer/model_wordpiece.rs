//! The model where only WordPiece is known.

use super::fields::{Fields, shown, unsupported, wrong};
use super::model_reader::{ModelParts, Shape};
use super::output::Output;
use super::pre_tokenizer::Alphabet;
use super::vocabulary::Vocabulary;
use super::wordpiece::WordPiece;
use crate::error::Error;

pub(super) enum Model {
    WordPiece(WordPiece),
}

/// What models work in.
#[derive(Default)]
pub(super) struct Workspace {
    hashes: Vec<u32>,
}

impl Model {
    /// The model that a file describes.
    pub(super) fn read(parts: ModelParts, _: Alphabet) -> Result<Model, Error> {
        let fields = Fields::new("model", &parts.fields);
        // Older files leave the kind out.
        if let Some(kind) = fields
            .get("type")
            .filter(|kind| kind.as_text() != Some("WordPiece"))
        {
            return Err(unsupported("model", &shown(kind)));
        }
        match parts.shape {
            Shape::Ids => {
                let model = WordPiece::read(fields, parts.lists.vocabulary)?;
                Ok(Model::WordPiece(model))
            }
            _ => Err(wrong(&["model has no vocab"])),
        }
    }

    /// Appends the tokens of a piece, with offsets within the piece.
    pub(super) fn split(&self, piece: &str, work: &mut Workspace, out: &mut Output) {
        let Model::WordPiece(model) = self;
        model.split(piece, &mut work.hashes, out);
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        let Model::WordPiece(model) = self;
        &model.vocabulary
    }

    /// Whether the text of a token is that which the vocabulary has for its id.
    pub(super) fn has_text_of(&self, _: u32) -> bool {
        true
    }
}
