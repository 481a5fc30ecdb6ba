//! Questions to a tokenizer and its answers, as numbers that are kept of them.

use std::fmt;

use framebatch::embed::tokenizer::{Matching, Options};

/// Texts to split.
pub struct Question<'a> {
    pub text: &'a str,
    pub second: Option<&'a str>,
    /// The tokens that there is room for.
    pub limit: usize,
}

impl<'a> Question<'a> {
    pub fn whole(text: &'a str) -> Question<'a> {
        Question::within(usize::MAX, text)
    }

    pub fn within(limit: usize, text: &'a str) -> Question<'a> {
        Question {
            text,
            second: None,
            limit,
        }
    }
}

/// Tokens, and what else was asked about them.
#[derive(Debug, Default)]
pub struct Answer {
    pub ids: Vec<u32>,
    /// Where the tokens lie in the text, in bytes.
    pub offsets: Option<Vec<(u32, u32)>>,
    /// Which of two texts the tokens are from.
    pub types: Option<Vec<u32>>,
    /// Whether the limit left tokens out.
    pub is_truncated: bool,
}

/// What one tokenizer was asked and what it answered. Other questions are another number, so that
/// answers are only ever compared with those to the same questions.
pub struct Transcript {
    asked: Fnv,
    answered: Fnv,
    questions: usize,
}

impl Transcript {
    pub fn of_vocabulary(vocab: &str, options: &Options) -> Transcript {
        let mut transcript = Transcript::new();
        transcript.asked.text(vocab);
        transcript.asked.text(&format!("{options:?}"));
        transcript
    }

    pub fn of_file(json: &[u8]) -> Transcript {
        let mut transcript = Transcript::new();
        transcript.asked.bytes(json);
        transcript
    }

    fn new() -> Transcript {
        Transcript {
            asked: Fnv::new(),
            answered: Fnv::new(),
            questions: 0,
        }
    }

    /// A token that the tokenizer got, and its id.
    pub fn token(&mut self, content: &str, matching: Matching, id: u32) {
        self.asked.text(content);
        self.asked.text(&format!("{matching:?} {id}"));
    }

    pub fn add(&mut self, question: &Question, answer: &Answer) {
        self.questions += 1;
        self.asked.text(question.text);
        self.asked.text(question.second.unwrap_or("\0"));
        self.asked.number(question.limit as u64);
        self.answered.numbers(answer.ids.iter().copied());
        let offsets = answer.offsets.iter().flatten();
        self.answered
            .numbers(offsets.flat_map(|(from, to)| [*from, *to]));
        self.answered
            .numbers(answer.types.iter().flatten().copied());
        self.answered.number(answer.is_truncated.into());
    }

    pub fn questions(&self) -> usize {
        self.questions
    }

    /// The number of what was asked, as a line of the kept ones begins.
    pub fn asked(&self) -> String {
        format!("{:016x}", self.asked.0)
    }
}

/// A line of those that are kept.
impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transcript {
            asked,
            answered,
            questions,
        } = self;
        write!(f, "{:016x} {:016x} {questions}", asked.0, answered.0)
    }
}

/// The hash FNV-1a of 64 bits (Fowler, Noll and Vo).
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// Numbers behind how many they are.
    fn numbers(&mut self, numbers: impl Iterator<Item = u32>) {
        let mut count = 0;
        for number in numbers {
            self.bytes(&number.to_le_bytes());
            count += 1;
        }
        self.number(count);
    }
}
