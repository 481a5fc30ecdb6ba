//! Vocabularies that Hugging Face's crate trains, which the tests split texts with.
//!
//! `UPDATE_TABLES=1 cargo test -p framebatch-tokenizer-peer trained` writes them anew.

use std::fs;

use serde_json::{Value, json};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::Metaspace;
use tokenizers::{AddedToken, PreTokenizerWrapper};

use crate::models::corpus;

fn trained(pre_tokenizer: impl Into<PreTokenizerWrapper>) -> Value {
    let mut tokenizer = tokenizers::Tokenizer::new(BPE::default());
    let pre_tokenizer: PreTokenizerWrapper = pre_tokenizer.into();
    let alphabet = match &pre_tokenizer {
        PreTokenizerWrapper::ByteLevel(_) => ByteLevel::alphabet(),
        _ => ('a'..='z').collect(),
    };
    tokenizer.with_pre_tokenizer(Some(pre_tokenizer));
    let trainer = BpeTrainer::builder()
        .vocab_size(1800)
        .show_progress(false)
        .limit_alphabet(600)
        .initial_alphabet(alphabet.into_iter().collect())
        .special_tokens(vec![
            AddedToken::from("<unk>", true),
            AddedToken::from("<s>", true),
            AddedToken::from("</s>", true),
        ])
        .build();
    let mut trainer: TrainerWrapper = trainer.into();
    tokenizer.train(&mut trainer, corpus().into_iter()).unwrap();
    serde_json::from_str(&tokenizer.to_string(false).unwrap()).unwrap()
}

#[test]
fn vocabularies_are_what_the_crate_trains() {
    let all = json!({
        "bytes": trained(ByteLevel::new(true, true, true)),
        "characters": trained(Metaspace::default()),
    });
    let path = crate::root().join("tests/data/trained-bpe.json");
    if std::env::var_os("UPDATE_TABLES").is_some() {
        fs::write(&path, format!("{all}\n")).unwrap();
    }
    let kept: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(
        kept == all,
        "{} is not what the crate trains",
        path.display()
    );
}
