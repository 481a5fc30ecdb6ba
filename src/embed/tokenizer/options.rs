//! How a model's texts are split, as its files say. Nothing is split here.

/// How a model's texts are split; the default is that of uncased English BERT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether letters are put in lower case.
    pub lowercase: bool,
    /// Whether accents are removed. By default they are removed where letters are put in lower
    /// case.
    pub strip_accents: Option<bool>,
    /// Whether every CJK ideograph is a word.
    pub handle_chinese_chars: bool,
    /// Whether control characters are removed, and all white space becomes spaces.
    pub clean_text: bool,
    /// The prefix in the vocabulary of pieces that do not begin a word.
    pub continuing_prefix: String,
    /// The most characters of a word; longer words are unknown.
    pub max_chars_per_word: usize,
    /// The token of unknown words.
    pub unk: String,
    /// The token in front of every text.
    pub cls: String,
    /// The token behind every text.
    pub sep: String,
    /// Tokens that are found in a text before it is split, if the vocabulary has them.
    /// [`Tokenizer::add`](super::Tokenizer::add) adds others.
    pub verbatim: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        let names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
        Options {
            lowercase: true,
            strip_accents: None,
            handle_chinese_chars: true,
            clean_text: true,
            continuing_prefix: "##".into(),
            max_chars_per_word: 100,
            unk: "[UNK]".into(),
            cls: "[CLS]".into(),
            sep: "[SEP]".into(),
            verbatim: names.map(String::from).into(),
        }
    }
}
