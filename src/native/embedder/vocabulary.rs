//! The tokenizer that a folder describes, by `tokenizer.json` or `vocab.txt`.
//!
//! Padding and truncation in these files are the settings of whoever saved them, not the model's,
//! and are not followed.

use serde_json::Value;

use super::files::{ModelFiles, refuse};
use super::folder::TOKENIZER_CONFIG;
use super::json::Json;
use crate::embed::tokenizer::{Matching, Options, Tokenizer};
use crate::error::Error;

const JSON: &str = "tokenizer.json";
const LINES: &str = "vocab.txt";

/// The most ids without a token.
const MOST_HOLES: u32 = 1 << 16;

/// A tokenizer, or the error of texts where the model takes ids alone.
pub(super) type Split = Result<Tokenizer, Error>;

/// Reads the tokenizer of a model with so many tokens.
pub(super) fn tokenizer(files: &ModelFiles<'_>, vocab: u32) -> Result<Split, Error> {
    let (file, split) = match Json::find(files, JSON)? {
        Some(json) => (JSON, of_json(&json, vocab)?),
        None => match files.text(LINES)? {
            Some(lines) => (LINES, Ok(of_lines(files, &lines)?)),
            None => {
                let problem = "is missing, and vocab.txt too; give ids to `embed_ids`";
                return Ok(Err(refuse(JSON, problem)));
            }
        },
    };
    if let Ok(tokenizer) = &split
        && tokenizer.vocabulary_len() > vocab as usize
    {
        let given = tokenizer.vocabulary_len();
        let problem = format!("has {given} tokens, but vocab_size of config.json is {vocab}");
        return Err(refuse(file, &problem));
    }
    Ok(split)
}

fn of_lines(files: &ModelFiles<'_>, lines: &str) -> Result<Tokenizer, Error> {
    let mut options = Options::default();
    if let Some(json) = Json::find(files, TOKENIZER_CONFIG)? {
        options.lowercase = json.flag("do_lower_case")?.unwrap_or(true);
        options.strip_accents = json.flag("strip_accents")?;
        options.handle_chinese_chars = json.flag("tokenize_chinese_chars")?.unwrap_or(true);
        let [mut pad, mut mask] = ["[PAD]", "[MASK]"].map(String::from);
        for (name, token) in [
            ("pad_token", &mut pad),
            ("unk_token", &mut options.unk),
            ("cls_token", &mut options.cls),
            ("sep_token", &mut options.sep),
            ("mask_token", &mut mask),
        ] {
            if let Some(given) = json.token(name)? {
                *token = given.into();
            }
        }
        let Options { unk, cls, sep, .. } = options.clone();
        options.verbatim = vec![pad, unk, cls, sep, mask];
        options.verbatim.sort_unstable();
        options.verbatim.dedup();
    }
    Tokenizer::new(lines, options).map_err(|error| refuse(LINES, &error.to_string()))
}

fn of_json(json: &Json<'_>, vocab: u32) -> Result<Split, Error> {
    let unsupported = |what: &str, given: &Value| {
        let problem = format!("{what} {given} is not supported; give ids to `embed_ids`");
        Ok(Err(refuse(JSON, &problem)))
    };
    let part = |name: &str| json.get(name).cloned().unwrap_or_default();
    for (name, kind) in [
        ("model", "WordPiece"),
        ("normalizer", "BertNormalizer"),
        ("pre_tokenizer", "BertPreTokenizer"),
    ] {
        let given = part(name);
        match given.get("type").unwrap_or(&Value::Null) {
            // Older files leave the type of the model out.
            Value::Null if name == "model" && given.is_object() => {}
            given if given == kind => {}
            given => return unsupported(name, given),
        }
    }
    let around = part("post_processor");
    let Some([cls, sep]) = specials(&around) else {
        return unsupported("post_processor", &around);
    };
    let [model, normalizer] = ["model", "normalizer"].map(|name| Json::of(JSON, part(name)));
    let flag = |name: &str| Ok::<bool, Error>(normalizer.flag(name)?.unwrap_or(true));
    let characters = model.count("max_input_chars_per_word")?.unwrap_or(100);
    let prefix = model.text("continuing_subword_prefix")?;
    let options = Options {
        lowercase: flag("lowercase")?,
        strip_accents: normalizer.flag("strip_accents")?,
        handle_chinese_chars: flag("handle_chinese_chars")?,
        clean_text: flag("clean_text")?,
        continuing_prefix: prefix.unwrap_or("##").into(),
        max_chars_per_word: usize::try_from(characters).unwrap_or(usize::MAX),
        unk: model.text("unk_token")?.unwrap_or("[UNK]").into(),
        cls,
        sep,
        verbatim: Vec::new(),
    };
    let lines = lines(model.get("vocab"), vocab)?;
    let tokenizer = Tokenizer::new(&lines, options);
    let mut tokenizer = tokenizer.map_err(|error| refuse(JSON, &error.to_string()))?;
    let added = part("added_tokens");
    if !(added.is_array() || added.is_null()) {
        return Err(refuse(JSON, "added_tokens must be a list"));
    }
    for token in added.as_array().into_iter().flatten() {
        let token = Json::of(JSON, token.clone());
        if token.flag("single_word")? == Some(true) {
            return unsupported("added token with single_word", &token.value);
        }
        add(&mut tokenizer, &token, vocab)?;
    }
    Ok(Ok(tokenizer))
}

/// The tokens around a text.
fn specials(processor: &Value) -> Option<[String; 2]> {
    let text = |value: &Value| value.as_str().map(String::from);
    match processor["type"].as_str()? {
        "BertProcessing" => Some([text(&processor["cls"][0])?, text(&processor["sep"][0])?]),
        "TemplateProcessing" => match &processor["single"].as_array()?[..] {
            [cls, sequence, sep] if sequence["Sequence"]["id"] == "A" => {
                let id = |special: &Value| text(&special["SpecialToken"]["id"]);
                Some([id(cls)?, id(sep)?])
            }
            _ => None,
        },
        _ => None,
    }
}

/// The vocabulary as lines whose numbers are the ids.
fn lines(tokens: Option<&Value>, vocab: u32) -> Result<String, Error> {
    let Some(tokens) = tokens.and_then(Value::as_object) else {
        return Err(refuse(JSON, "model has no vocab"));
    };
    // Ids without a token take a line each.
    let most = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
    let most = most.saturating_add(MOST_HOLES);
    let mut lines = Vec::new();
    for (token, id) in tokens {
        let id = id_of(id, vocab)?;
        if id >= most as usize {
            let problem = format!("id {id} leaves more than {MOST_HOLES} ids without a token");
            return Err(refuse(JSON, &problem));
        }
        if lines.len() <= id {
            lines.resize(id + 1, "");
        }
        // A token with white space is never found, because no word has any.
        if !token.contains(char::is_whitespace) {
            lines[id] = token;
        }
    }
    Ok(lines.join("\n"))
}

fn id_of(id: &Value, vocab: u32) -> Result<usize, Error> {
    let known = id.as_u64().filter(|id| *id < u64::from(vocab));
    let known = known.and_then(|id| usize::try_from(id).ok());
    known.ok_or_else(|| {
        let problem = format!("id {id} is not below {vocab}, the vocab_size of config.json");
        refuse(JSON, &problem)
    })
}

fn add(tokenizer: &mut Tokenizer, token: &Json<'_>, vocab: u32) -> Result<(), Error> {
    let flag = |name: &str| Ok::<bool, Error>(token.flag(name)?.unwrap_or(false));
    let Some(content) = token.text("content")? else {
        let problem = format!("added token {} has no content", token.value);
        return Err(refuse(JSON, &problem));
    };
    let matching = Matching {
        strip_left: flag("lstrip")?,
        strip_right: flag("rstrip")?,
        normalized: flag("normalized")?,
    };
    let id = id_of(token.get("id").unwrap_or(&Value::Null), vocab)?;
    let id = u32::try_from(id).unwrap_or(u32::MAX);
    let added = tokenizer.add(content, id, matching);
    added.map_err(|error| refuse(JSON, &error.to_string()))
}
