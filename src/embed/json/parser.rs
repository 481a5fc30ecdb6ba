//! A parser of RFC 8259 that is given a file slice by slice.
//!
//! The parser's state between two slices is where it is in the grammar, which objects and lists are open,
//! and the beginning of a text, number or word that the last slice ended in.

/// Objects and lists within each other, at most.
const MAX_DEPTH: usize = 127;

/// The longest number or word, which is held whole.
const MAX_SCALAR: usize = 1024;

/// What a parser reads, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// An object begins.
    Object,
    /// A list begins.
    List,
    /// The last open object or list ends.
    End,
    /// The name of an object's next field.
    Name(&'a str),
    /// A text.
    Text(&'a str),
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// `null`.
    Null,
}

/// Why a text is no JSON, or what the listener refused, and the byte of the file at which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A sentence without a subject: "expected a value".
    pub what: &'static str,
    /// The byte of the file behind what was read last.
    pub at: usize,
}

/// What may come next in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    /// A value, or the end of the list that just began.
    FirstItem,
    Name,
    /// A name, or the end of the object that just began.
    FirstName,
    Colon,
    /// A comma, or the end of an object or list.
    Separator,
    /// Within a text.
    Text(Role),
    /// Behind a backslash in a text.
    Escape(Role),
    /// Within a number or word.
    Scalar,
    /// Behind the whole value.
    Done,
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Name,
    Value,
}

/// What is open around a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object,
    List,
}

/// Reads one value, slice by slice. After a problem it must not be used again.
#[derive(Debug)]
pub struct Parser {
    state: State,
    open: Vec<Container>,
    /// What was read of a text with its escapes undone, or of a scalar.
    token: Vec<u8>,
    /// Four digits of an escape, and how many of them were read.
    unit: u16,
    digits: u8,
    /// The first half of a surrogate pair, whose second half must follow.
    high: Option<u16>,
    at: usize,
}

impl Default for Parser {
    fn default() -> Parser {
        Parser {
            state: State::Value,
            open: Vec::new(),
            token: Vec::new(),
            unit: 0,
            digits: 0,
            high: None,
            at: 0,
        }
    }
}

type Outcome = Result<(), &'static str>;

impl Parser {
    /// Reads the next slice of the file and tells `hear` what is in it. A text or number that goes
    /// on in the next slice is told there.
    ///
    /// # Errors
    ///
    /// The first [`Problem`] of the file, or the sentence with which `hear` refuses an event.
    pub fn feed(
        &mut self,
        slice: &[u8],
        hear: &mut dyn FnMut(Event<'_>) -> Result<(), &'static str>,
    ) -> Result<(), Problem> {
        let mut rest = slice;
        while !rest.is_empty() {
            let taken = self.step(rest, hear).map_err(|what| Problem {
                what,
                at: self.at + (slice.len() - rest.len()),
            })?;
            rest = &rest[taken..];
        }
        self.at += slice.len();
        Ok(())
    }

    /// The file ends here.
    ///
    /// # Errors
    ///
    /// A [`Problem`] unless the value is whole.
    pub fn finish(
        mut self,
        hear: &mut dyn FnMut(Event<'_>) -> Result<(), &'static str>,
    ) -> Result<(), Problem> {
        let ended = match self.state {
            State::Scalar => self.end_scalar(hear),
            _ => Ok(()),
        };
        let ended = ended.and(match self.state {
            State::Done => Ok(()),
            _ => Err("it ends too early"),
        });
        ended.map_err(|what| Problem { what, at: self.at })
    }

    /// Reads one byte, or the run of a text's plain bytes. Returns how many were read: none where a
    /// number ends before the byte.
    fn step(
        &mut self,
        rest: &[u8],
        hear: &mut dyn FnMut(Event<'_>) -> Result<(), &'static str>,
    ) -> Result<usize, &'static str> {
        let byte = rest[0];
        match self.state {
            State::Text(role) => return self.text(rest, role, hear),
            State::Escape(role) => {
                self.escape(byte)?;
                if self.digits == 0 {
                    self.state = State::Text(role);
                }
                return Ok(1);
            }
            State::Scalar => {
                if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.') {
                    return self.scalar(byte).map(|()| 1);
                }
                return self.end_scalar(hear).map(|()| 0);
            }
            _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => return Ok(1),
            _ => {}
        }
        match (self.state, byte) {
            (State::FirstItem, b']') | (State::FirstName, b'}') => self.close(byte, hear)?,
            (State::Separator, b']' | b'}') => self.close(byte, hear)?,
            (State::Value | State::FirstItem, _) => self.value(byte, hear)?,
            (State::Name | State::FirstName, b'"') => self.state = State::Text(Role::Name),
            (State::Name | State::FirstName, _) => return Err("expected the name of a field"),
            (State::Colon, b':') => self.state = State::Value,
            (State::Colon, _) => return Err("expected ':'"),
            (State::Separator, b',') => {
                self.state = match self.open.last() {
                    Some(Container::Object) => State::Name,
                    _ => State::Value,
                }
            }
            (State::Separator, _) => return Err("expected ',' or the end of a list or object"),
            _ => return Err("there is more behind its value"),
        }
        Ok(1)
    }

    fn value(
        &mut self,
        byte: u8,
        hear: &mut dyn FnMut(Event<'_>) -> Result<(), &'static str>,
    ) -> Outcome {
        let (container, state, event) = match byte {
            b'{' => (Container::Object, State::FirstName, Event::Object),
            b'[' => (Container::List, State::FirstItem, Event::List),
            b'"' => {
                self.state = State::Text(Role::Value);
                return Ok(());
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                self.state = State::Scalar;
                return self.scalar(byte);
            }
            _ => return Err("expected a value"),
        };
        if self.open.len() == MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        self.open.push(container);
        self.state = state;
        hear(event)
    }

    fn close(
        &mut self,
        byte: u8,
        hear: &mut dyn FnMut(Event<'_>) -> Result<(), &'static str>,
    ) -> Outcome {
        let closed = match byte {
            b'}' => Container::Object,
            _ => Container::List,
        };
        if self.open.pop() != Some(closed) {
            return Err("expected ',' or the end of a list or object");
        }
        self.behind_value();
        hear(Event::End)
    }

    fn behind_value(&mut self) {
        self.state = match self.open.is_empty() {
            true => State::Done,
            false => State::Separator,
        };
    }

    fn text(
        &mut self,
        rest: &[u8],
        role: Role,
        hear: &mut dyn FnMut(Event<'_>) -> Result<(), &'static str>,
    ) -> Result<usize, &'static str> {
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..32);
        let plain = rest.iter().position(is_special).unwrap_or(rest.len());
        if self.high.is_some() && rest[0] != b'\\' {
            return Err("a text has half of a surrogate pair");
        }
        match rest.get(plain) {
            // The usual text lies within a slice and is told from there.
            Some(b'"') if self.token.is_empty() => {
                self.end_text(&rest[..plain], role, hear)?;
                Ok(plain + 1)
            }
            Some(b'"') => {
                let mut token = std::mem::take(&mut self.token);
                token.extend(&rest[..plain]);
                self.end_text(&token, role, hear)?;
                token.clear();
                self.token = token;
                Ok(plain + 1)
            }
            Some(b'\\') => {
                self.token.extend(&rest[..plain]);
                self.state = State::Escape(role);
                Ok(plain + 1)
            }
            Some(_) => Err("a text has a control character"),
            None => {
                self.token.extend(rest);
                Ok(rest.len())
            }
        }
    }

    fn end_text(
        &mut self,
        bytes: &[u8],
        role: Role,
        hear: &mut dyn FnMut(Event<'_>) -> Result<(), &'static str>,
    ) -> Outcome {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
        match role {
            Role::Name => {
                self.state = State::Colon;
                hear(Event::Name(text))
            }
            Role::Value => {
                self.behind_value();
                hear(Event::Text(text))
            }
        }
    }

    /// Reads a byte behind a backslash: the character that is escaped, or a digit behind `\u`,
    /// which leaves `digits` above 0 until there are four.
    fn escape(&mut self, byte: u8) -> Outcome {
        if self.digits > 0 {
            let digit = char::from(byte).to_digit(16);
            let digit = digit.ok_or("an escape needs four hexadecimal digits")?;
            #[expect(clippy::cast_possible_truncation, reason = "a digit is below 16")]
            let digit = digit as u16;
            self.unit = self.unit << 4 | digit;
            self.digits = (self.digits + 1) % 5;
            return match self.digits {
                0 => self.unit_of_text(),
                _ => Ok(()),
            };
        }
        if byte == b'u' {
            (self.unit, self.digits) = (0, 1);
            return Ok(());
        }
        if self.high.is_some() {
            return Err("a text has half of a surrogate pair");
        }
        self.token.push(match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            _ => return Err("a text has an unknown escape"),
        });
        Ok(())
    }

    /// Takes a unit of UTF-16 that was escaped.
    fn unit_of_text(&mut self) -> Outcome {
        const HALF: &str = "a text has half of a surrogate pair";
        let code = match (self.high.take(), self.unit) {
            (None, high @ 0xd800..0xdc00) => {
                self.high = Some(high);
                return Ok(());
            }
            (Some(high), low @ 0xdc00..0xe000) => {
                0x1_0000 + (u32::from(high - 0xd800) << 10) + u32::from(low - 0xdc00)
            }
            (None, unit) => u32::from(unit),
            (Some(_), _) => return Err(HALF),
        };
        let c = char::from_u32(code).ok_or(HALF)?;
        self.token.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn scalar(&mut self, byte: u8) -> Outcome {
        if self.token.len() == MAX_SCALAR {
            return Err("a number is too long");
        }
        self.token.push(byte);
        Ok(())
    }

    fn end_scalar(
        &mut self,
        hear: &mut dyn FnMut(Event<'_>) -> Result<(), &'static str>,
    ) -> Outcome {
        let event = match &self.token[..] {
            b"true" => Event::Flag(true),
            b"false" => Event::Flag(false),
            b"null" => Event::Null,
            digits => Event::Number(number(digits)?),
        };
        self.token.clear();
        self.behind_value();
        hear(event)
    }
}

/// A number as JSON spells it: no leading zeros, plus signs or bare points.
fn number(text: &[u8]) -> Result<f64, &'static str> {
    const WRONG: &str = "expected a value";
    let digits = |rest: &mut &[u8]| {
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *rest = &rest[count..];
        count
    };
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let leads_with_zero = rest.first() == Some(&b'0');
    let whole = digits(&mut rest);
    if whole == 0 || (leads_with_zero && whole > 1) {
        return Err(WRONG);
    }
    if let Some(behind) = rest.strip_prefix(b".") {
        rest = behind;
        if digits(&mut rest) == 0 {
            return Err(WRONG);
        }
    }
    if let [b'e' | b'E', behind @ ..] = rest {
        rest = behind;
        if let [b'+' | b'-', behind @ ..] = rest {
            rest = behind;
        }
        if digits(&mut rest) == 0 {
            return Err(WRONG);
        }
    }
    if !rest.is_empty() {
        return Err(WRONG);
    }
    let text = std::str::from_utf8(text).map_err(|_| WRONG)?;
    let number: f64 = text.parse().map_err(|_| WRONG)?;
    match number.is_finite() {
        true => Ok(number),
        false => Err("a number is too large"),
    }
}
