//! The stages of a tokenizer up to its model, and the tokens that are found between them.

use super::added_tokens::{AddedTokens, Token};
use super::model::Model;
use super::normalizer::Normalizer;
use super::pre_tokenizer::PreTokenizer;
use super::text::{Follows, Text};
use crate::error::Error;

pub(super) struct Stages {
    /// Tokens that are found in a text as it is given.
    pub(super) given: AddedTokens,
    pub(super) normalized: AddedTokens,
    pub(super) normalizer: Normalizer,
    pub(super) pre_tokenizer: PreTokenizer,
    pub(super) model: Model,
    /// Whether texts are normalized and split as BERT's are.
    pub(super) is_bert: bool,
}

impl Stages {
    pub(super) fn new(normalizer: Normalizer, pre_tokenizer: PreTokenizer, model: Model) -> Stages {
        let is_bert = matches!(normalizer, Normalizer::Bert(_))
            && matches!(pre_tokenizer, PreTokenizer::Bert);
        Stages {
            given: AddedTokens::default(),
            normalized: AddedTokens::default(),
            normalizer,
            pre_tokenizer,
            model,
            is_bert,
        }
    }

    /// Adds tokens to those that are found in texts.
    pub(super) fn add(&mut self, tokens: Vec<Token>) -> Result<(), Error> {
        let (mut text, mut spare) = (Text::new(Follows::Nothing), Text::new(Follows::Nothing));
        let (mut normalized, given): (Vec<Token>, Vec<Token>) = tokens
            .into_iter()
            .partition(|token| token.matching.normalized);
        for token in &mut normalized {
            text.take(&token.content, 0);
            self.normalizer.normalize(&mut text, &mut spare);
            token.content.clone_from(&text.text);
        }
        self.given.add(given)?;
        self.normalized.add(normalized)
    }

    /// Leaves out added tokens with ids from `rows` on.
    pub(super) fn limit_added(&mut self, rows: u32) {
        self.given.limit(rows);
        self.normalized.limit(rows);
    }

    /// The id of a token.
    pub(super) fn id(&self, token: &str) -> Option<u32> {
        let added = self.given.id(token).or_else(|| self.normalized.id(token));
        added.or_else(|| {
            let vocabulary = self.model.vocabulary();
            let place = vocabulary.place(token.as_bytes())?;
            Some(vocabulary.id(place))
        })
    }

    /// The highest id of a token.
    pub(super) fn last_id(&self) -> Option<u32> {
        let added = self.given.last_id().max(self.normalized.last_id());
        added.max(self.model.vocabulary().last_id())
    }
}
