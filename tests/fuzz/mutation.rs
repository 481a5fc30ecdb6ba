//! Inputs made of others: by the values of JSON, by the words of a text, by bytes.

use serde_json::{Map, Value, json};

/// What inputs of a target are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    /// A line with a file's name, and JSON.
    NamedJson,
    /// Eight bytes of a length, JSON of that length, and data.
    HeaderedJson,
    /// Words of 32 bits.
    Words,
    Text,
}

/// Numbers at the ends of what something may be.
const NUMBERS: [f64; 22] = [
    0.0,
    1.0,
    2.0,
    -1.0,
    0.5,
    1e-12,
    1e30,
    1e308,
    -0.0,
    3.0,
    7.0,
    64.0,
    127.0,
    128.0,
    255.0,
    65_536.0,
    16_777_215.0,
    16_777_216.0,
    2_147_483_648.0,
    4_294_967_295.0,
    4_294_967_296.0,
    9_007_199_254_740_993.0,
];

/// Texts that mean something somewhere, or are hard.
const TEXTS: [&str; 44] = [
    "",
    " ",
    "a",
    "\0",
    "\n",
    "\u{feff}",
    "é",
    "👍",
    "\u{301}",
    "..",
    "../x",
    "/",
    "//h",
    "1_Pooling",
    "2_Normalize",
    "http://h/",
    "%2e%2e",
    "mean",
    "cls",
    "max",
    "bert",
    "roberta",
    "xlm-roberta",
    "gelu",
    "relu",
    "absolute",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "##",
    "##a",
    "WordPiece",
    "Unigram",
    "BertNormalizer",
    "BertPreTokenizer",
    "TemplateProcessing",
    "BertProcessing",
    "A",
    "F32",
    "F16",
    "BF16",
    "I64",
    "sentence_transformers.models.Pooling",
    "__proto__",
];

/// Pieces of JSON that no writer gives, and of formulas.
const PIECES: [&str; 40] = [
    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u0000", "\\ud800", "null", "true", "false",
    "1e999", "-0", "01", "1.", ".5", "NaN", "//", "\u{feff}", "\r\n", "\n", "##", "(", ")", "+",
    "-", "*", "/", "^", "pi", "rho", "theta", "layer", "sin(", "pow(", "1e38", "^16", "^-2",
];

pub(crate) struct Mutator {
    state: u64,
    form: Form,
}

impl Mutator {
    pub(crate) fn new(seed: u64, form: Form) -> Mutator {
        Mutator { state: seed, form }
    }

    /// SplitMix64.
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len())]
    }

    /// An input made of these.
    pub(crate) fn mutate(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let input = self.pick(inputs).clone();
        let other = self.pick(inputs).clone();
        let form = match self.one_in(5) {
            true => Form::Text,
            false => self.form,
        };
        match form {
            Form::Json => self.of_json(&input, &other),
            Form::NamedJson => self.of_named(&input, &other),
            Form::HeaderedJson => self.of_headered(&input, &other),
            Form::Words => self.of_words(input),
            Form::Text => self.of_bytes(input, &other),
        }
    }

    fn of_json(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let Ok(mut value) = serde_json::from_slice::<Value>(input) else {
            return self.of_bytes(input.to_vec(), other);
        };
        let other = serde_json::from_slice(other).unwrap_or(Value::Null);
        for _ in 0..=self.below(3) {
            self.change(&mut value, &other);
        }
        serde_json::to_vec(&value).unwrap()
    }

    fn of_named(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let ends = |input: &[u8]| input.iter().position(|byte| *byte == b'\n');
        let (Some(end), Some(others)) = (ends(input), ends(other)) else {
            return self.of_bytes(input.to_vec(), other);
        };
        let changed = self.of_json(&input[end + 1..], &other[others + 1..]);
        [&input[..=end], &changed].concat()
    }

    fn of_headered(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let parts = |input: &[u8]| {
            let length = u64::from_le_bytes(*input.first_chunk::<8>()?);
            let end = usize::try_from(length).ok()?.checked_add(8)?;
            Some((input.get(8..end)?.to_vec(), input[end..].to_vec()))
        };
        let (Some((header, mut data)), Some((others, _))) = (parts(input), parts(other)) else {
            return self.of_bytes(input.to_vec(), other);
        };
        let header = match self.one_in(8) {
            true => self.of_bytes(header, &others),
            false => self.of_json(&header, &others),
        };
        match self.below(12) {
            0 => data.truncate(data.len() / 2),
            1 => data.extend([0; 4]),
            _ => {}
        }
        let mut length = header.len() as u64;
        if self.one_in(16) {
            length = *self.pick(&[0, 1, 2, length + 1, 100_000_000, 100_000_001, u64::MAX]);
        }
        [&length.to_le_bytes()[..], &header, &data].concat()
    }

    fn of_words(&mut self, mut input: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.below(3) {
            let words = input.len() / 4;
            // The first words say what the others are.
            let at = match self.one_in(2) {
                true => self.below(words.min(8)),
                false => self.below(words),
            } * 4;
            let ends = [0, 1, 2, 3, 4, 5, 255, 0x7c00, 0x7f80_0000, 0x7fc0_0000];
            let word = match self.below(4) {
                0 => *self.pick(&ends),
                1 => *self.pick(&[u32::MAX, 1 << 31, 0x7fff_ffff, 65_536, 0x7f7f_ffff]),
                2 => self.bits() as u32,
                _ => self.below(8) as u32,
            };
            match self.below(8) {
                0 => input.truncate(at),
                1 => input.extend(word.to_le_bytes()),
                _ => {
                    let to = input.iter_mut().skip(at);
                    to.zip(word.to_le_bytes()).for_each(|(to, byte)| *to = byte);
                }
            }
        }
        input
    }

    fn of_bytes(&mut self, mut input: Vec<u8>, other: &[u8]) -> Vec<u8> {
        for _ in 0..=self.below(4) {
            let at = self.below(input.len() + 1);
            let length = self.below(9).min(input.len() - at);
            match self.below(7) {
                0 => drop(input.drain(at..at + length)),
                1 => {
                    let piece = *self.pick(&PIECES);
                    input.splice(at..at, piece.bytes());
                }
                2 => {
                    let from = self.below(other.len() + 1);
                    let end = (from + self.below(33)).min(other.len());
                    input.splice(at..at + length, other[from..end].iter().copied());
                }
                3 => {
                    // The same again and again, to nest or to grow.
                    let piece = input[at..at + length].repeat(1 + self.below(80));
                    input.splice(at..at, piece);
                }
                4 => input.truncate(at),
                5 => {
                    let bits = self.bits() as u8;
                    input.insert(at, bits);
                }
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        input
    }

    /// Changes something in a value, near or deep within.
    fn change(&mut self, value: &mut Value, other: &Value) {
        match value {
            Value::Array(list) if !list.is_empty() && !self.one_in(4) => {
                let at = self.below(list.len());
                match self.below(12) {
                    0 => drop(list.remove(at)),
                    1 => list.push(list[at].clone()),
                    2 => list.swap(at, 0),
                    _ => self.change(&mut list[at], other),
                }
            }
            Value::Object(fields) if !fields.is_empty() && !self.one_in(6) => {
                let name = fields.keys().nth(self.below(fields.len())).cloned();
                let name = name.unwrap_or_default();
                match self.below(12) {
                    0 => drop(fields.remove(&name)),
                    1 => self.rename(fields, &name),
                    2 => {
                        let text = (*self.pick(&TEXTS)).to_string();
                        let value = self.value(other);
                        fields.insert(text, value);
                    }
                    _ => self.change(&mut fields[&name], other),
                }
            }
            value => *value = self.value(other),
        }
    }

    fn rename(&mut self, fields: &mut Map<String, Value>, name: &str) {
        let value = fields.remove(name).unwrap_or_default();
        let text = *self.pick(&TEXTS);
        let name = match self.below(3) {
            0 => text.to_string(),
            1 => [name, text].concat(),
            _ => name.to_uppercase(),
        };
        fields.insert(name, value);
    }

    fn value(&mut self, other: &Value) -> Value {
        match self.below(11) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => json!(*self.pick(&NUMBERS)),
            3 => json!(*self.pick(&NUMBERS) as i64),
            4 => json!(self.below(300)),
            5 | 6 => json!(*self.pick(&TEXTS)),
            7 => json!(["x", 1, [self.below(9)]]),
            8 => json!({}),
            9 => json!([]),
            _ => self.part_of(other),
        }
    }

    /// A value somewhere within another.
    fn part_of(&mut self, value: &Value) -> Value {
        let parts: Vec<&Value> = match value {
            Value::Array(list) => list.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        };
        if parts.is_empty() || self.one_in(4) {
            return value.clone();
        }
        let part = parts[self.below(parts.len())];
        self.part_of(part)
    }
}
