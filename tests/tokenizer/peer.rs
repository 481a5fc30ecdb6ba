//! Hugging Face's tokenizer, made of the same vocabulary and options.

use framebatch::embed::tokenizer::{Matching, Options, Tokenizer};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Model, TokenizerBuilder, TokenizerImpl, TruncationParams};

type Peer = TokenizerImpl<
    WordPiece,
    BertNormalizer,
    BertPreTokenizer,
    TemplateProcessing,
    tokenizers::DecoderWrapper,
>;

/// The two tokenizers, to be asked the same.
pub(crate) struct Pair {
    pub(crate) ours: Tokenizer,
    peer: Peer,
}

impl Pair {
    pub(crate) fn new(vocab: &str, options: &Options) -> Pair {
        let model = WordPiece::builder()
            .vocab(WordPiece::read_bytes(vocab.as_bytes()).unwrap())
            .unk_token(options.unk.clone())
            .continuing_subword_prefix(options.continuing_prefix.clone())
            .max_input_chars_per_word(options.max_chars_per_word)
            .build()
            .unwrap();
        let special = |name: &String| (name.clone(), model.token_to_id(name).unwrap());
        let template = TemplateProcessing::builder()
            .try_single(format!("{} $A {}", options.cls, options.sep))
            .unwrap()
            .special_tokens(vec![special(&options.cls), special(&options.sep)])
            .build()
            .unwrap();
        let verbatim = options.verbatim.iter();
        let verbatim: Vec<AddedToken> = verbatim
            .filter(|name| model.token_to_id(name).is_some())
            .map(|name| AddedToken::from(name.clone(), true))
            .collect();
        let normalizer = BertNormalizer::new(
            options.clean_text,
            options.handle_chinese_chars,
            options.strip_accents,
            options.lowercase,
        );
        let mut peer: Peer = TokenizerBuilder::new()
            .with_model(model)
            .with_normalizer(Some(normalizer))
            .with_pre_tokenizer(Some(BertPreTokenizer))
            .with_post_processor(Some(template))
            .with_decoder(None::<tokenizers::DecoderWrapper>)
            .build()
            .unwrap();
        peer.add_special_tokens(verbatim).unwrap();
        let ours = Tokenizer::new(vocab, options.clone()).unwrap();
        Pair { ours, peer }
    }

    /// Adds a token that the vocabulary lacks; the peer numbers it.
    pub(crate) fn add(&mut self, content: &str, matching: Matching) {
        let token = AddedToken::from(content, true)
            .lstrip(matching.strip_left)
            .rstrip(matching.strip_right)
            .normalized(matching.normalized)
            .single_word(matching.single_word);
        self.peer.add_special_tokens([token]).unwrap();
        let id = self.peer.token_to_id(content).unwrap();
        self.ours.add(content, id, matching).unwrap();
    }

    /// Holds that both tokenizers give the same ids.
    pub(crate) fn check(&self, text: &str) {
        let expected = self.peer.encode(text, true).unwrap();
        let ids = ids(&self.ours, text, usize::MAX);
        assert_eq!(
            ids,
            expected.get_ids(),
            "{text:?}: {:?}",
            expected.get_tokens()
        );
    }

    /// Holds the same within a limit of tokens.
    pub(crate) fn check_within(&mut self, limit: usize, text: &str) {
        let truncation = TruncationParams {
            max_length: limit,
            ..TruncationParams::default()
        };
        self.peer.with_truncation(Some(truncation)).unwrap();
        let expected = self.peer.encode(text, true).unwrap();
        assert_eq!(
            ids(&self.ours, text, limit),
            expected.get_ids(),
            "{text:?} within {limit}"
        );
        self.peer.with_truncation(None).unwrap();
    }
}

pub(crate) fn ids(tokenizer: &Tokenizer, text: &str, limit: usize) -> Vec<u32> {
    let mut ids = Vec::new();
    tokenizer.encode(text, limit, &mut ids);
    ids
}

/// A vocabulary of every letter that the fuzzed texts have, alone and continuing, and
/// of longer pieces of one to four bytes a letter.
pub(crate) fn vocab() -> String {
    let mut tokens: Vec<String> = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        .map(String::from)
        .into();
    let letters = (' '..='~')
        .chain('à'..='ž')
        .chain('α'..='ώ')
        .chain('а'..='ё')
        .chain("ⅰßıſµⁿ€™·—“”’ ˆ゛がのテ日本語한국ᄒ\u{1161}\u{11ab}नमस्ते👍😀𠀀𪜀𫝀𫠠".chars());
    for letter in letters.filter(|c| !c.is_whitespace()) {
        tokens.push(letter.to_string());
        tokens.push(format!("##{letter}"));
    }
    let pieces = "the un ##believ ##able ##ing ##ly ing token ##iz ##er na naive cafe σισυφος ##υφος \
        привет ##вет мир 日本 ##本語 テキ ##スト ᄒ\u{1161}\u{11ab} नम ##स्ते 👍👍 ##👍 [x] a b ab ##ab aba ##ba";
    tokens.extend(pieces.split_whitespace().map(String::from));
    tokens.join("\n")
}
